use messaging::prelude::*;

struct Orders;

#[consumer("orders")]
impl Orders {}

fn main() {}
