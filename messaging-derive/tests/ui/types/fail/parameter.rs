#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("a")]
    async fn number(&self, message: &InboundMessage, number: i32) {}

    #[on_message("b")]
    async fn map(&self, map: std::collections::HashMap<String, String>) {}

    #[on_message("c")]
    async fn failure(&self, failure: &Failure) {}
}

fn main() {}
