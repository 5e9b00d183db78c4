//! The instances of an application, and scopes of them.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::boot_error::BootError;
use super::graph::Graph;
use super::injectable::{Key, Lifetime};
use super::provider::{Export, Make, Provider};
use super::scope::{BuildError, Input, Instance, Plan, Resolver, Slots, Source, Step};
use crate::error::chain;
use crate::guard::guard;
use crate::violation::{Violation, ViolationKind};

/// What an application has provided.
///
/// Singletons are built when something needs them: at boot what consumers and plugins need, later what is asked for.
#[derive(Clone)]
pub struct Container(Arc<Inner>);

struct Inner {
    graph: Graph,
    singletons: Mutex<Singletons>,
}

#[derive(Default)]
struct Singletons {
    instances: HashMap<Key, Instance>,
    /// In the order they were built, which closing goes back.
    built: Vec<Key>,
    /// The application was stopped.
    closed: bool,
}

/// Which slot each instance of a scope has.
#[derive(Default)]
pub(crate) struct Numbering(HashMap<Key, usize>);

impl Numbering {
    pub(crate) fn slot(&mut self, key: Key) -> usize {
        let next = self.0.len();
        *self.0.entry(key).or_insert(next)
    }
}

impl Container {
    pub(crate) fn new(graph: Graph) -> Self {
        Self(Arc::new(Inner { graph, singletons: Mutex::default() }))
    }

    /// The singleton of that type, built if it is not there yet.
    ///
    /// # Errors
    /// Nothing provides it, it lives in scopes only, or a constructor failed.
    pub async fn get<T: ?Sized + Send + Sync + 'static>(&self) -> Result<Arc<T>, BootError> {
        let key = Key::of::<T>();
        if self.0.graph.lifetime(key) == Some(Lifetime::Request) {
            let fix = "open a scope with `Application::scope` and ask there";
            return Err(refuse(key, "lives in a scope and is asked for outside of one", fix));
        }
        self.scope().get().await
    }

    /// Opens a scope by hand.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope { container: self.clone(), numbering: Numbering::default(), slots: Slots::default() }
    }

    pub(crate) fn lifetime(&self, key: Key) -> Option<Lifetime> {
        self.0.graph.lifetime(key)
    }

    /// What must be given for `roots`, because nothing builds it.
    pub(crate) fn externals(&self, roots: &[Key]) -> Vec<Key> {
        let external =
            |key: &Key| self.0.graph.get(*key).is_some_and(|provider| matches!(provider.make, Make::External));
        self.0.graph.closure(roots.iter().copied()).into_iter().filter(external).collect()
    }

    pub(crate) fn provides(&self, key: Key) -> bool {
        self.0.graph.get(key).is_some()
    }

    /// Builds the singletons among what `roots` need; goes on past failures, so that all of them are told.
    pub(crate) async fn build(&self, roots: impl IntoIterator<Item = Key>) -> Result<(), Vec<Violation>> {
        let graph = &self.0.graph;
        let mut singletons = self.0.singletons.lock().await;
        let mut violations = Vec::new();
        for key in graph.closure(roots) {
            let Some(provider) = graph.get(key) else { continue };
            let alias = matches!(provider.make, Make::Alias(_));
            if alias || provider.lifetime == Lifetime::Request || singletons.instances.contains_key(&key) {
                continue;
            }
            if singletons.closed && !matches!(provider.make, Make::Value(_)) {
                let problem = "the application was stopped, and nothing is built any more";
                violations
                    .push(Violation::new(ViolationKind::Graph, problem, "ask before `stop`").subject(key.to_string()));
                continue;
            }
            // What a failed constructor would have given is missing: its own failure is told already.
            let inputs: Option<Vec<_>> =
                provider.dependencies.iter().map(|key| self.input(*key, &singletons, None)).collect();
            let Some(inputs) = inputs else { continue };
            match construct(provider, &inputs).await {
                Ok(instance) => {
                    singletons.instances.insert(key, instance);
                    singletons.built.push(key);
                }
                Err(error) => {
                    let violation = Violation::new(
                        ViolationKind::Constructor,
                        format!("cannot be built: {}", chain(&*error.source)),
                        "its constructor failed with this error",
                    );
                    violations.push(violation.subject(key.to_string()));
                }
            }
        }
        if violations.is_empty() { Ok(()) } else { Err(violations) }
    }

    /// Compiles what must be built in a scope, and where what is asked for then comes from.
    pub(crate) async fn plan(&self, roots: &[Key], numbering: &mut Numbering) -> Result<Plan, Vec<Violation>> {
        self.build(roots.iter().copied()).await?;
        let graph = &self.0.graph;
        let singletons = self.0.singletons.lock().await;
        let mut steps = Vec::new();
        for key in graph.closure(roots.iter().copied()) {
            let Some(provider) = graph.get(key).filter(|provider| provider.lifetime == Lifetime::Request) else {
                continue;
            };
            if matches!(provider.make, Make::Alias(_)) {
                continue;
            }
            let inputs: Option<Vec<_>> =
                provider.dependencies.iter().map(|key| self.input(*key, &singletons, Some(numbering))).collect();
            let inputs = inputs.ok_or_else(|| vec![missing(key)])?;
            steps.push(Step { key, slot: numbering.slot(key), make: provider.make.clone(), inputs: inputs.into() });
        }
        let inputs: Result<Vec<_>, _> = roots
            .iter()
            .map(|key| self.input(*key, &singletons, Some(numbering)).ok_or_else(|| vec![missing(*key)]))
            .collect();
        Ok(Plan::new(steps, inputs?))
    }

    /// Where `key` comes from: a singleton that is built, or a slot.
    fn input(&self, key: Key, singletons: &Singletons, numbering: Option<&mut Numbering>) -> Option<Input> {
        let graph = &self.0.graph;
        let source = graph.source(key)?;
        let (reader, export) = self.reader(key)?;
        let source = match source.lifetime {
            Lifetime::Singleton => Source::Ready(export(singletons.instances.get(&source.key)?)?),
            Lifetime::Request => Source::Slot(numbering?.slot(source.key), reader),
        };
        Some(Input { key, source })
    }

    /// How an instance of the source is read as `key`.
    fn reader(&self, key: Key) -> Option<(Arc<dyn Any + Send + Sync>, Export)> {
        let provider = self.0.graph.get(key)?;
        match &provider.make {
            Make::Alias(compose) => compose(&self.reader(*provider.dependencies.first()?)?.0),
            Make::Value(_) | Make::Now(_) | Make::Later(_) | Make::External => {
                Some((Arc::clone(&provider.reader), Arc::clone(&provider.export)))
            }
        }
    }

    /// Builds nothing more, and gives every singleton that there is, the last built first, with what is known of it by one
    /// of `keys` and the index of that.
    pub(crate) async fn tear_down(&self, keys: &[Key]) -> Vec<Leaving> {
        let mut singletons = self.0.singletons.lock().await;
        singletons.closed = true;
        let built = std::mem::take(&mut singletons.built);
        let mut instances = std::mem::take(&mut singletons.instances);
        let mut leaving = Vec::new();
        for source in built.into_iter().rev() {
            let Some(instance) = instances.remove(&source) else { continue };
            let known = keys.iter().enumerate().filter_map(|(index, key)| {
                // A view is closed with what is behind it.
                self.0.graph.source(*key).filter(|provider| provider.key == source)?;
                Some((index, self.reader(*key)?.1(&instance)?))
            });
            leaving.push(Leaving { known: known.collect(), instance });
        }
        leaving
    }
}

