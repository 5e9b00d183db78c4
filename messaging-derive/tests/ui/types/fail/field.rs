#![allow(unused_variables)]

use messaging::prelude::*;

#[derive(Injectable)]
struct Clock {
    ticks: u32,
}

#[consumer("orders")]
struct Orders {
    name: String,
}

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {}
}

fn main() {}
