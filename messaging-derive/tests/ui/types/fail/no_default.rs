#![allow(unused_variables)]

use messaging::prelude::*;

struct Ticks;

#[derive(Injectable)]
struct Clock {
    #[inject(default)]
    ticks: Ticks,
}

fn main() {}
