use messaging::prelude::*;

#[consumer("orders")]
struct Orders(std::sync::Arc<str>);

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {}
}

fn main() {}
