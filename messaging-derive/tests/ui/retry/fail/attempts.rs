use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("a")]
    #[retry]
    async fn on_a(&self) {}

    #[on_message("b")]
    #[retry()]
    async fn on_b(&self) {}

    #[on_message("c")]
    #[retry(delay = 1s)]
    async fn on_c(&self) {}

    #[on_message("d")]
    #[retry(attempts = 0)]
    async fn on_d(&self) {}

    #[on_message("e")]
    #[retry(attempts = -1)]
    async fn on_e(&self) {}

    #[on_message("f")]
    #[retry(attempts = "5")]
    async fn on_f(&self) {}

    #[on_message("g")]
    #[retry(attempts = 5000000000)]
    async fn on_g(&self) {}

    #[on_message("h")]
    #[retry(true)]
    async fn on_h(&self) {}

    #[on_message("i")]
    #[retry(5)]
    async fn on_i(&self) {}
}

fn main() {}
