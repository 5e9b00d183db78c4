//! What every case does: one message, one handler, and a gate in front of it.

use std::hint::black_box;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use validator::Validate;

/// The type of every message that is sent.
pub const TYPE: &str = "order.created";

/// A second type that is registered and never sent, so that a choice is made.
pub const OTHER_TYPE: &str = "order.cancelled";

/// 58 bytes as JSON. It is validated by no rule, since the peers do not validate.
#[derive(Clone, Debug, Serialize, Deserialize, Validate)]
#[cfg_attr(feature = "peers", derive(ruststream::MessageInfo))]
pub struct OrderCreated {
    pub order_id: String,
    pub total: f64,
    pub quantity: u32,
}

/// What is sent, every time.
pub fn sample() -> OrderCreated {
    OrderCreated { order_id: "ord-000012345678".into(), total: 199.5, quantity: 3 }
}

/// One buffer for each message, in every case.
#[inline]
pub fn encode(order: &OrderCreated) -> Vec<u8> {
    serde_json::to_vec(order).unwrap()
}

#[inline]
pub fn decode(body: &[u8]) -> OrderCreated {
    serde_json::from_slice(body).unwrap()
}

static REMAINING: AtomicUsize = AtomicUsize::new(0);
static DRAINED: Notify = Notify::const_new();
static OPEN: AtomicBool = AtomicBool::new(true);
static OPENED: Notify = Notify::const_new();

/// The handler's work: reads the fields, counts, wakes who waits at the last one.
#[inline]
pub fn handle(order: &OrderCreated) {
    black_box((order.order_id.len(), order.total, order.quantity));
    if REMAINING.fetch_sub(1, Ordering::Relaxed) == 1 {
        DRAINED.notify_one();
    }
}

/// Holds the first handlers until the gate is open; one load afterwards.
#[inline]
pub async fn gate() {
    if !OPEN.load(Ordering::Acquire) {
        opened().await;
    }
}

#[cold]
async fn opened() {
    loop {
        let mut waiting = pin!(OPENED.notified());
        waiting.as_mut().enable();
        if OPEN.load(Ordering::Acquire) {
            return;
        }
        waiting.await;
    }
}

/// Expects that many messages; whether handlers run at once, or wait for [`open_gate`].
pub fn expect(messages: usize, open: bool) {
    REMAINING.store(messages, Ordering::Release);
    OPEN.store(open, Ordering::Release);
}

pub fn open_gate() {
    OPEN.store(true, Ordering::Release);
    OPENED.notify_waiters();
}

/// Waits for the last of the expected messages.
pub async fn drained() {
    while REMAINING.load(Ordering::Acquire) > 0 {
        DRAINED.notified().await;
    }
}
