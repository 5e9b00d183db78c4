//! The plugin: what an application adds to consume and publish.

mod running;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::app::{BootError, Container, Factory, Key, Lifetime, Plugin, Provider, Registry, Requirement};
use crate::boot::{Foreign, Prepared, Proof, Registered, Setup, collect, declare, own, prove};
use crate::broker::{Link, MessageBroker};
use crate::consumer::Consumer;
use crate::error::BoxError;
use crate::message::InboundMessage;
use crate::options::MessagingOptions;
use crate::violation::Violation;
use crate::wire_names::WireNames;
use running::Running;

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
    /// There once the plugin is checked.
    running: Option<Running>,
}

enum OptionsSource {
    Given(Box<MessagingOptions>),
    Provided(Option<Provider>),
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
            running: None,
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
        self.consumers = collect(std::mem::take(&mut self.named), self.discover, registry);
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
            token: Arc::default(),
        };
        let consumers = self.prepare(container, &setup, proofs).await.map_err(BootError::from)?;
        let consumed = if setup.options.consume { &*consumers } else { &[] };
        self.broker.link(Link {
            driver: Arc::clone(&setup.options.driver),
            codecs: setup.options.codecs.clone(),
            names: setup.names.clone(),
            events: consumed.iter().map(|consumer| Arc::clone(consumer.events())).collect(),
        });
        self.running = Some(Running::new(setup, consumers));
        Ok(())
    }

    async fn start(&mut self) -> Result<(), BootError> {
        let Some(running) = &mut self.running else { return Ok(()) };
        running.connect().await?;
        self.broker.connected(true);
        running.subscribe().await
    }

    async fn stop(&mut self, hurry: &CancellationToken) {
        if let Some(running) = &mut self.running {
            running.stop(hurry).await;
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

impl fmt::Debug for MessagingPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessagingPlugin")
            .field("consumers", &self.consumers)
            .field("discover", &self.discover)
            .finish_non_exhaustive()
    }
}
