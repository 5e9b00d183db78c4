#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {}

    #[on_error]
    async fn on_failure(&self) {}

    #[on_error]
    async fn on_other_failure(&self) {}
}

fn main() {}
