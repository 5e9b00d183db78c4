#![allow(unused_variables)]

use messaging::prelude::*;

struct Orders;

impl Orders {
    #[on_message("order.created")]
    #[retry(attempts = 5)]
    async fn on_created(&self, #[header("tenant")] tenant: String) {}

    #[on_error]
    async fn on_failure(&self) {}
}

#[on_message]
async fn on_any() {}

#[retry(false)]
struct Invoices;

fn main() {}
