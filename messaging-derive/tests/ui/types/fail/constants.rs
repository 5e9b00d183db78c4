#![allow(unused_variables)]

use messaging::prelude::*;

const QUEUE: u32 = 5;
const ATTEMPTS: &str = "5";
const DELAY: u64 = 5;
const TYPE: Option<&str> = None;

#[consumer(QUEUE, concurrency = ATTEMPTS, dead_letter = QUEUE)]
struct Orders;

#[handlers]
impl Orders {
    #[on_message(TYPE, timeout = DELAY)]
    #[retry(attempts = ATTEMPTS, delay = DELAY, on(u32))]
    async fn on_any(&self, #[header(QUEUE)] header: String) {}
}

fn main() {}
