#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("order.created")]
    async fn on_created(&self) {}

    #[on_message("order.created")]
    async fn on_created_again(&self) {}

    #[on_message("order.*")]
    async fn on_order(&self) {}

    #[on_message("order.**")]
    async fn on_order_again(&self) {}
}

fn main() {}