/// A singleton on its way out.
pub(crate) struct Leaving {
    pub(crate) known: Vec<(usize, Arc<dyn Any + Send + Sync>)>,
    pub(crate) instance: Instance,
}

async fn construct(provider: &Provider, inputs: &[Input]) -> Result<Instance, BuildError> {
    let slots = Slots::default();
    let building = async { provider.make.build(provider.key, &mut Resolver::new(inputs, &slots))?.await };
    guard(building).await.unwrap_or_else(|panic| Err(BuildError { key: provider.key, source: panic.into() }))
}

fn missing(key: Key) -> Violation {
    Violation::new(ViolationKind::Graph, "nothing provides it", "provide it with the application's builder")
        .subject(key.to_string())
}

fn refuse(key: Key, problem: &str, fix: &str) -> BootError {
    BootError::from(vec![Violation::new(ViolationKind::Graph, problem, fix).subject(key.to_string())])
}

impl fmt::Debug for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Container").field("graph", &self.0.graph).finish_non_exhaustive()
    }
}

/// A scope opened by hand: request-scoped instances outside of a delivery.
///
/// ```
/// use std::sync::Arc;
/// use messaging::app::Provider;
/// use messaging::prelude::*;
///
/// struct Tenant(&'static str);
///
/// #[derive(Injectable)]
/// #[injectable(scope = "request")]
/// struct Report { tenant: Arc<Tenant> }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), BootError> {
/// let app = Application::builder().external::<Tenant>().provide::<Report>().create().await?;
/// let mut scope = app.scope();
/// scope.give(Arc::new(Tenant("acme")));
/// assert_eq!(scope.get::<Report>().await?.tenant.0, "acme");
/// # Ok(()) }
/// ```
pub struct Scope {
    container: Container,
    numbering: Numbering,
    slots: Slots,
}

impl Scope {
    /// Gives something that was declared with `external`.
    pub fn give<T: Send + Sync + 'static>(&mut self, value: Arc<T>) {
        let slot = self.numbering.slot(Key::of::<T>());
        self.slots.put(slot, value);
    }

    /// The scope's instance of that type, or the singleton.
    ///
    /// # Errors
    /// Nothing provides it, or a constructor failed.
    pub async fn get<T: ?Sized + Send + Sync + 'static>(&mut self) -> Result<Arc<T>, BootError> {
        let key = Key::of::<T>();
        if !self.container.provides(key) {
            return Err(BootError::from(vec![missing(key)]));
        }
        let plan = self.container.plan(&[key], &mut self.numbering).await.map_err(BootError::from)?;
        let failed = |error: BuildError| {
            let violation =
                Violation::new(ViolationKind::Constructor, format!("cannot be built: {}", chain(&*error.source)), "");
            BootError::from(vec![violation.subject(error.key.to_string())])
        };
        plan.fill(&mut self.slots).await.map_err(failed)?;
        plan.read(&self.slots).ok_or_else(|| BootError::from(vec![missing(key)]))
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("slots", &self.slots).finish_non_exhaustive()
    }
}
