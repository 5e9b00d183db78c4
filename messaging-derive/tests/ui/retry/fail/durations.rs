use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("a")]
    #[retry(attempts = 5, delay = 1m)]
    async fn on_a(&self) {}

    #[on_message("b")]
    #[retry(attempts = 5, delay = 30)]
    async fn on_b(&self) {}

    #[on_message("c")]
    #[retry(attempts = 5, delay = 1.5)]
    async fn on_c(&self) {}

    #[on_message("d")]
    #[retry(attempts = 5, delay = 1sec)]
    async fn on_d(&self) {}

    #[on_message("e")]
    #[retry(attempts = 5, delay = 1e3s)]
    async fn on_e(&self) {}

    #[on_message("f")]
    #[retry(attempts = 5, delay = 0x1s)]
    async fn on_f(&self) {}

    #[on_message("g")]
    #[retry(attempts = 5, delay = -1s)]
    async fn on_g(&self) {}

    #[on_message("h")]
    #[retry(attempts = 5, delay = "1s")]
    async fn on_h(&self) {}

    #[on_message("i")]
    #[retry(attempts = 5, delay = 99999999999999999999d)]
    async fn on_i(&self) {}

    #[on_message("j")]
    #[retry(attempts = 5, delay = true)]
    async fn on_j(&self) {}
}

fn main() {}
