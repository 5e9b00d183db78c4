//! A checked plugin at work, from the first connection to the last flush.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::app::BootError;
use crate::boot::{Prepared, Setup};
use crate::dispatch::QueueState;
use crate::driver::{DelayHeap, MessagingDriver, Subscription, SubscriptionControl};
use crate::error::Error;
use crate::violation::{Violation, ViolationKind};

/// How long workers that were cut off are awaited; one in a blocking call cannot be.
const ABORT_WAIT: Duration = Duration::from_secs(1);

/// A plugin that was checked; dropped without a stop, it lets go of everything.
pub(super) struct Running {
    setup: Setup,
    consumers: Vec<Box<dyn Prepared>>,
    controls: Vec<Arc<dyn SubscriptionControl>>,
    workers: Vec<JoinHandle<()>>,
}

impl Running {
    pub(super) fn new(setup: Setup, consumers: Vec<Box<dyn Prepared>>) -> Self {
        Self { setup, consumers, controls: Vec::new(), workers: Vec::new() }
    }

    pub(super) async fn connect(&self) -> Result<(), BootError> {
        let driver = &*self.setup.options.driver;
        driver.connect().await.map_err(|error| BootError::from(vec![refused(driver, "cannot connect", &error)]))
    }

    /// Subscribes every consumer; only when all of them are, the first message is asked for.
    pub(super) async fn subscribe(&mut self) -> Result<(), BootError> {
        if !self.setup.options.consume {
            return Ok(());
        }
        let mut subscriptions = Vec::new();
        let mut violations = Vec::new();
        for consumer in &self.consumers {
            match subscribe(&*self.setup.options.driver, &**consumer).await {
                Ok(subscription) => {
                    self.controls.push(Arc::clone(&subscription.control));
                    subscriptions.push(subscription);
                }
                Err(violation) => violations.push(violation),
            }
        }
        if !violations.is_empty() {
            return Err(BootError::from(violations));
        }
        for (consumer, subscription) in self.consumers.iter().zip(subscriptions) {
            consumer.events().enter(QueueState::Consuming);
            self.workers.extend(consumer.spawn(subscription));
        }
        Ok(())
    }

    /// Stops receiving, waits for what runs, flushes, closes; each wait is bounded.
    pub(super) async fn stop(&mut self, hurry: &CancellationToken) {
        self.stop_receiving();
        self.await_workers(hurry).await;
        let options = &self.setup.options;
        let deadline = DelayHeap::<()>::due(Instant::now(), options.flush_timeout);
        // Let go of when it is flushed: a stop that is cut off here goes on here.
        while let Some(control) = self.controls.last() {
            match timeout_at(deadline, control.flush()).await {
                Ok(Ok(())) => (),
                Ok(Err(error)) => tracing::error!(error = error.chain(), "not every settlement reached the broker"),
                Err(_) => tracing::error!(within = ?options.flush_timeout, "not every settlement reached the broker"),
            }
            self.controls.pop();
        }
        match timeout(options.flush_timeout, options.driver.close()).await {
            Ok(Ok(())) => (),
            Ok(Err(error)) => tracing::error!(error = error.chain(), "the driver did not close in order"),
            Err(_) => tracing::error!(within = ?options.flush_timeout, "the driver did not close"),
        }
        for consumer in &self.consumers {
            consumer.events().enter(QueueState::Stopped);
        }
    }

    fn stop_receiving(&self) {
        self.setup.stopping.store(true, Ordering::Relaxed);
        for control in &self.controls {
            control.stop_receiving();
        }
        self.setup.token.cancel();
    }

    /// Waits for running handlers as long as the grace lasts, then cuts them off.
    async fn await_workers(&mut self, hurry: &CancellationToken) {
        let grace = self.setup.options.grace;
        let all_ended = tokio::select! {
            biased;
            () = join(&mut self.workers) => true,
            () = hurry.cancelled() => false,
            () = sleep(grace) => false,
        };
        if !all_ended {
            tracing::warn!(?grace, "handlers still run and are cut off; their messages are given back");
            self.workers.iter().for_each(JoinHandle::abort);
            if timeout(ABORT_WAIT, join(&mut self.workers)).await.is_err() {
                tracing::error!("a handler blocks its thread and could not be cut off");
            }
        }
        self.workers.clear();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop_receiving();
        self.workers.iter().for_each(JoinHandle::abort);
    }
}

/// Waits until every worker has ended; those that have are gone from the list.
async fn join(workers: &mut Vec<JoinHandle<()>>) {
    while let Some(worker) = workers.last_mut() {
        // A worker catches its own panics; one that was aborted has ended as well.
        let _ = worker.await;
        workers.pop();
    }
}

async fn subscribe(driver: &dyn MessagingDriver, consumer: &dyn Prepared) -> Result<Subscription, Violation> {
    let options = consumer.subscribe_options();
    let (name, queue, lanes) = (Arc::clone(&options.consumer), Arc::clone(&options.queue), options.concurrency);
    let subscription = driver
        .subscribe(options)
        .await
        .map_err(|error| refused(driver, &format!("{name} cannot consume `{queue}`"), &error))?;
    let opened = subscription.lanes.len();
    if opened != lanes {
        let problem = format!("{name} asked for {lanes} lanes of `{queue}` and got {opened}");
        return Err(violation(driver, problem, "this is a defect of the driver"));
    }
    Ok(subscription)
}

fn refused(driver: &dyn MessagingDriver, what: &str, error: &Error) -> Violation {
    let fix = if error.is_transient() { "see that the broker can be reached, then start again" } else { "" };
    violation(driver, format!("{what}: {}", error.chain()), fix)
}

fn violation(driver: &dyn MessagingDriver, problem: String, fix: &str) -> Violation {
    Violation::new(ViolationKind::Broker, problem, fix).subject(format!("driver `{}`", driver.name()))
}
