use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use messaging::driver::{DriverEvents, Fault, SubscribeOptions};
use messaging::{Error, InboundMessage, Settlement, WireNames};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::buffer::Buffer;

/// One subscription: what its lanes, its settlers and its channels share.
pub(crate) struct Intake {
    pub(crate) queue: Arc<str>,
    pub(crate) consumer: Arc<str>,
    pub(crate) names: WireNames,
    pub(crate) native_delays: BTreeSet<Duration>,
    pub(crate) events: Arc<dyn DriverEvents>,
    /// The parent of every message's signal.
    pub(crate) stopping: Arc<CancellationToken>,
    pub(crate) buffer: Buffer,
    /// Cancelled when receiving ends.
    pub(crate) stop: CancellationToken,
    /// Cancelled when the driver closes: nothing can be settled any more.
    pub(crate) closed: CancellationToken,
    /// Told at the first poll of a lane; before it, nothing is received.
    pub(crate) wanted: Notify,
    lanes: AtomicUsize,
    /// How many settlements were handed over and not told.
    pending: AtomicUsize,
    told: Notify,
}

impl Intake {
    pub(crate) fn new(options: &SubscribeOptions) -> Self {
        Self {
            queue: Arc::clone(&options.queue),
            consumer: Arc::clone(&options.consumer),
            names: options.names.clone(),
            native_delays: options.native_delays.clone(),
            events: Arc::clone(&options.events),
            stopping: Arc::clone(&options.stopping),
            buffer: Buffer::new(options.concurrency),
            stop: CancellationToken::new(),
            closed: CancellationToken::new(),
            wanted: Notify::new(),
            lanes: AtomicUsize::new(options.concurrency),
            pending: AtomicUsize::new(0),
            told: Notify::new(),
        }
    }

    /// Ends receiving; the token first, so that nothing that is given back is received again.
    pub(crate) fn stop_receiving(&self) {
        self.stop.cancel();
        self.buffer.stop();
    }

    /// A lane is gone; with the last one, receiving ends.
    pub(crate) fn leave(&self, lane: usize) {
        self.buffer.leave(lane);
        if self.lanes.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.stop_receiving();
        }
    }

    /// Notes that a settlement, or a message that is given back, is on its way.
    pub(crate) fn handed_over(&self) {
        self.pending.fetch_add(1, Ordering::AcqRel);
    }

    /// Notes that something which was handed over is done.
    pub(crate) fn done(&self) {
        if self.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.told.notify_waiters();
        }
    }

    /// Tells what became of a settlement.
    pub(crate) fn tell(&self, message: &Arc<InboundMessage>, settlement: &Settlement, result: Result<(), Error>) {
        self.events.settled(message, settlement, result);
        self.done();
    }

    pub(crate) fn fault(&self, error: Error) {
        self.events.fault(Fault { error, consuming_stopped: true });
    }

    /// Waits until nothing is on its way.
    pub(crate) async fn flushed(&self) {
        loop {
            let mut told = std::pin::pin!(self.told.notified());
            told.as_mut().enable();
            if self.pending.load(Ordering::Acquire) == 0 {
                return;
            }
            told.await;
        }
    }

    pub(crate) fn pending(&self) -> usize {
        self.pending.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Intake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake").field("queue", &self.queue).finish_non_exhaustive()
    }
}
