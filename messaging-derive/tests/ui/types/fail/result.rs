#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

struct Broken;

#[handlers]
impl Orders {
    #[on_message("a")]
    async fn number(&self) -> u32 {
        5
    }

    #[on_message("b")]
    fn no_error(&self) -> Result<(), Broken> {
        Ok(())
    }

    #[on_error]
    async fn on_failure(&self) -> bool {
        true
    }
}

fn main() {}
