use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use messaging::driver::{MessagingDriver, SubscribeOptions, Subscription};
use messaging::{Capabilities, Error, ErrorKind, MessageId, OutboundMessage};
use tokio::time::sleep;

use crate::connection::Connection;
use crate::faults::{Effect, Fault, Operation, injected};
use crate::store::Store;
use crate::{capabilities, limits, subscriber};

/// A driver whose broker is this process; a cheap handle, clones share everything.
///
/// See the [crate](crate) for what it does, and for how to test with it.
#[derive(Clone)]
pub struct MemoryDriver {
    pub(crate) store: Arc<Store>,
    pub(crate) connection: Arc<Connection>,
}

impl MemoryDriver {
    /// A driver with no queues yet.
    #[must_use]
    pub fn new() -> Self {
        Self::emulating(capabilities::MEMORY)
    }

    /// A driver that reports these capabilities and behaves by them: what another driver refuses, it refuses as well.
    ///
    /// - A publish that is delayed beyond `max_publish_delay` fails with `Unsupported`; one that is larger than
    ///   `max_message_size`, less what is kept free for a copy's headers, or has more than `max_headers`, with `TooLarge`.
    /// - A run that ends in a crash counts as an attempt where `crash_counts` says so, a release where `release_counts`
    ///   does; a message that was taken and never started is never charged.
    /// - Native retries wait as in-process ones do, rounded up to `native_delay_granularity`.
    ///
    /// Order is kept whatever `order` says. See [`capabilities`] for what the other drivers can do.
    #[must_use]
    pub fn emulating(capabilities: Capabilities) -> Self {
        let store = Store::new(capabilities);
        Self { store: Arc::new(store), connection: Arc::new(Connection::new()) }
    }

    /// Records the first `entries` settlements and published messages of each queue, in place of the first 10,000; 0 records
    /// nothing. To be set before the driver is used.
    #[must_use]
    pub fn recording(self, entries: usize) -> Self {
        self.store.common.recording.store(entries, Ordering::Relaxed);
        self
    }

    /// The driver of another process: the same queues, a connection of its own.
    ///
    /// A closed driver stays closed; what it left in its queues is consumed through another one. Recordings and faults are
    /// shared.
    #[must_use]
    pub fn another_process(&self) -> Self {
        Self { store: Arc::clone(&self.store), connection: Arc::new(Connection::new()) }
    }

    /// Stores a message as a foreign producer would: at any time, unchecked, and not among what was
    /// [`published`](Self::published).
    pub fn send(&self, message: OutboundMessage) {
        self.store.queue(message.queue()).store(message, false, 1);
    }

    /// Lets something go wrong from now on; faults are met in the order they were given.
    pub fn fail(&self, fault: Fault) {
        self.store.common.faults.add(fault);
    }

    /// Forgets every fault that has not happened yet; what hangs goes on hanging.
    pub fn heal(&self) {
        self.store.common.faults.clear();
    }

    /// Lets go on what hangs because of [`Fault::hang`].
    pub fn release_hung(&self) {
        self.store.common.gate.open();
        for queue in self.store.all() {
            queue.release_hung();
        }
        self.store.common.gate.look();
    }

    /// Loses the connection, and has it again at once.
    ///
    /// Every message in flight is taken back and delivered again: the signal of the old delivery fires, its settler has no
    /// right any more, and a run that had started counts as an attempt. The consumers are told of a fault, and that it
    /// healed. Publishes are not touched.
    pub fn disconnect(&self) {
        for queue in self.store.all() {
            let mut intakes = queue.intakes();
            intakes.retain(|intake| intake.connection == self.connection.id);
            for intake in &intakes {
                let error = Error::new(ErrorKind::Connection, "the connection to the memory broker was lost");
                intake.events.fault(messaging::driver::Fault { error, consuming_stopped: true });
            }
            queue.lose(self.connection.id, ErrorKind::Connection);
            intakes.iter().for_each(|intake| intake.events.healed());
        }
        self.store.common.gate.look();
    }

