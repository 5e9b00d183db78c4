use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("a")]
    #[retry(attempts = 5, delays = 1s)]
    async fn on_a(&self) {}

    #[on_message("b")]
    #[retry(attempts = 5, exponential)]
    async fn on_b(&self) {}

    #[on_message("c")]
    #[retry(attempts = 5, on = A)]
    async fn on_c(&self) {}

    #[on_message("d")]
    #[retry(attempts(5))]
    async fn on_d(&self) {}

    #[on_message("e")]
    #[retry(attempts = 5, attempts = 6)]
    async fn on_e(&self) {}

    #[on_message("f")]
    #[retry(false, attempts = 6)]
    async fn on_f(&self) {}

    #[on_message("g")]
    #[retry = 5]
    async fn on_g(&self) {}
}

fn main() {}
