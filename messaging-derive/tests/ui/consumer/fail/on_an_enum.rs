use messaging::prelude::*;

#[consumer("orders")]
enum Orders {
    One,
}

fn main() {}
