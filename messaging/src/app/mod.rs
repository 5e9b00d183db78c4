//! The application: providers, plugins, boot and stop.
//!
//! ```
//! use std::sync::Arc;
//! use messaging::prelude::*;
//!
//! trait Greeter: Send + Sync { fn greet(&self) -> String; }
//!
//! #[derive(Injectable)]
//! struct Polite { config: Arc<Config> }
//! struct Config { name: &'static str }
//!
//! impl Greeter for Polite {
//!     fn greet(&self) -> String { format!("good morning, {}", self.config.name) }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), BootError> {
//! let app = Application::builder()
//!     .value(Config { name: "Ada" })
//!     .bind(|greeter: Arc<Polite>| greeter as Arc<dyn Greeter>)
//!     .create().await?;
//! assert_eq!(app.get::<dyn Greeter>().await?.greet(), "good morning, Ada");
//! # Ok(()) }
//! ```
//!
//! # What belongs to one delivery
//!
//! A provider that lives for a request is built anew for each delivery, and may take its message. One that fails makes a
//! retryable failure of the delivery; [`NonRetryable`](crate::NonRetryable) ends it at once.
//!
//! ```
//! use std::sync::Arc;
//! use messaging::app::Provider;
//! use messaging::prelude::*;
//! use messaging_memory::MemoryDriver;
//!
//! struct Tenant(String);
//!
//! impl Tenant {
//!     fn of(message: Arc<InboundMessage>) -> Result<Self, NonRetryable> {
//!         let tenant = message.headers.text("tenant");
//!         tenant.map(|tenant| Tenant(tenant.into())).ok_or_else(|| NonRetryable::new("no tenant header"))
//!     }
//! }
//!
//! #[consumer("orders", scope = "request")]
//! struct Orders { tenant: Arc<Tenant> }
//!
//! #[handlers]
//! impl Orders {
//!     #[on_message]
//!     async fn on_order(&self, _order: Bytes) { assert_eq!(self.tenant.0, "acme"); }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), BootError> {
//! let driver = MemoryDriver::new();
//! let app = Application::builder()
//!     .add(Provider::try_factory(Tenant::of).per_request())
//!     .plugin(MessagingPlugin::configure(driver.clone()).consumer::<Orders>())
//!     .create().await?;
//! app.start().await?;
//! driver.send(OutboundMessage::raw("orders", "{}").header("tenant", "acme"));
//! driver.send(OutboundMessage::raw("orders", "{}"));
//! driver.idle().await;
//! assert_eq!(driver.settlements("orders"), [Settlement::Ack, Settlement::DeadLetter(Reason::NonRetryable)]);
//! # app.stop().await;
//! # Ok(()) }
//! ```

mod boot_error;
mod builder;
mod container;
mod factory;
mod graph;
mod injectable;
mod plugin;
mod provider;
mod scope;
mod signals;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::guard::{guard, guarded};
use crate::violation::{Violation, ViolationKind};
use builder::CloseHook;

pub use boot_error::BootError;
pub use builder::ApplicationBuilder;
pub use container::{Container, Scope};
pub use factory::Factory;
pub use graph::Requirement;
pub use injectable::{Dependency, Injectable, Key, Lifetime};
pub use plugin::{Plugin, Registry};
pub use provider::Provider;
pub use scope::{Resolver, Slots};

use container::Leaving;
pub(crate) use container::Numbering;
pub(crate) use injectable::short_name;
pub(crate) use scope::Plan;

/// A checked application: `run` it, or `start` and `stop` it.
pub struct Application {
    container: Container,
    state: Mutex<State>,
    stopping: CancellationToken,
    hurry: CancellationToken,
    close_hooks: Vec<CloseHook>,
    close_timeout: Duration,
}

struct State {
    plugins: Vec<Box<dyn Plugin>>,
    phase: Phase,
    /// What is still to be closed, the next one last; there once the plugins have stopped.
    leaving: Option<Vec<Leaving>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Created,
    /// A start is under way, or was cut off.
    Starting,
    Started,
    Stopped,
}

impl Application {
    /// Starts to describe an application.
    pub fn builder() -> ApplicationBuilder {
        ApplicationBuilder::default()
    }

    /// The singleton of that type, built if it is not there yet.
    ///
    /// # Errors
    /// Nothing provides it, it lives in scopes only, or a constructor failed.
    pub async fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Result<Arc<T>, BootError> {
        self.container.get().await
    }

