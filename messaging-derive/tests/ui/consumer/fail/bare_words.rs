use messaging::prelude::*;

#[consumer("orders", request, "invoices")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {}
}

fn main() {}
