#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

trait Handle {
    fn on_any(&self);
}

#[handlers]
impl Handle for Orders {
    #[on_message]
    fn on_any(&self) {}
}

#[handlers]
impl Orders {
    #[on_message]
    fn on_other(&self) {}
}

fn main() {}
