#![allow(unused_variables)]

use messaging::prelude::*;

#[consumer("orders")]
struct Orders;

fn main() {}
