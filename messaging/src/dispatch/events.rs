//! What happens, for people, logs and metrics.

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::health::{Counts, QueueHealth, QueueState, STATES};
use crate::driver::{DriverEvents, Fault};
use crate::error::Error;
use crate::guard::{Panic, guarded};
use crate::message::InboundMessage;
use crate::settlement::{Reason, Settlement};

/// Something that happened; given to the function set with `MessagingOptions::on_event`.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// A settlement has reached the broker.
    Settled {
        /// What was settled; its `failure()` is the error, where there was one.
        message: &'e InboundMessage,
        /// How.
        settlement: &'e Settlement,
    },
    /// A settlement has not reached the broker: the message may be delivered again.
    SettlementFailed {
        /// What was to be settled.
        message: &'e InboundMessage,
        /// How.
        settlement: &'e Settlement,
        /// Why not.
        error: &'e Error,
    },
    /// A dead-letter copy was not confirmed: the message is released, and the copy tried again when it comes back.
    CopyFailed {
        /// What was to be dead-lettered.
        message: &'e InboundMessage,
        /// Where it was to go.
        dead_letter: &'e str,
        /// Why it was to go there.
        reason: Reason,
        /// Why it could not.
        error: &'e Error,
    },
    /// A driver's fault; it heals by itself, or health says otherwise.
    Fault {
        /// The queue.
        queue: &'e str,
        /// What broke.
        fault: &'e Fault,
    },
    /// A queue is consumed again.
    Healed {
        /// The queue.
        queue: &'e str,
    },
    /// A worker met a defect of the library or the driver; the message in hand was given back, and the worker goes on.
    WorkerFailed {
        /// The queue.
        queue: &'e str,
        /// What it panicked with.
        panic: &'e str,
    },
    /// A queue is not consumed any more, and that cannot heal.
    Ended {
        /// The queue.
        queue: &'e str,
        /// Why.
        error: &'e Error,
    },
}

/// Who wants to know.
pub(crate) type Listener = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

/// What one consumer's engine and its driver tell.
pub(crate) struct Events {
    queue: Arc<str>,
    consumer: Arc<str>,
    listener: Option<Listener>,
    state: AtomicU8,
    last_error: Mutex<Option<String>>,
    received: AtomicU64,
    acked: AtomicU64,
    retried: AtomicU64,
    released: AtomicU64,
    dead_lettered: AtomicU64,
    discarded: AtomicU64,
    settlements_failed: AtomicU64,
    copies_failed: AtomicU64,
    faults: AtomicU64,
}

impl Events {
    pub(crate) fn new(queue: Arc<str>, consumer: Arc<str>, listener: Option<Listener>) -> Self {
        let zero = AtomicU64::default;
        Self {
            queue,
            consumer,
            listener,
            state: AtomicU8::new(0),
            last_error: Mutex::default(),
            received: zero(),
            acked: zero(),
            retried: zero(),
            released: zero(),
            dead_lettered: zero(),
            discarded: zero(),
            settlements_failed: zero(),
            copies_failed: zero(),
            faults: zero(),
        }
    }

    pub(crate) fn shared_consumer(&self) -> Arc<str> {
        Arc::clone(&self.consumer)
    }

    pub(crate) fn received(&self, deliveries: usize) {
        self.received.fetch_add(deliveries as u64, Ordering::Relaxed);
    }

    pub(crate) fn enter(&self, state: QueueState) {
        let index = STATES.iter().position(|known| *known == state).unwrap_or_default();
        self.state.store(index as u8, Ordering::Relaxed);
    }

    pub(crate) fn health(&self) -> QueueHealth {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        QueueHealth {
            queue: Arc::clone(&self.queue),
            consumer: Arc::clone(&self.consumer),
            state: STATES[usize::from(self.state.load(Ordering::Relaxed)) % STATES.len()],
            last_error: self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            counts: Counts {
                received: read(&self.received),
                acked: read(&self.acked),
                retried: read(&self.retried),
                released: read(&self.released),
                dead_lettered: read(&self.dead_lettered),
                discarded: read(&self.discarded),
                settlements_failed: read(&self.settlements_failed),
                copies_failed: read(&self.copies_failed),
                faults: read(&self.faults),
            },
        }
    }

