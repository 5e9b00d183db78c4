#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {}

    #[on_message]
    async fn on_other(&self) {}
}

fn main() {}
