use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("a")]
    #[retry(attempts = 5)]
    #[retry(attempts = 6)]
    async fn on_a(&self) {}
}

fn main() {}
