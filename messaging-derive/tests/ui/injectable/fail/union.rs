use messaging::prelude::*;

#[derive(Injectable)]
union Clock {
    ticks: u64,
}

fn main() {}
