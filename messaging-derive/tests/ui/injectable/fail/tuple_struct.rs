use messaging::prelude::*;

#[derive(Injectable)]
struct Clock(std::sync::Arc<str>);

fn main() {}
