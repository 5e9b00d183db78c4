#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message]
    #[on_error]
    async fn on_both(&self) {}
}

fn main() {}
