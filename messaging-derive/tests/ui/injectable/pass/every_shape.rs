#![deny(warnings)]
#![forbid(unsafe_code)]

use messaging::prelude::*;
use std::sync::Arc;

use messaging::Lifetime;

#[derive(Injectable)]
struct Unit;

#[derive(Injectable)]
struct Empty {}

#[derive(Injectable)]
#[injectable(scope = "request")]
struct Request {
    unit: Arc<Unit>,
    #[inject(default)]
    count: u64,
    #[cfg(any())]
    absent: NoSuchType,
}

#[derive(Injectable)]
#[injectable(scope = "singleton")]
struct Generic<T: Clone, const N: usize, U = ()>
where
    T: Send + Sync + 'static,
    U: Send + Sync + 'static,
{
    r#type: Arc<T>,
    other: Arc<U>,
    #[inject(default)]
    numbers: Vec<[u8; N]>,
}

fn main() {
    let names = |keys: Vec<messaging::app::Key>| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(Unit::LIFETIME, Lifetime::Singleton);
    assert_eq!(names(Empty::dependencies()), [""; 0]);
    assert_eq!(Request::LIFETIME, Lifetime::Request);
    assert_eq!(names(Request::dependencies()), ["Unit"]);
    assert_eq!(names(<Generic<String, 3>>::dependencies()), ["String", "()"]);
    let _ = |value: Request| (value.unit, value.count);
    let _ = |value: Generic<u8, 1>| (value.r#type, value.other, value.numbers);
}