    pub(super) fn copy_failed(&self, message: &InboundMessage, dead_letter: &str, reason: Reason, error: &Error) {
        self.copies_failed.fetch_add(1, Ordering::Relaxed);
        let text = error.chain();
        tracing::error!(
            queue = %self.queue, id = %message.id, dead_letter, %reason, error = text, failure = message.failure(),
            "the dead-letter copy was not confirmed, the message is released"
        );
        self.note_error(text);
        self.tell(&Event::CopyFailed { message, dead_letter, reason, error });
    }

    pub(super) fn ended(&self, error: Error) {
        let text = error.chain();
        tracing::error!(queue = %self.queue, consumer = %self.consumer, error = text, "the queue is not consumed any more");
        self.note_error(text);
        self.enter(QueueState::Ended);
        self.tell(&Event::Ended { queue: &self.queue, error: &error });
    }

    pub(super) fn worker_failed(&self, panic: &Panic) {
        tracing::error!(queue = %self.queue, consumer = %self.consumer, %panic, "a worker failed and goes on");
        let text = panic.to_string();
        self.tell(&Event::WorkerFailed { queue: &self.queue, panic: &text });
        self.note_error(text);
    }

    fn note_error(&self, text: String) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }

    fn tell(&self, event: &Event<'_>) {
        if let Some(listener) = &self.listener
            && let Err(panic) = guarded(|| listener(event))
        {
            tracing::error!(queue = %self.queue, %panic, "the event listener panicked");
        }
    }

    fn count(&self, message: &InboundMessage, settlement: &Settlement) {
        let (id, attempt, error) = (&message.id, message.attempt(), message.failure());
        let counter = match settlement {
            Settlement::Ack => &self.acked,
            Settlement::Retry { step, .. } => {
                tracing::warn!(queue = %self.queue, %id, %attempt, delay = ?step.delay(), error, "retried");
                &self.retried
            }
            Settlement::Release { delay } => {
                tracing::debug!(queue = %self.queue, %id, %attempt, ?delay, "released");
                &self.released
            }
            Settlement::DeadLetter(reason) => {
                tracing::error!(queue = %self.queue, %id, %attempt, %reason, error, "dead-lettered");
                &self.dead_lettered
            }
            Settlement::Discard(reason) => {
                tracing::error!(queue = %self.queue, %id, %attempt, %reason, error, "discarded");
                &self.discarded
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl DriverEvents for Events {
    fn settled(&self, message: &Arc<InboundMessage>, settlement: &Settlement, result: Result<(), Error>) {
        match result {
            Ok(()) => {
                self.count(message, settlement);
                if self.listener.is_some() {
                    self.tell(&Event::Settled { message, settlement });
                }
            }
            Err(error) => {
                self.settlements_failed.fetch_add(1, Ordering::Relaxed);
                let text = error.chain();
                tracing::error!(
                    queue = %self.queue, id = %message.id, settlement = settlement.name(), error = text,
                    "the settlement failed, the message may be delivered again"
                );
                self.note_error(text);
                self.tell(&Event::SettlementFailed { message, settlement, error: &error });
            }
        }
    }

    fn fault(&self, fault: Fault) {
        self.faults.fetch_add(1, Ordering::Relaxed);
        let text = fault.error.chain();
        tracing::warn!(queue = %self.queue, error = text, consuming_stopped = fault.consuming_stopped, "fault");
        self.note_error(text);
        if fault.consuming_stopped {
            self.enter(QueueState::Healing);
        }
        self.tell(&Event::Fault { queue: &self.queue, fault: &fault });
    }

    fn healed(&self) {
        tracing::info!(queue = %self.queue, "consumed again");
        self.enter(QueueState::Consuming);
        self.tell(&Event::Healed { queue: &self.queue });
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("queue", &self.queue).field("consumer", &self.consumer).finish_non_exhaustive()
    }
}