    /// Waits as a fault says, or fails; what is left of the effect is for the caller.
    async fn wait_or_fail(&self, effect: Effect, opened: u64, what: &str, queue: &str) -> Result<Effect, Error> {
        match effect {
            Effect::Error(kind) => return Err(injected(kind, what, queue)),
            Effect::Delay(delay) => sleep(delay).await,
            Effect::Hang => {
                self.store.common.gate.wait(opened, || self.connection.check_not_closed(what)).await?;
            }
            Effect::ErrorAfter(_) | Effect::Crash | Effect::Duplicate => (),
        }
        self.connection.check_not_closed(what).map(|()| effect)
    }

    /// Meets a fault of `connect` or `subscribe`, around what is to be done.
    async fn faulty<R>(
        &self,
        operation: Operation,
        what: &str,
        queue: Option<&str>,
        work: impl FnOnce() -> Result<R, Error>,
    ) -> Result<R, Error> {
        let opened = self.store.common.gate.opened();
        let Some(effect) = self.store.common.faults.meet(operation, queue) else { return work() };
        let queue = queue.unwrap_or("memory:");
        match self.wait_or_fail(effect, opened, what, queue).await? {
            Effect::Crash => Err(injected(ErrorKind::Connection, what, queue)),
            Effect::ErrorAfter(kind) => work().and_then(|_| Err(injected(kind, what, queue))),
            Effect::Error(_) | Effect::Delay(_) | Effect::Hang | Effect::Duplicate => work(),
        }
    }
}

#[async_trait]
impl MessagingDriver for MemoryDriver {
    fn name(&self) -> &'static str {
        if self.store.common.capabilities == capabilities::MEMORY { "memory" } else { "memory, emulating" }
    }

    fn capabilities(&self) -> Capabilities {
        self.store.common.capabilities
    }

    async fn connect(&self) -> Result<(), Error> {
        self.faulty(Operation::Connect, "connecting to", None, || self.connection.connect()).await
    }

    async fn subscribe(&self, options: SubscribeOptions) -> Result<Subscription, Error> {
        let what = "subscribing to";
        self.connection.check_connected(what)?;
        self.faulty(Operation::Subscribe, what, Some(&options.queue), || {
            let subscription = subscriber::open(self.store.queue(&options.queue), self.connection.id, &options);
            // Looked at once more: a close that came in between has not seen it.
            self.connection.check_connected(what).inspect_err(|_| subscription.control.stop_receiving())?;
            Ok(subscription)
        })
        .await
    }

    async fn publish(&self, message: OutboundMessage) -> Result<MessageId, Error> {
        let what = "publishing to";
        self.connection.check_connected(what)?;
        limits::check(&message, &self.store.common.capabilities)?;
        let id = message.id.clone();
        let queue = self.store.queue(message.queue());
        let opened = self.store.common.gate.opened();
        let Some(effect) = self.store.common.faults.meet(Operation::Publish, Some(&queue.name)) else {
            queue.store(message, true, 1);
            return Ok(id);
        };
        let effect = self.wait_or_fail(effect, opened, what, &queue.name).await?;
        queue.store(message, true, if effect == Effect::Duplicate { 2 } else { 1 });
        match effect {
            Effect::ErrorAfter(kind) => Err(injected(kind, what, &queue.name)),
            Effect::Crash => Err(injected(ErrorKind::Unconfirmed, what, &queue.name)),
            Effect::Error(_) | Effect::Delay(_) | Effect::Hang | Effect::Duplicate => Ok(id),
        }
    }

    async fn close(&self) -> Result<(), Error> {
        self.connection.close();
        for queue in self.store.all() {
            for intake in queue.intakes().iter().filter(|intake| intake.connection == self.connection.id) {
                queue.stop(intake);
            }
            queue.lose(self.connection.id, ErrorKind::Closed);
        }
        self.store.common.gate.look();
        Ok(())
    }

    fn dead_letter_name(&self, queue: &str) -> String {
        dead_letter_name(queue)
    }
}

/// The dead-letter queue of a queue whose consumer names none.
pub(crate) fn dead_letter_name(queue: &str) -> String {
    format!("{queue}.dead-letter")
}

impl Default for MemoryDriver {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryDriver")
            .field("connection", &self.connection)
            .field("queues", &self.store.all())
            .finish_non_exhaustive()
    }
}
