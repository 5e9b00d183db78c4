use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("a")]
    #[retry(attempts = 5, delay = 1 s, jitter = 2)]
    async fn on_a(&self) {}
}

fn main() {}
