use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {}

    #[retry(attempts = 5)]
    async fn helper(&self) {}

    #[on_error]
    #[retry(attempts = 5)]
    async fn on_failure(&self) {}
}

fn main() {}
