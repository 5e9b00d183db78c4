#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("a")]
    async fn parameter(&self, message: impl Into<String>) {}

    #[on_message("b")]
    fn result(&self) -> impl Future<Output = ()> {
        async {}
    }
}

fn main() {}
