#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("a", timeout = 0s)]
    async fn zero(&self) {}

    #[on_message("b", timeout = 30)]
    async fn no_unit(&self) {}

    #[on_message("c", timeout = 1s, timeout = 2s)]
    async fn twice(&self) {}
}

fn main() {}
