use messaging::prelude::*;

#[consumer(concurrency = 10)]
struct Orders;

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {}
}

fn main() {}
