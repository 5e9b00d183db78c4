use messaging::prelude::*;

#[derive(Injectable)]
#[injectable(scope = "transient")]
struct Typo;

#[derive(Injectable)]
#[injectable]
struct Nothing;

#[derive(Injectable)]
#[injectable(lifetime = "request")]
struct Unknown;

#[derive(Injectable)]
#[injectable(scope = "request")]
#[injectable(scope = "singleton")]
struct Twice;

fn main() {}
