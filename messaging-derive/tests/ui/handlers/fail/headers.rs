#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("a")]
    async fn unnamed(&self, #[header] tenant: String) {}

    #[on_message("b")]
    async fn empty(&self, #[header("")] tenant: String) {}

    #[on_message("c")]
    async fn twice(&self, #[header("a")] #[header("b")] tenant: String) {}

    #[on_message("d")]
    async fn options(&self, #[header("a", "b")] tenant: String) {}

    #[on_message("e")]
    async fn conditional(&self, #[cfg(all())] tenant: Attempt) {}

    fn helper(&self, #[header("tenant")] tenant: String) {}
}

fn main() {}