    /// Opens a scope by hand, for request-scoped instances outside of a delivery.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.container.scope()
    }

    /// Starts the plugins, in order. Does nothing when started already.
    ///
    /// # Errors
    /// What kept one of them from starting; those that had started are stopped again. A stopped application does not start.
    ///
    /// # Cancel safety
    /// When the future is dropped, some plugins may have started: [`stop`](Self::stop) stops them, and so does another start,
    /// which then fails.
    pub async fn start(&self) -> Result<(), BootError> {
        let mut state = self.state.lock().await;
        match state.phase {
            Phase::Started => return Ok(()),
            Phase::Stopped => return Err(stopped()),
            Phase::Starting => {
                // Nobody knows how far the one that was cut off has come.
                self.stop_all(&mut state).await;
                return Err(stopped());
            }
            Phase::Created => state.phase = Phase::Starting,
        }
        let started = tokio::select! {
            biased;
            () = self.stopping.cancelled() => Err(stopped()),
            started = start_all(&mut state.plugins) => started,
        };
        match started {
            Ok(()) => state.phase = Phase::Started,
            Err(_) => self.stop_all(&mut state).await,
        }
        started
    }

    /// Stops what was started, in reverse, then closes the singletons, the last built first.
    ///
    /// Idempotent: calls at the same time return when the first is done, later ones at once. A start under way is cut off.
    /// Its time is bounded by the plugins' options and [`ApplicationBuilder::close_timeout`].
    ///
    /// # Cancel safety
    /// When the future is dropped, the next call goes on.
    pub async fn stop(&self) {
        self.stopping.cancel();
        let mut state = self.state.lock().await;
        self.stop_all(&mut state).await;
    }

    /// Starts, waits for SIGINT or SIGTERM, and stops; a second signal cuts the wait for running handlers short.
    ///
    /// # Errors
    /// What kept it from starting.
    pub async fn run(&self) -> Result<(), BootError> {
        let mut signals = signals::Signals::listen()?;
        tokio::select! {
            started = self.start() => started?,
            () = signals.next() => {
                self.stop().await;
                return Ok(());
            }
        }
        tokio::select! {
            () = signals.next() => tracing::info!("stopping; a second signal waits for nobody"),
            () = self.stopping.cancelled() => (),
        }
        tokio::select! {
            () = self.stop() => (),
            () = async {
                signals.next().await;
                self.hurry.cancel();
                std::future::pending().await
            } => (),
        }
        Ok(())
    }

    async fn stop_all(&self, state: &mut State) {
        if state.phase == Phase::Stopped {
            return;
        }
        // Each is gone from its list when it is done: a stop that is cut off goes on where it was.
        while let Some(plugin) = state.plugins.last_mut() {
            if let Err(panic) = guard(plugin.stop(&self.hurry)).await {
                tracing::error!(plugin = plugin.name(), %panic, "a plugin did not stop in order");
            }
            let plugin = state.plugins.pop();
            let _ = guarded(move || drop(plugin));
        }
        if state.leaving.is_none() {
            let keys: Vec<_> = self.close_hooks.iter().map(|hook| hook.key).collect();
            match timeout(self.close_timeout, self.container.tear_down(&keys)).await {
                Ok(mut leaving) => {
                    leaving.reverse();
                    state.leaving = Some(leaving);
                }
                Err(_) => tracing::error!("a constructor is still at work: what was built is not closed"),
            }
        }
        let leaving = state.leaving.get_or_insert_default();
        while let Some(Leaving { known, .. }) = leaving.last_mut() {
            while let Some((index, instance)) = known.first() {
                self.close_hooks[*index].close(instance, self.close_timeout).await;
                let closed = known.remove(0);
                let _ = guarded(move || drop(closed));
            }
            if let Some(Leaving { instance, .. }) = leaving.pop()
                && let Err(panic) = guarded(move || drop(instance))
            {
                tracing::error!(%panic, "dropping a singleton panicked");
            }
        }
        state.phase = Phase::Stopped;
    }
}

async fn start_all(plugins: &mut [Box<dyn Plugin>]) -> Result<(), BootError> {
    for plugin in plugins {
        plugin.start().await?;
    }
    Ok(())
}

fn stopped() -> BootError {
    let fix = "create another application; one that was stopped does not start again";
    BootError::from(vec![Violation::new(ViolationKind::Options, "the application was stopped", fix)])
}

impl fmt::Debug for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Application").field("container", &self.container).finish_non_exhaustive()
    }
}
