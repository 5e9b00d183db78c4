use messaging::prelude::*;

#[consumer("orders")]
#[derive(Debug, Injectable)]
struct Orders;

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {}
}

fn main() {}
