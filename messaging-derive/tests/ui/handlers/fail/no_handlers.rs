#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    fn helper(&self) {}
}

fn main() {}
