use std::future::Future;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use messaging::{Envelope, OutboundMessage, Settlement};
use tokio::time::timeout;

use crate::driver::{MemoryDriver, dead_letter_name};
use crate::recorder::{Entry, Recorder};

/// How long [`MemoryDriver::idle`] waits, on tokio's clock.
const LONGEST_WAIT: Duration = Duration::from_secs(400 * 86_400);

/// What tests look at.
impl MemoryDriver {
    /// Waits until every queue that is consumed is empty: nothing ready, in flight or delayed.
    ///
    /// A retry that is waited for counts; under a paused clock the wait takes no time. Messages of a queue without a consumer
    /// do not count, and a queue whose subscriptions were stopped has none.
    ///
    /// # Panics
    /// After 400 days of tokio's clock, naming a message that is still there: under a paused clock that is a handler which
    /// waits for something that never comes. Sockets and threads do not hold a paused clock up, so waiting for one there
    /// comes to the same.
    #[track_caller]
    pub fn idle(&self) -> impl Future<Output = ()> + Send + 'static {
        let caller = Location::caller();
        let store = Arc::clone(&self.store);
        async move {
            if store.common.idle.is_idle() {
                return;
            }
            if timeout(LONGEST_WAIT, store.common.idle.wait()).await.is_ok() {
                return;
            }
            let queues = store.all();
            let still = queues.iter().find_map(|queue| Some(format!("queue `{}`: {}", queue.name, queue.describe()?)));
            let still = still.unwrap_or_else(|| "the last message has just ended".into());
            panic!("not idle after 400 days; {still}\n  awaited at {caller}");
        }
    }

    /// Every settlement that was carried out on a queue, in that order, also where a fault hid it from the application.
    ///
    /// # Panics
    /// Where there were more than are [recorded](Self::recording).
    #[must_use]
    #[track_caller]
    pub fn settlements(&self, queue: &str) -> Vec<Settlement> {
        let caller = Location::caller();
        self.read(queue, |recorder| {
            recorder.settled.read("settlements", queue, caller).iter().map(|entry| entry.settlement).collect()
        })
    }

    /// The same, each with the message, the attempt, the error and the time.
    ///
    /// # Panics
    /// Where there were more than are [recorded](Self::recording).
    #[must_use]
    #[track_caller]
    pub fn timeline(&self, queue: &str) -> Vec<Entry> {
        let caller = Location::caller();
        self.read(queue, |recorder| recorder.settled.read("settlements", queue, caller).to_vec())
    }

    /// Every message that was published to a queue, dead-letter copies included, in that order.
    ///
    /// # Panics
    /// Where there were more than are [recorded](Self::recording).
    #[must_use]
    #[track_caller]
    pub fn published(&self, queue: &str) -> Vec<OutboundMessage> {
        let caller = Location::caller();
        self.read(queue, |recorder| recorder.published.read("publishes", queue, caller).to_vec())
    }

    /// Every dead letter of a queue's consumer, as it was copied to its dead-letter queue, in that order.
    ///
    /// # Panics
    /// Where more was published to the dead-letter queue than is [recorded](Self::recording).
    #[must_use]
    #[track_caller]
    pub fn dead_letters(&self, queue: &str) -> Vec<Envelope> {
        let caller = Location::caller();
        let consumer = self.store.find(queue).and_then(|queue| queue.dead_letters());
        let (target, origin) = match consumer {
            None => (Arc::from(dead_letter_name(queue)), None),
            Some(letters) => match letters.queue {
                None => return Vec::new(),
                Some(target) => (target, Some(letters.origin)),
            },
        };
        // Consumers can share a dead-letter queue; a copy that had no room for headers is anyone's.
        let others = |message: &OutboundMessage| {
            let came_from = origin.as_ref().and_then(|origin| message.headers.text(origin));
            came_from.is_some_and(|came_from| came_from != queue)
        };
        self.read(&target, |recorder| {
            let published = recorder.published.read("publishes", &target, caller).iter();
            let letters = published.filter(|message| message.is_copy() && !others(message));
            letters.map(|message| OutboundMessage::clone(message).into_parts().1).collect()
        })
    }

    /// How many messages a queue holds: ready, delayed and in flight.
    #[must_use]
    pub fn pending(&self, queue: &str) -> usize {
        self.store.find(queue).map_or(0, |queue| queue.pending())
    }

    fn read<R: Default>(&self, queue: &str, read: impl FnOnce(&Recorder) -> R) -> R {
        self.store.find(queue).map(|queue| queue.recorded(read)).unwrap_or_default()
    }
}
