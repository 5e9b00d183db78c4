#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

struct Tenant;

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self, #[header("tenant")] tenant: Tenant) {}
}

fn main() {}
