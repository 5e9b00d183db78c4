use messaging::prelude::*;

#[consumer("orders")]
#[injectable(scope = "request")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {}
}

fn main() {}
