#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("a", retries = 5)]
    async fn on_a(&self) {}

    #[on_message("b", "c")]
    async fn on_b(&self) {}
}

fn main() {}
