#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("a")]
    #[on_message("b")]
    async fn on_both(&self) {}
}

fn main() {}
