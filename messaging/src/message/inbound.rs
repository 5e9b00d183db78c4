use std::fmt;
use std::num::NonZeroU32;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

use super::Envelope;

/// Which run of a message this is; the first delivery is attempt 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(NonZeroU32);

impl Attempt {
    /// The first delivery.
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    /// Attempt `number`; 0 counts as the first.
    #[must_use]
    pub fn new(number: u32) -> Self {
        NonZeroU32::new(number).map_or(Self::FIRST, Self)
    }

    /// The number, from 1.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0.get()
    }

    /// The attempt after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One delivery of a message, as a handler sees it; derefs to its [`Envelope`].
///
/// Whoever holds a message can read it and watch its [`signal`](Self::signal). Nobody who holds it can settle it.
///
/// ```
/// use messaging::{Attempt, Envelope, InboundMessage};
///
/// let message = InboundMessage::new("orders", Envelope::new("{}"), Attempt::FIRST);
/// assert_eq!(message.queue(), "orders");
/// assert_eq!(&message.body[..], b"{}");
/// assert!(!message.signal().is_cancelled());
/// ```
pub struct InboundMessage {
    envelope: Envelope,
    queue: Arc<str>,
    attempt: Attempt,
    parent: Option<Arc<CancellationToken>>,
    cancelled: AtomicBool,
    started: AtomicBool,
    token: OnceLock<CancellationToken>,
    failure: OnceLock<Arc<str>>,
}

impl InboundMessage {
    /// Makes the message of one delivery; for drivers and tests.
    #[must_use]
    #[inline]
    pub fn new(queue: impl Into<Arc<str>>, envelope: Envelope, attempt: Attempt) -> Self {
        Self {
            envelope,
            queue: queue.into(),
            attempt,
            parent: None,
            cancelled: AtomicBool::new(false),
            started: AtomicBool::new(false),
            token: OnceLock::new(),
            failure: OnceLock::new(),
        }
    }

    /// Lets the message's signal fire when `parent` is cancelled; a driver passes the token of its subscription.
    #[must_use]
    #[inline]
    pub fn parent(mut self, parent: Arc<CancellationToken>) -> Self {
        self.parent = Some(parent);
        self
    }

    /// The queue it came from.
    #[must_use]
    pub fn queue(&self) -> &str {
        &self.queue
    }

    /// The queue's name, shared.
    #[must_use]
    pub fn shared_queue(&self) -> Arc<str> {
        Arc::clone(&self.queue)
    }

    /// Which run of the message this is.
    #[must_use]
    #[inline]
    pub fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// The message type as text, where there is one.
    #[must_use]
    #[inline]
    pub fn message_type(&self) -> Option<&str> {
        self.envelope.message_type.as_deref()
    }

    /// Fires when the handler should give up: the application stops, or the broker has taken the message back.
    ///
    /// The token is made when it is asked for; one that is asked for late is born cancelled.
    #[must_use]
    pub fn signal(&self) -> CancellationToken {
        let token = self
            .token
            .get_or_init(|| self.parent.as_ref().map_or_else(CancellationToken::new, |parent| parent.child_token()));
        // The flag is set before the token is looked for, and read after it is in place: one of the two sees the other.
        if self.cancelled.load(Ordering::SeqCst) {
            token.cancel();
        }
        token.clone()
    }

    /// Fires the signal of this delivery; for drivers, when the right to settle it is lost.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        if let Some(token) = self.token.get() {
            token.cancel();
        }
    }

    /// Notes that user code begins to run with it; the engine does, and tests that stand in for it.
    #[inline]
    pub fn start(&self) {
        self.started.store(true, Ordering::Relaxed);
    }

    /// Whether user code has begun to run with it. A driver that gets it back unsettled counts an attempt then, where it
    /// counts at all: else a message that always breaks the process would come back for ever.
    #[must_use]
    #[inline]
    pub fn has_started(&self) -> bool {
        self.started.load(Ordering::Relaxed)
    }

    /// What went wrong in this delivery, where something did: for logs, and for what a driver records.
    #[must_use]
    #[inline]
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(|text| &**text)
    }

    /// Notes what went wrong, where nothing is noted yet.
    pub(crate) fn note_failure_with(&self, text: impl FnOnce() -> String) -> &str {
        self.failure.get_or_init(|| Arc::from(text()))
    }

    /// The parts that outlive this delivery; what a driver keeps when it delivers the message again.
    #[must_use]
    #[inline]
    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    /// Takes the parts out.
    #[must_use]
    pub fn into_envelope(self) -> Envelope {
        self.envelope
    }
}

impl Deref for InboundMessage {
    type Target = Envelope;

    fn deref(&self) -> &Envelope {
        &self.envelope
    }
}

impl fmt::Debug for InboundMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InboundMessage")
            .field("queue", &self.queue)
            .field("attempt", &self.attempt)
            .field("envelope", &self.envelope)
            .finish_non_exhaustive()
    }
}
