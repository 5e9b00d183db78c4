use messaging::prelude::*;

#[derive(Injectable)]
struct Clock {
    #[inject]
    nothing: u64,
    #[inject(optional)]
    unknown: u64,
    #[inject(default = 5)]
    value: u64,
    #[inject(default, default)]
    twice: u64,
    #[inject = "default"]
    equals: u64,
}

fn main() {}
