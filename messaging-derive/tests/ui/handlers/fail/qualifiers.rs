#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("a")]
    unsafe fn unsafe_one(&self) {}

    #[on_message("b")]
    const fn const_one(&self) {}

    #[on_message("c")]
    extern "C" fn extern_one(&self) {}
}

fn main() {}
