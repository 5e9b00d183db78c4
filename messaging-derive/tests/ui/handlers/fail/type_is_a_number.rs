#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message(5)]
    async fn on_any(&self) {}
}

fn main() {}
