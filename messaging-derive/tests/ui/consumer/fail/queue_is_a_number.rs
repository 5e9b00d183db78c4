use messaging::prelude::*;

#[consumer(queue = 5)]
struct Orders;

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {}
}

fn main() {}
