#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("a")]
    async fn mutable(&mut self) {}

    #[on_message("b")]
    async fn owned(self) {}

    #[on_message("c")]
    async fn boxed(self: Box<Self>) {}

    #[on_message("d")]
    async fn none() {}

    #[on_message("e")]
    async fn message(message: &InboundMessage) {}

    #[on_error]
    async fn on_failure(&mut self, failure: &Failure) {}
}

fn main() {}
