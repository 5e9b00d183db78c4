use messaging::prelude::*;

#[consumer("orders", prefetch = 10)]
struct Orders;

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {}
}

fn main() {}
