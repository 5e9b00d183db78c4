//! The plugin: what an application adds to consume and publish.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::app::{BootError, Container, Factory, Key, Lifetime, Plugin, Provider, Registry, Requirement};
use crate::boot::{Foreign, Prepared, Proof, Registered, Setup, collect, declare, own, prove};
use crate::broker::{Link, MessageBroker};
use crate::consumer::Consumer;
use crate::dispatch::QueueState;
use crate::driver::{MessagingDriver, SubscriptionControl};
use crate::error::{BoxError, Error};
use crate::headers::WireNames;
use crate::message::InboundMessage;
use crate::options::MessagingOptions;
use crate::violation::{Violation, ViolationKind};

/// How long workers that were cut off are awaited; one in a blocking call cannot be.
const ABORT_WAIT: Duration = Duration::from_secs(1);

/// Subscribes consumers through a driver, and provides [`MessageBroker`].
///
/// ```
/// use messaging::prelude::*;
/// use messaging_memory::MemoryDriver;
///
/// #[consumer("orders")]
/// struct OrderConsumer;
///
/// #[handlers]
/// impl OrderConsumer {
///     #[on_message("order.created")]
///     async fn on_created(&self, order: Unvalidated<serde_json::Value>) {
///         println!("{}", order["order_id"]);
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), BootError> {
/// let driver = MemoryDriver::new();
/// let app = Application::builder()
///     .plugin(MessagingPlugin::configure(driver.clone()).consumer::<OrderConsumer>())
///     .create().await?;
/// app.start().await?;
/// # app.stop().await;
/// # Ok(()) }
/// ```
#[must_use]
pub struct MessagingPlugin {
    options: OptionsSource,
    named: Vec<Box<dyn Registered>>,
    discover: bool,
    consumers: Vec<Box<dyn Registered>>,
    broker: MessageBroker,
    ready: Option<Ready>,
}

enum OptionsSource {
    Given(Box<MessagingOptions>),
    Provided(Option<Provider>),
}

/// A plugin that was checked.
struct Ready {
    setup: Setup,
    consumers: Vec<Box<dyn Prepared>>,
    running: Running,
}

/// What a started plugin has under way; dropped without a stop, it lets go of everything.
#[derive(Default)]
struct Running {
    controls: Vec<Arc<dyn SubscriptionControl>>,
    workers: Vec<JoinHandle<()>>,
}

impl MessagingPlugin {
    /// Uses a driver, with every default, or [`MessagingOptions`].
    pub fn configure(options: impl Into<MessagingOptions>) -> Self {
        Self::with(OptionsSource::Given(Box::new(options.into())))
    }

    /// Uses options that a function makes of what the container provides, such as the application's configuration.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use messaging::prelude::*;
    /// use messaging_memory::MemoryDriver;
    ///
    /// struct Config { workers: usize }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), BootError> {
    /// let app = Application::builder()
    ///     .value(Config { workers: 4 })
    ///     .plugin(MessagingPlugin::configure_with(|config: Arc<Config>| {
    ///         MessagingOptions::new(MemoryDriver::new()).concurrency(config.workers)
    ///     }))
    ///     .create().await?;
    /// # Ok(()) }
    /// ```
    pub fn configure_with<F, Args>(options: F) -> Self
    where
        F: Factory<Args, Output = MessagingOptions>,
    {
        Self::with(OptionsSource::Provided(Some(Provider::factory(options))))
    }

    /// The same with a function that can fail, such as one that calls [`driver_from_url`](crate::driver_from_url).
    pub fn try_configure_with<F, Args, E>(options: F) -> Self
    where
        F: Factory<Args, Output = Result<MessagingOptions, E>>,
        E: Into<BoxError>,
    {
        Self::with(OptionsSource::Provided(Some(Provider::try_factory(options))))
    }

    fn with(options: OptionsSource) -> Self {
        Self {
            options,
            named: Vec::new(),
            discover: false,
            consumers: Vec::new(),
            broker: MessageBroker::new(),
            ready: None,
        }
    }

    /// Subscribes a consumer.
    pub fn consumer<C: Consumer>(mut self) -> Self {
        self.named.push(own::<C>());
        self
    }

    /// Subscribes a consumer that a function gives for each message: the seam to any other container.
    pub fn consumer_from<C, F, R, E>(mut self, give: F) -> Self
    where
        C: Consumer,
        F: Fn(Arc<InboundMessage>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Arc<C>, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let give = move |message| {
            let given = give(message);
            Box::pin(async move { given.await.map_err(Into::into) }) as _
        };
        self.named.push(Box::new(Foreign::<C>(Arc::new(give))));
        self
    }

    /// Subscribes every `#[consumer]` that is linked into the program, generic ones excepted.
    ///
    /// A crate that is only named in Cargo.toml is not linked: write `use my_consumers as _;`.
    pub fn discover(mut self) -> Self {
        self.discover = true;
        self
    }
}

#[async_trait]
impl Plugin for MessagingPlugin {
    fn name(&self) -> &'static str {
        "messaging"
    }

    fn configure(&mut self, registry: &mut Registry) {
        registry.add(Provider::external::<InboundMessage>());
        registry.add(Provider::value(self.broker.clone()));
        self.consumers = collect(std::mem::take(&mut self.named), self.discover);
        declare(&self.consumers, registry);
        match &mut self.options {
            // What is known now is told now, with the graph.
            OptionsSource::Given(options) => {
                for violation in prove(&self.consumers, options).err().into_iter().flatten() {
                    registry.refuse(violation);
                }
            }
            OptionsSource::Provided(provider) => {
                if let Some(provider) = provider.take() {
                    registry.add(provider);
                }
                let key = Key::of::<MessagingOptions>();
                registry.require(Requirement {
                    who: "the messaging plugin".into(),
                    key,
                    lifetime: Lifetime::Singleton,
                });
            }
        }
    }

    async fn check(&mut self, container: &Container) -> Result<(), BootError> {
        let options = match &self.options {
            OptionsSource::Given(options) => (**options).clone(),
            OptionsSource::Provided(_) => (*container.get::<MessagingOptions>().await?).clone(),
        };
        let proofs = prove(&self.consumers, &options).map_err(BootError::from)?;
        if cfg!(panic = "abort") {
            tracing::warn!("built with `panic = \"abort\"`: a panic in a handler ends the process, not one message");
        }
        let setup = Setup {
            names: WireNames::new(&options.prefix),
            options,
            stopping: Arc::new(AtomicBool::new(false)),
            token: CancellationToken::new(),
        };
        let consumers = self.prepare(container, &setup, proofs).await.map_err(BootError::from)?;
        self.broker.link(Link {
            driver: Arc::clone(&setup.options.driver),
            codecs: setup.options.codecs.clone(),
            names: setup.names.clone(),
            consume: setup.options.consume,
            events: consumers.iter().map(|consumer| Arc::clone(consumer.events())).collect(),
        });
        self.ready = Some(Ready { setup, consumers, running: Running::default() });
        Ok(())
    }

    async fn start(&mut self) -> Result<(), BootError> {
        let Some(ready) = &mut self.ready else { return Ok(()) };
        if let Err(error) = ready.setup.options.driver.connect().await {
            return Err(refused(&*ready.setup.options.driver, "cannot connect", &error));
        }
        self.broker.connected(true);
        if ready.setup.options.consume {
            ready.subscribe().await?;
        }
        Ok(())
    }

    async fn stop(&mut self, hurry: &CancellationToken) {
        if let Some(ready) = &mut self.ready {
            ready.stop(hurry).await;
            self.broker.connected(false);
        }
    }
}

