#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("order.*")]
    async fn on_order(&self) {}

    #[on_message("*.created")]
    async fn on_created(&self) {}
}

fn main() {}
