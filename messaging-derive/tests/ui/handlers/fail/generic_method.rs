#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("a")]
    async fn of_type<T>(&self) {}

    #[on_message("b")]
    async fn of_lifetime<'m>(&self, message: &'m InboundMessage) {}

    #[on_message("c")]
    async fn clause(&self)
    where
        Self: Sized,
    {
    }
}

fn main() {}
