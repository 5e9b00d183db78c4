use messaging::prelude::*;
use messaging::{Consumer, DeadLetter, Injectable, Lifetime};

const QUEUE: &str = "orders";
const WORKERS: usize = 4;
const DEAD: &str = "orders.dead";

#[derive(Debug, PartialEq)]
struct Quorum(bool);

#[derive(Debug, PartialEq)]
struct Fifo;

mod names {
    pub fn queue() -> &'static str {
        "named"
    }
}

macro_rules! consumers {
    ($($name:ident: $queue:expr, $concurrency:literal;)*) => {$(
        #[consumer(queue = $queue, concurrency = $concurrency)]
        struct $name;

        #[handlers]
        impl $name {
            #[on_message]
            fn on_any(&self) {}
        }
    )*};
}

consumers! {
    Generated: "generated", 3;
}

#[consumer("orders", concurrency = 10, scope = "request", dead_letter = "orders.parked", options(Quorum(true), Fifo))]
struct Literal;

#[consumer(queue = QUEUE, concurrency = WORKERS, scope = "singleton", dead_letter = DEAD)]
struct Constant;

#[consumer(QUEUE, dead_letter = false)]
struct Bare;

#[consumer(queue = names::queue())]
struct Called;

macro_rules! handle {
    ($($name:ident)*) => {$(
        #[handlers]
        impl $name {
            #[on_message]
            async fn on_any(&self) {}
        }
    )*};
}

handle!(Literal Constant Bare Called);

fn main() {
    let literal = Literal::declaration();
    assert_eq!(literal.queue, "orders");
    assert_eq!(literal.concurrency.map(Into::into), Some(10));
    assert_eq!(literal.dead_letter, DeadLetter::Queue("orders.parked".into()));
    assert_eq!(literal.driver.get(), Some(&Quorum(true)));
    assert_eq!(literal.driver.get(), Some(&Fifo));
    assert_eq!(Literal::LIFETIME, Lifetime::Request);

    let constant = Constant::declaration();
    assert_eq!(constant.queue, "orders");
    assert_eq!(constant.concurrency.map(Into::into), Some(4));
    assert_eq!(constant.dead_letter, DeadLetter::Queue("orders.dead".into()));
    assert_eq!(Constant::LIFETIME, Lifetime::Singleton);

    let bare = Bare::declaration();
    assert_eq!(bare.dead_letter, DeadLetter::None);
    assert_eq!(bare.concurrency, None);
    assert_eq!(Bare::LIFETIME, Lifetime::Singleton);

    assert_eq!(Called::declaration().queue, "named");
    assert_eq!(Called::declaration().dead_letter, DeadLetter::Default);
    assert_eq!(Generated::declaration().queue, "generated");
    assert_eq!(Generated::declaration().concurrency.map(Into::into), Some(3));
}
