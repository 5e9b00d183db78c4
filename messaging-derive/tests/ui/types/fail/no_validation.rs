#![allow(unused_variables)]

use messaging::prelude::*;

#[derive(Deserialize)]
struct Order;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self, order: Message<Order>) {}
}

fn main() {}
