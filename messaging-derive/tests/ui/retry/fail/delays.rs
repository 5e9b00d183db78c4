use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("a")]
    #[retry(attempts = 5, delay = 10s, max_delay = 5s)]
    async fn on_a(&self) {}

    #[on_message("b")]
    #[retry(attempts = 5, max_delay = 500ms)]
    async fn on_b(&self) {}
}

fn main() {}
