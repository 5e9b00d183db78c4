use messaging::prelude::*;

#[consumer("orders", dead_letter = true)]
struct Orders;

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {}
}

fn main() {}