impl MessagingPlugin {
    async fn prepare(
        &self,
        container: &Container,
        setup: &Setup,
        proofs: Vec<Proof>,
    ) -> Result<Vec<Box<dyn Prepared>>, Vec<Violation>> {
        let mut prepared = Vec::new();
        let mut violations = Vec::new();
        for (consumer, proof) in self.consumers.iter().zip(proofs) {
            match consumer.prepare(container, setup, proof).await {
                Ok(consumer) => prepared.push(consumer),
                Err(more) => violations.extend(more),
            }
        }
        if violations.is_empty() { Ok(prepared) } else { Err(violations) }
    }
}

impl Ready {
    /// Subscribes every consumer; only when all of them are, the first message is asked for.
    async fn subscribe(&mut self) -> Result<(), BootError> {
        let driver = &self.setup.options.driver;
        let mut subscriptions = Vec::new();
        let mut violations = Vec::new();
        for consumer in &self.consumers {
            let options = consumer.subscribe_options();
            let (name, queue, lanes) = (Arc::clone(&options.consumer), Arc::clone(&options.queue), options.concurrency);
            match driver.subscribe(options).await {
                Ok(subscription) => {
                    self.running.controls.push(Arc::clone(&subscription.control));
                    if subscription.lanes.len() != lanes {
                        let problem = format!(
                            "the {} driver opened {} lanes for a concurrency of {lanes}",
                            driver.name(),
                            subscription.lanes.len()
                        );
                        violations.push(
                            Violation::new(ViolationKind::Broker, problem, "this is a defect of the driver")
                                .subject(&*name),
                        );
                    }
                    subscriptions.push(subscription);
                }
                Err(error) => violations.extend(
                    refused(&**driver, &format!("{name} cannot consume `{queue}`"), &error)
                        .violations()
                        .iter()
                        .cloned(),
                ),
            }
        }
        if !violations.is_empty() {
            return Err(BootError::from(violations));
        }
        for (consumer, subscription) in self.consumers.iter().zip(subscriptions) {
            consumer.events().enter(QueueState::Consuming);
            self.running.workers.extend(consumer.spawn(subscription));
        }
        Ok(())
    }

