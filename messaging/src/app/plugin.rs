use std::fmt;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::boot_error::BootError;
use super::container::Container;
use super::graph::Requirement;
use super::provider::Provider;
use crate::violation::Violation;

/// Something that lives in an application: it is configured, checked, started, and stopped in reverse order.
#[async_trait]
pub trait Plugin: Send + 'static {
    /// Its name, for messages; two plugins of one name refuse the boot.
    fn name(&self) -> &'static str;

    /// Adds what it provides and what it will ask for, and refuses what it can tell is wrong already.
    fn configure(&mut self, registry: &mut Registry);

    /// Checks the rest, now that the container is whole; connects to nothing.
    ///
    /// # Errors
    /// Everything that is wrong.
    async fn check(&mut self, container: &Container) -> Result<(), BootError>;

    /// Starts.
    ///
    /// # Errors
    /// Why it cannot; whatever it had started is stopped again. Called with [`stop`](Self::stop) to follow in any case.
    async fn start(&mut self) -> Result<(), BootError>;

    /// Stops, in bounded time; also after a start that failed or was cut off, and again after a stop that was.
    ///
    /// When `hurry` fires, it waits for nobody any more: what still runs is given back.
    async fn stop(&mut self, hurry: &CancellationToken);
}

/// What plugins add to an application.
#[derive(Default)]
pub struct Registry {
    pub(crate) providers: Vec<Provider>,
    pub(crate) replacements: Vec<Provider>,
    pub(crate) requirements: Vec<Requirement>,
    pub(crate) violations: Vec<Violation>,
}

impl Registry {
    /// Adds a provider.
    pub fn add(&mut self, provider: Provider) {
        self.providers.push(provider);
    }

    /// Adds a provider that counts only as long as nobody else provides the type.
    pub fn add_fallback(&mut self, provider: Provider) {
        self.providers.push(provider.fallback());
    }

    /// Says what the plugin will ask for.
    pub fn require(&mut self, requirement: Requirement) {
        self.requirements.push(requirement);
    }

    /// Refuses the boot.
    pub fn refuse(&mut self, violation: Violation) {
        self.violations.push(violation);
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("providers", &self.providers).finish_non_exhaustive()
    }
}
