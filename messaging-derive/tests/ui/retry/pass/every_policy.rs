#![deny(warnings)]

use messaging::prelude::*;
use std::time::Duration;

use messaging::Handlers;

const ATTEMPTS: u32 = 7;
const DELAY: Duration = Duration::from_millis(20);
const SPREAD: f64 = 0.5;

#[consumer("orders")]
#[derive(Debug)]
struct Orders;

macro_rules! attempts {
    () => {
        9
    };
}

#[handlers]
impl Orders {
    #[on_message("all")]
    #[retry(attempts = 5, backoff = fixed, delay = 250ms, max_delay = 1.5s, jitter = 0.2, on(std::io::Error, std::fmt::Error,), never(std::num::ParseIntError))]
    async fn all(&self) {}

    #[on_message("alone")]
    #[retry(attempts = 5)]
    async fn alone(&self) {}

    #[on_message("once")]
    #[retry(false)]
    async fn once(&self) {}

    #[on_message("constants")]
    #[retry(attempts = ATTEMPTS, delay = DELAY, max_delay = Duration::from_secs(1), jitter = SPREAD)]
    async fn constants(&self) {}

    #[on_message("quoted")]
    #[retry(attempts = attempts!(), backoff = "exponential", delay = 2h, max_delay = 1d, jitter = 1)]
    async fn quoted(&self) {}

    #[on_message("none")]
    async fn none(&self) {}
}

fn main() {
    let table = format!("{:?}", Orders::table());
    for policy in [
        "retry: Some(RetryPolicy { attempts: 5, backoff: Fixed, delay: 250ms, max_delay: Some(1.5s), jitter: 0.2 }), filter: RetryFilter { on: Some(",
        "retry: Some(RetryPolicy { attempts: 5, backoff: Exponential, delay: 1s, max_delay: None, jitter: 0.0 }), filter: RetryFilter { on: None, never: None }",
        "retry: Some(RetryPolicy { attempts: 1, ",
        "retry: Some(RetryPolicy { attempts: 7, backoff: Exponential, delay: 20ms, max_delay: Some(1s), jitter: 0.5 })",
        "retry: Some(RetryPolicy { attempts: 9, backoff: Exponential, delay: 7200s, max_delay: Some(86400s), jitter: 1.0 })",
        r#"pattern: Some("none"), retry: None"#,
    ] {
        assert!(table.contains(policy), "{policy} is not in {table}");
    }
}
