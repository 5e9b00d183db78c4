use std::any::Any;
use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::boot_error::BootError;
use super::container::Container;
use super::factory::Factory;
use super::graph::{Graph, Requirement};
use super::injectable::{Injectable, Key, Lifetime};
use super::plugin::{Plugin, Registry};
use super::provider::Provider;
use super::{Application, Phase, State};
use crate::error::BoxError;
use crate::guard::{guard, guarded};
use crate::violation::{Violation, ViolationKind};

/// Describes an application; [`create`](Self::create) checks it.
#[must_use]
pub struct ApplicationBuilder {
    registry: Registry,
    plugins: Vec<Box<dyn Plugin>>,
    close_hooks: Vec<CloseHook>,
    close_timeout: Duration,
}

impl ApplicationBuilder {
    /// Provides a type that says itself what it is built from.
    pub fn provide<T: Injectable>(self) -> Self {
        self.add(Provider::of::<T>())
    }

    /// Provides a value that exists.
    pub fn value<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.add(Provider::value(value))
    }

    /// Provides a value that exists and is shared, `Arc<dyn Trait>` included.
    pub fn shared<T: ?Sized + Send + Sync + 'static>(self, value: Arc<T>) -> Self {
        self.add(Provider::shared(value))
    }

    /// Provides a trait by a type that implements it: `.bind(|repo: Arc<PgRepo>| repo as Arc<dyn Repo>)`.
    ///
    /// The type itself is provided with it, unless it is already. For one that is not [`Injectable`], provide it and use
    /// [`view`](Self::view).
    pub fn bind<T: Injectable, U: ?Sized + Send + Sync + 'static>(
        mut self,
        view: impl Fn(Arc<T>) -> Arc<U> + Send + Sync + 'static,
    ) -> Self {
        self.registry.add_fallback(Provider::of::<T>());
        self.view(view)
    }

    /// Provides another view of something that is provided: `.view(|repo: Arc<PgRepo>| repo as Arc<dyn Repo>)`.
    pub fn view<T: ?Sized + Send + Sync + 'static, U: ?Sized + Send + Sync + 'static>(
        self,
        view: impl Fn(Arc<T>) -> Arc<U> + Send + Sync + 'static,
    ) -> Self {
        self.add(Provider::alias(view))
    }

    /// Provides what a function makes of its parameters, once.
    pub fn factory<F, Args>(self, factory: F) -> Self
    where
        F: Factory<Args>,
        F::Output: Send + Sync + 'static,
    {
        self.add(Provider::factory(factory))
    }

    /// The same with a function that can fail; its error refuses the boot.
    pub fn try_factory<F, Args, T, E>(self, factory: F) -> Self
    where
        F: Factory<Args, Output = Result<T, E>>,
        T: Send + Sync + 'static,
        E: Into<BoxError>,
    {
        self.add(Provider::try_factory(factory))
    }

    /// The same with a function that waits.
    pub fn factory_async<F, Args>(self, factory: F) -> Self
    where
        F: Factory<Args>,
        F::Output: Future<Output: Send + Sync + 'static> + Send + 'static,
    {
        self.add(Provider::factory_async(factory))
    }

    /// The same with a function that waits and can fail.
    pub fn try_factory_async<F, Args, T, E>(self, factory: F) -> Self
    where
        F: Factory<Args>,
        F::Output: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + Sync + 'static,
        E: Into<BoxError>,
    {
        self.add(Provider::try_factory_async(factory))
    }

    /// Declares something that whoever opens a scope gives.
    pub fn external<T: Send + Sync + 'static>(self) -> Self {
        self.add(Provider::external::<T>())
    }

    /// Provides anything in any way, request-scoped factories among them.
    #[allow(clippy::should_implement_trait)] // a builder is not a number
    pub fn add(mut self, provider: Provider) -> Self {
        self.registry.add(provider);
        self
    }

    /// Puts a value in the place of whatever provides the type, wherever that stands; for tests.
    ///
    /// What only the replaced provider needed is not built. To replace what nothing provides refuses the boot.
    pub fn replace<T: ?Sized + Send + Sync + 'static>(mut self, value: Arc<T>) -> Self {
        self.registry.replacements.push(Provider::shared(value));
        self
    }

    /// Runs when the application stops, after the plugins: for the singleton of that type, or behind that view, where it was
    /// built; the last built first.
    pub fn on_close<T, F, R>(mut self, close: F) -> Self
    where
        T: ?Sized + Send + Sync + 'static,
        F: Fn(Arc<T>) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        let close = move |instance: &Arc<dyn Any + Send + Sync>| {
            let instance = instance.downcast_ref::<Arc<T>>()?;
            Some(Box::pin(close(Arc::clone(instance))) as Closing)
        };
        self.close_hooks.push(CloseHook { key: Key::of::<T>(), close: Box::new(close) });
        self
    }

    /// How long each close hook may take; 10 s unless set.
    pub fn close_timeout(mut self, timeout: Duration) -> Self {
        self.close_timeout = timeout;
        self
    }

    /// Adds a plugin; they start in this order and stop in reverse.
    pub fn plugin(mut self, plugin: impl Plugin) -> Self {
        self.plugins.push(Box::new(plugin));
        self
    }

    /// Checks everything, and builds what consumers and plugins need. Connects to no broker.
    ///
    /// # Errors
    /// Everything that refuses the boot and can be told at the same time: first the graph with what else is known without
    /// it, then failing constructors, then what depends on options that a constructor makes.
    pub async fn create(self) -> Result<Application, BootError> {
        let Self { mut registry, mut plugins, close_hooks, close_timeout } = self;
        let mut names = HashSet::new();
        for plugin in &mut plugins {
            if !names.insert(plugin.name()) {
                let problem = format!("the plugin `{}` is there twice", plugin.name());
                registry.refuse(Violation::new(ViolationKind::Options, problem, "put everything into one of the two"));
                // What it provides is there twice as well, and that is no other problem.
                continue;
            }
            plugin.configure(&mut registry);
        }
        let Registry { providers, replacements, mut requirements, mut violations } = registry;
        let roots: Vec<Key> = requirements.iter().map(|requirement| requirement.key).collect();
        // A close hook is no reason to build what it closes, but it must be for something that can be built.
        requirements.extend(close_hooks.iter().map(CloseHook::requirement));
        let graph = Graph::new(providers, replacements, &mut violations);
        graph.check(&requirements, &mut violations);
        refuse_if_any(violations)?;

        let container = Container::new(graph);
        let built = container.build(roots).await;
        let app = Application {
            container,
            state: Mutex::new(State { plugins: Vec::new(), phase: Phase::Created, leaving: None }),
            stopping: CancellationToken::new(),
            hurry: CancellationToken::new(),
            close_hooks,
            close_timeout,
        };
        let checked = match built {
            Ok(()) => check_all(&mut plugins, &app.container).await,
            Err(violations) => Err(BootError::from(violations)),
        };
        match checked {
            Ok(()) => {
                app.state.lock().await.plugins = plugins;
                Ok(app)
            }
            Err(error) => {
                // Whatever was built is closed in order.
                app.stop().await;
                Err(error)
            }
        }
    }
}

