use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("a")]
    #[retry(attempts = 5, on())]
    async fn on_a(&self) {}

    #[on_message("b")]
    #[retry(attempts = 5, never(5))]
    async fn on_b(&self) {}
}

fn main() {}
