#![forbid(unsafe_code)]
#![deny(warnings)]

use messaging::prelude::*;
use messaging::__private::CONSUMERS;

#[consumer("orders")]
struct Orders;

#[consumer("invoices")]
struct Invoices;

#[consumer("of anything")]
struct Generic<T: Send + Sync + 'static> {
    value: std::sync::Arc<T>,
}

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {}
}

#[handlers]
impl Invoices {
    #[on_message]
    async fn on_any(&self) {}
}

#[handlers]
impl<T: Send + Sync + 'static> Generic<T> {
    #[on_message]
    async fn on_any(&self) {
        let _ = &self.value;
    }
}

fn main() {
    // A generic consumer is registered by hand: nothing says of what it is.
    assert_eq!(CONSUMERS.len(), 2);
}
