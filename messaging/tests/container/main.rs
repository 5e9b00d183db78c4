//! The container: lifetimes, views, constructors that fail, scopes, and what closes.
#![allow(clippy::unwrap_used)]

mod closing;
mod consumers;
mod graph;
mod lifetimes;
mod scopes;
#[path = "../support/mod.rs"]
mod support;
mod views;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use messaging::app::{Container, Dependency, Key, Plugin, Provider, Registry, Requirement, Resolver};
use messaging::prelude::*;
use messaging::{BoxError, Lifetime, Reason, Settlement};
use messaging_memory::MemoryDriver;
use support::{Log, message};
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

/// A plugin that needs singletons, so that boot builds them.
#[derive(Default)]
struct Needs(Vec<Key>);

impl Needs {
    fn of<T: ?Sized + 'static>(mut self) -> Self {
        self.0.push(Key::of::<T>());
        self
    }
}

#[async_trait]
impl Plugin for Needs {
    fn name(&self) -> &'static str {
        "needs"
    }

    fn configure(&mut self, registry: &mut Registry) {
        for key in self.0.drain(..) {
            registry.require(Requirement { who: "the test".into(), key, lifetime: Lifetime::Singleton });
        }
    }

    async fn check(&mut self, _container: &Container) -> Result<(), BootError> {
        Ok(())
    }

    async fn start(&mut self) -> Result<(), BootError> {
        Ok(())
    }

    async fn stop(&mut self, _hurry: &CancellationToken) {}
}

trait Repo: Send + Sync {
    fn name(&self) -> &'static str;
}

struct Fake;

impl Repo for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }
}

/// Notes that it is built; an `Injectable` written by hand.
struct PgRepo;

impl Injectable for PgRepo {
    fn dependencies() -> Vec<Key> {
        vec![<Arc<Log> as Dependency>::key(), <Arc<Pool> as Dependency>::key()]
    }

    fn construct(resolver: &mut Resolver<'_>) -> Result<Self, BoxError> {
        let log = resolver.next::<Log>()?;
        let _pool = resolver.next::<Pool>()?;
        log.note("built PgRepo");
        Ok(Self)
    }
}

impl Repo for PgRepo {
    fn name(&self) -> &'static str {
        "pg"
    }
}

struct Pool;

fn pool(log: Arc<Log>) -> Pool {
    log.note("built Pool");
    Pool
}

fn log() -> Arc<Log> {
    Arc::default()
}

#[derive(Injectable)]
struct Leaf {
    #[inject(default)]
    number: u8,
}

#[derive(Injectable)]
struct Branch {
    leaf: Arc<Leaf>,
}

#[derive(Injectable)]
struct Tree {
    branch: Arc<Branch>,
    leaf: Arc<Leaf>,
}

trait Named: Send + Sync {
    fn text(&self) -> String;
}

struct Greeting(String);

impl Named for Greeting {
    fn text(&self) -> String {
        self.0.clone()
    }
}

trait Deep: Send + Sync {
    fn deep(&self) -> String;
}

impl Deep for Arc<dyn Named> {
    fn deep(&self) -> String {
        format!("deep {}", self.text())
    }
}

/// `subject: problem` of each violation.
fn problems(error: &BootError) -> Vec<String> {
    error.violations().iter().map(|violation| format!("{}: {}", violation.concerns(), violation.problem())).collect()
}

async fn refused(builder: messaging::ApplicationBuilder) -> Vec<String> {
    problems(&builder.create().await.unwrap_err())
}

struct Gone;
struct Tenant(String);

impl Tenant {
    fn of(message: &InboundMessage) -> Self {
        Self(message.headers.text("tenant").unwrap_or("none").to_owned())
    }

    fn provider() -> Provider {
        Provider::factory(|message: Arc<InboundMessage>| Self::of(&message)).per_request()
    }
}

trait Tenanted: Send + Sync {
    fn tenant(&self) -> String;
}

impl Tenanted for Tenant {
    fn tenant(&self) -> String {
        self.0.clone()
    }
}

/// One for each scope; numbered in the order they are built.
struct Trace {
    number: usize,
}

impl Trace {
    fn provider() -> Provider {
        let built = AtomicUsize::new(0);
        Provider::factory(move || Self { number: built.fetch_add(1, Ordering::Relaxed) }).per_request()
    }
}
