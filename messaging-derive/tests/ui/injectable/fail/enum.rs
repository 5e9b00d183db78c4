use messaging::prelude::*;

#[derive(Injectable)]
enum Clock {
    Utc,
}

fn main() {}