    /// Stops receiving, waits for what runs, flushes, closes; each wait is bounded.
    async fn stop(&mut self, hurry: &CancellationToken) {
        let options = &self.setup.options;
        self.setup.stopping.store(true, Ordering::Relaxed);
        for control in &self.running.controls {
            control.stop_receiving();
        }
        self.setup.token.cancel();
        let grace = async {
            tokio::select! {
                () = tokio::time::sleep(options.grace) => (),
                () = hurry.cancelled() => (),
            }
        };
        let all_ended = tokio::select! {
            biased;
            () = join(&mut self.running.workers) => true,
            () = grace => false,
        };
        if !all_ended {
            tracing::warn!(grace = ?options.grace, "handlers still run and are cut off; their messages are given back");
            self.running.workers.iter().for_each(JoinHandle::abort);
            if timeout(ABORT_WAIT, join(&mut self.running.workers)).await.is_err() {
                tracing::error!("a handler blocks its thread and could not be cut off");
            }
        }
        self.running.workers.clear();
        let controls = std::mem::take(&mut self.running.controls);
        let deadline = tokio::time::Instant::now() + options.flush_timeout;
        for control in controls {
            match tokio::time::timeout_at(deadline, control.flush()).await {
                Ok(Ok(())) => (),
                Ok(Err(error)) => tracing::error!(error = error.chain(), "not every settlement reached the broker"),
                Err(_) => {
                    tracing::error!(timeout = ?options.flush_timeout, "not every settlement reached the broker in time")
                }
            }
        }
        match timeout(options.flush_timeout, options.driver.close()).await {
            Ok(Ok(())) => (),
            Ok(Err(error)) => tracing::error!(error = error.chain(), "the driver did not close in order"),
            Err(_) => tracing::error!(timeout = ?options.flush_timeout, "the driver did not close in time"),
        }
        for consumer in &self.consumers {
            consumer.events().enter(QueueState::Stopped);
        }
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

impl Drop for Running {
    fn drop(&mut self) {
        self.controls.iter().for_each(|control| control.stop_receiving());
        self.workers.iter().for_each(JoinHandle::abort);
    }
}

fn refused(driver: &dyn MessagingDriver, what: &str, error: &Error) -> BootError {
    let fix = if error.is_transient() { "see that the broker can be reached, then start again" } else { "" };
    let violation = Violation::new(ViolationKind::Broker, format!("{what}: {}", error.chain()), fix);
    BootError::from(vec![violation.subject(format!("driver `{}`", driver.name()))])
}

impl fmt::Debug for MessagingPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessagingPlugin")
            .field("consumers", &self.consumers)
            .field("discover", &self.discover)
            .finish_non_exhaustive()
    }
}
