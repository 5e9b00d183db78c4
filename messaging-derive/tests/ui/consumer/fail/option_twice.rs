use messaging::prelude::*;

#[consumer("orders", concurrency = 10, concurrency = 20)]
struct Orders;

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {}
}

fn main() {}
