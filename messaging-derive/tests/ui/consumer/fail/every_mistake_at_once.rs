use messaging::prelude::*;

#[consumer("", concurrency = 0, scope = "app", dead_letter = 5, lanes = 3)]
struct Orders {
    #[inject(always)]
    count: u32,
}

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {}
}

fn main() {}
