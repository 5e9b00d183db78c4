use std::fmt::Display;
use std::panic::Location;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use messaging::{Backoff, Capabilities, Error, ErrorKind, MessagingDriver, RetryPolicy, Step};
use tokio::time::{Instant, timeout};

use super::breach::{Breach, Verdict};
use super::broker::{Client, TestBroker, Timing};
use super::process::Process;
use crate::FaultyDriver;

/// Where one case plays: its queues, its clients, its clock.
#[derive(Clone)]
pub(crate) struct Stage(Arc<Inner>);

struct Inner {
    broker: Arc<dyn TestBroker>,
    /// Only asked for names.
    idle: Client,
    capabilities: Capabilities,
    timing: Timing,
    /// What the names of this case's queues start with.
    prefix: String,
    queues: Mutex<Vec<String>>,
    opened: Mutex<Vec<Arc<dyn MessagingDriver>>>,
    step: Arc<Mutex<String>>,
    messages: AtomicUsize,
}

impl Stage {
    pub(crate) fn new(
        broker: Arc<dyn TestBroker>,
        capabilities: Capabilities,
        prefix: String,
        step: Arc<Mutex<String>>,
    ) -> Self {
        let timing = broker.timing();
        Self(Arc::new(Inner {
            idle: broker.client(),
            broker,
            capabilities,
            timing,
            prefix,
            queues: Mutex::default(),
            opened: Mutex::default(),
            step,
            messages: AtomicUsize::new(0),
        }))
    }

    pub(crate) fn broker(&self) -> &dyn TestBroker {
        &*self.0.broker
    }

    pub(crate) fn capabilities(&self) -> &Capabilities {
        &self.0.capabilities
    }

    pub(crate) fn timing(&self) -> Timing {
        self.0.timing
    }

    /// A queue that nobody else uses.
    pub(crate) async fn queue(&self, name: &str) -> Verdict<String> {
        let queue = self.0.broker.queue_name(&format!("{}-{name}", self.0.prefix));
        self.prepare(&queue).await?;
        Ok(queue)
    }

    /// The queue that a queue's dead letters go to, where nothing else is said.
    pub(crate) async fn dead_letter_queue(&self, queue: &str) -> Verdict<String> {
        let dead = self.0.idle.driver.dead_letter_name(queue);
        self.prepare(&dead).await?;
        Ok(dead)
    }

    async fn prepare(&self, queue: &str) -> Verdict {
        if !self.queues().iter().any(|known| known == queue) {
            self.queues().push(queue.to_owned());
            let prepared = self.within(format!("`{queue}` is prepared"), self.0.broker.prepare(queue)).await?;
            prepared.map_err(|error| Breach::new(format!("`{queue}` could not be prepared: {error}")))?;
        }
        Ok(())
    }

    /// One more process, not connected yet.
    pub(crate) fn process(&self) -> Process {
        self.process_of(self.0.broker.client())
    }

    /// One more process, connected.
    pub(crate) async fn connected(&self) -> Verdict<Process> {
        let process = self.process();
        process.connect().await?;
        Ok(process)
    }

    /// One more process, whose driver can be made to fail.
    pub(crate) fn faulty(&self) -> (Process, FaultyDriver) {
        let client = self.0.broker.client();
        let faulty = FaultyDriver::over(Arc::clone(&client.driver));
        (self.process_of(client.around(faulty.clone())), faulty)
    }

    fn process_of(&self, client: Client) -> Process {
        lock(&self.0.opened).push(Arc::clone(&client.driver));
        Process::new(self.clone(), client)
    }

    /// Ends the case: nothing of it is left.
    pub(crate) async fn clear(&self) {
        let opened = std::mem::take(&mut *lock(&self.0.opened));
        for driver in opened {
            let _ = timeout(self.0.timing.arrival, driver.close()).await;
        }
        let queues = std::mem::take(&mut *self.queues());
        for queue in queues {
            let _ = timeout(self.0.timing.arrival, self.0.broker.remove(&queue)).await;
        }
    }

    /// Waits for something, and not for ever.
    #[track_caller]
    pub(crate) fn within<T>(
        &self,
        what: impl Display,
        future: impl Future<Output = T>,
    ) -> impl Future<Output = Verdict<T>> {
        self.within_time(self.0.timing.arrival, what, future)
    }

    #[track_caller]
    pub(crate) fn within_time<T>(
        &self,
        limit: Duration,
        what: impl Display,
        future: impl Future<Output = T>,
    ) -> impl Future<Output = Verdict<T>> {
        let (what, caller) = (what.to_string(), Location::caller());
        async move {
            *lock(&self.0.step) = what.clone();
            let begun = Instant::now();
            match timeout(limit, future).await {
                // Found only because the wait was over, it would not have been found without.
                Ok(output) if begun.elapsed() < limit => Ok(output),
                Ok(_) | Err(_) => Err(Breach::at(format!("{what}: not within {limit:?}"), caller)),
            }
        }
    }

    /// Waits for something that must succeed.
    #[track_caller]
    pub(crate) fn succeeds<T>(
        &self,
        what: impl Display,
        future: impl Future<Output = Result<T, Error>>,
    ) -> impl Future<Output = Verdict<T>> {
        let (what, caller) = (what.to_string(), Location::caller());
        async move {
            let result = self.within(&what, future).await?;
            result.map_err(|error| Breach::at(format!("{what}: it failed: {}", error.chain()), caller))
        }
    }

    /// Waits for something that must fail, and gives the kind.
    #[track_caller]
    pub(crate) fn fails<T>(
        &self,
        what: impl Display,
        future: impl Future<Output = Result<T, Error>>,
    ) -> impl Future<Output = Verdict<ErrorKind>> {
        let (what, caller) = (what.to_string(), Location::caller());
        async move {
            match self.within(&what, future).await? {
                Ok(_) => Err(Breach::at(format!("{what}: it succeeded"), caller)),
                Err(error) => Ok(error.kind()),
            }
        }
    }

    /// A short delay that every driver can do.
    pub(crate) fn short_delay(&self) -> Duration {
        Duration::from_millis(100)
    }

    /// The step that boot would prove for a delay.
    pub(crate) fn step(&self, delay: Duration) -> Step {
        if delay <= self.0.capabilities.max_in_process_delay { Step::InProcess(delay) } else { Step::Native(delay) }
    }

    /// So many attempts, short delays between them.
    pub(crate) fn attempts(&self, attempts: u32) -> RetryPolicy {
        RetryPolicy::new(attempts).backoff(Backoff::Fixed).delay(self.short_delay())
    }

    /// Whether a delay that was asked for between those times has ended neither too early nor too late.
    #[track_caller]
    pub(crate) fn check_delay(&self, what: &str, (before, after): (Instant, Instant), delay: Duration) -> Verdict {
        let latest = delay + self.0.capabilities.native_delay_granularity + self.0.timing.late;
        let (most, least) = (before.elapsed(), after.elapsed());
        // Brokers count in milliseconds.
        if most + Duration::from_millis(2) < delay {
            return Err(Breach::new(format!("{what}: asked to wait {delay:?}, and it waited only {most:?}")));
        }
        if least > latest {
            return Err(Breach::new(format!("{what}: asked to wait {delay:?}, and it waited {least:?}")));
        }
        Ok(())
    }

    /// The number of one more message of this case, from 1.
    pub(crate) fn next_message(&self) -> usize {
        self.0.messages.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn queues(&self) -> MutexGuard<'_, Vec<String>> {
        lock(&self.0.queues)
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
