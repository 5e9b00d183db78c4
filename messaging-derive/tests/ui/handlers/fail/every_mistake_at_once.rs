#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("")]
    #[retry(delay = 5)]
    async fn on_a<T>(&mut self, #[header] a: String, b: impl Sized) {}

    #[on_message("b", timeout = 1m)]
    async fn on_b() {}

    #[retry(attempts = 5)]
    fn helper(&self) {}

    #[on_error]
    #[on_error]
    unsafe fn on_failure(&self) {}
}

fn main() {}
