//! What holds for any input: backoff, plans, patterns, routing, headers, attempts, delays.
#![allow(clippy::unwrap_used)]

mod headers;
mod patterns;
mod retry;

use std::cell::RefCell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use messaging::driver::DelayHeap;
use messaging::prelude::*;
use messaging::{
    Backoff, BoxFuture, Capabilities, Consumer, Declaration, HandlerEntry, HandlerTable, Handlers, HeaderValue, Jitter,
    MessageContext, OutboundMessage, Outcome, Pattern, RetryPlan, Step, WireNames,
};
use messaging_memory::{MemoryDriver, capabilities};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use tokio::time::Instant;

fn few() -> ProptestConfig {
    // A failure prints its seed; nothing is written beside the tests.
    ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() }
}

/// From nothing to beyond what a clock can count, small ones more often.
fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        (0_u64..10_000).prop_map(Duration::from_millis),
        (0_u64..40 * 86_400).prop_map(Duration::from_secs),
        any::<u64>().prop_map(Duration::from_nanos),
        Just(Duration::MAX),
    ]
}
