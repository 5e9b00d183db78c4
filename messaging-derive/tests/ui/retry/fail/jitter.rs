use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("a")]
    #[retry(attempts = 5, jitter = 1.5)]
    async fn on_a(&self) {}

    #[on_message("b")]
    #[retry(attempts = 5, jitter = -0.1)]
    async fn on_b(&self) {}

    #[on_message("c")]
    #[retry(attempts = 5, jitter = "0.2")]
    async fn on_c(&self) {}

    #[on_message("d")]
    #[retry(attempts = 5, jitter = 0.2s)]
    async fn on_d(&self) {}
}

fn main() {}
