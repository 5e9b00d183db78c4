#![allow(unused_variables)]

use messaging::prelude::*;

#[handlers]
struct Orders;

fn main() {}
