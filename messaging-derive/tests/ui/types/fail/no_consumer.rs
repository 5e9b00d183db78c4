#![allow(unused_variables)]

use messaging::prelude::*;

struct Orders;

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {}
}

fn is_consumer<C: messaging::Consumer>() {}

fn check() {
    is_consumer::<Orders>();
}

fn main() {}