async fn check_all(plugins: &mut [Box<dyn Plugin>], container: &Container) -> Result<(), BootError> {
    let mut violations = Vec::new();
    for plugin in plugins {
        if let Err(error) = plugin.check(container).await {
            violations.extend(error.violations().iter().cloned());
        }
    }
    refuse_if_any(violations)
}

fn refuse_if_any(violations: Vec<Violation>) -> Result<(), BootError> {
    if violations.is_empty() { Ok(()) } else { Err(BootError::from(violations)) }
}

impl Default for ApplicationBuilder {
    fn default() -> Self {
        Self {
            registry: Registry::default(),
            plugins: Vec::new(),
            close_hooks: Vec::new(),
            close_timeout: Duration::from_secs(10),
        }
    }
}

impl fmt::Debug for ApplicationBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApplicationBuilder").field("registry", &self.registry).finish_non_exhaustive()
    }
}

/// Closes an instance, where it is of the hook's type.
type Close = Box<dyn Fn(&Arc<dyn Any + Send + Sync>) -> Option<Closing> + Send + Sync>;

type Closing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What runs when a singleton goes.
pub(super) struct CloseHook {
    pub(super) key: Key,
    close: Close,
}

impl CloseHook {
    fn requirement(&self) -> Requirement {
        Requirement { who: format!("the close hook of {}", self.key), key: self.key, lifetime: Lifetime::Singleton }
    }

    /// Runs it; what it does wrong stops nothing.
    pub(super) async fn close(&self, instance: &Arc<dyn Any + Send + Sync>, timeout: Duration) {
        let closing = match guarded(|| (self.close)(instance)) {
            Ok(Some(closing)) => closing,
            Ok(None) => return,
            Err(panic) => return tracing::error!(of = %self.key, %panic, "close hook panicked"),
        };
        // The clock is inside the wall: cutting the hook off drops what it holds.
        match guard(tokio::time::timeout(timeout, closing)).await {
            Ok(Ok(())) => (),
            Ok(Err(_)) => tracing::error!(of = %self.key, ?timeout, "close hook took too long and was cut off"),
            Err(panic) => tracing::error!(of = %self.key, %panic, "close hook panicked"),
        }
    }
}
