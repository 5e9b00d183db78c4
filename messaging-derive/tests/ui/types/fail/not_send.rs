#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {
        let local = std::rc::Rc::new(5);
        std::future::ready(()).await;
        drop(local);
    }
}

fn main() {}
