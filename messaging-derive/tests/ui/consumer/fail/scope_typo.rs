use messaging::prelude::*;

#[consumer("orders", scope = "requst")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {}
}

fn main() {}
