use messaging::prelude::*;

#[consumer("orders", concurrency = -1)]
struct Orders;

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {}
}

fn main() {}
