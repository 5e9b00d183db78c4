use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("a")]
    #[retry(attempts = 5, backoff = linear)]
    async fn on_a(&self) {}

    #[on_message("b")]
    #[retry(attempts = 5, backoff = "expnential")]
    async fn on_b(&self) {}

    #[on_message("c")]
    #[retry(attempts = 5, backoff = 2)]
    async fn on_c(&self) {}
}

fn main() {}
