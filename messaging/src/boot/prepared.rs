use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Proof;
use crate::app::{Container, Key, Numbering, Slots};
use crate::consumer::{Consumer, Router};
use crate::dispatch::{Engine, EngineParts, Events, Handler, Layered, OnErrorHandler, Runner, work};
use crate::driver::{DriverEvents, SubscribeOptions, Subscription};
use crate::message::InboundMessage;
use crate::options::MessagingOptions;
use crate::scope::{MESSAGE_SLOT, Scopes};
use crate::violation::{Violation, ViolationKind};
use crate::wire_names::WireNames;

/// What all consumers of a plugin share.
pub(crate) struct Setup {
    pub(crate) options: MessagingOptions,
    pub(crate) names: WireNames,
    pub(crate) stopping: Arc<AtomicBool>,
    pub(crate) token: Arc<CancellationToken>,
}

/// A consumer that is ready to be subscribed.
pub(crate) trait Prepared: Send + Sync {
    fn events(&self) -> &Arc<Events>;
    fn subscribe_options(&self) -> SubscribeOptions;
    /// Starts its workers on the lanes of a subscription.
    fn spawn(&self, subscription: Subscription) -> Vec<JoinHandle<()>>;
}

struct PreparedConsumer<C> {
    engine: Arc<Engine<C>>,
    events: Arc<Events>,
    subscribe: SubscribeOptions,
}

/// Compiles a consumer's scopes and makes its engine.
pub(crate) async fn prepare<C: Consumer>(
    container: &Container,
    setup: &Setup,
    proof: Proof,
    scopes: Scopes<C>,
    name: String,
) -> Result<Box<dyn Prepared>, Vec<Violation>> {
    let options = &setup.options;
    let declaration = C::declaration();
    let table = C::table();
    let router = Router::new(table.handlers.iter().map(|handler| (handler.name, handler.pattern)))?;

    let mut numbering = Numbering::default();
    let message = numbering.slot(Key::of::<InboundMessage>());
    debug_assert_eq!(message, MESSAGE_SLOT);
    // A shared consumer is there; one that is built in each scope is the first thing its plan is asked for.
    let root = matches!(scopes, Scopes::Scoped).then(Key::of::<C>);
    let mut handlers = Vec::new();
    for (entry, plan) in table.handlers.into_iter().zip(&proof.plans) {
        let mut keys: Vec<_> = root.into_iter().collect();
        (entry.requires)(&mut keys);
        refuse_externals(container, &keys, &format!("{name}::{}", entry.name))?;
        let scope = container.plan(&keys, &mut numbering).await?;
        let limits = [entry.timeout, options.driver.capabilities().max_run];
        handlers.push(Handler { scope, plan: *plan, limit: limits.into_iter().flatten().min(), entry });
    }
    let on_error = match table.on_error {
        Some(entry) => {
            let mut keys: Vec<_> = root.into_iter().collect();
            (entry.requires)(&mut keys);
            refuse_externals(container, &keys, &format!("{name}::#[on_error]"))?;
            Some(OnErrorHandler { scope: container.plan(&keys, &mut numbering).await?, entry })
        }
        None => None,
    };

    let queue: Arc<str> = Arc::from(declaration.queue);
    let events = Arc::new(Events::new(Arc::clone(&queue), Arc::from(name), options.listener.clone()));
    let subscribe = SubscribeOptions {
        consumer: events.shared_consumer(),
        concurrency: proof.concurrency,
        dead_letter: proof.dead_letter.clone(),
        max_attempts: proof.plans.iter().map(crate::RetryPlan::attempts).max().unwrap_or(1),
        native_delays: proof.plans.iter().fold(BTreeSet::new(), |mut delays, plan| {
            delays.append(&mut plan.native_delays());
            delays
        }),
        longest_wait: proof.plans.iter().map(crate::RetryPlan::longest_wait).max().unwrap_or_default(),
        longest_run: longest_run(&handlers),
        names: setup.names.clone(),
        driver: declaration.driver,
        stopping: Arc::clone(&setup.token),
        ..SubscribeOptions::new(queue, Arc::clone(&events) as Arc<dyn DriverEvents>)
    };
    let runner =
        Arc::new(Runner { scopes, handlers, on_error, codecs: options.codecs.clone(), no_slots: Slots::default() });
    let layered = Layered::new(Arc::clone(&runner), &options.layers, Arc::clone(&setup.token));
    let parts = EngineParts {
        driver: Arc::clone(&options.driver),
        names: setup.names.clone(),
        dead_letter: proof.dead_letter,
        copy_timeout: options.copy_timeout,
        requeue_delay: options.requeue_delay,
        events: Arc::clone(&events),
        stopping: Arc::clone(&setup.stopping),
        token: Arc::clone(&setup.token),
    };
    let engine = Arc::new(Engine::new(runner, router, layered, parts));
    Ok(Box::new(PreparedConsumer { engine, events, subscribe }))
}

/// A delivery gives its message and nothing else.
fn refuse_externals(container: &Container, keys: &[Key], who: &str) -> Result<(), Vec<Violation>> {
    let given = Key::of::<InboundMessage>();
    let externals = container.externals(keys).into_iter().filter(|key| *key != given);
    let refuse = |key: Key| {
        let problem =
            format!("needs {key}, which whoever opens a scope must give, and a delivery gives its message alone");
        Violation::new(ViolationKind::Graph, problem, "provide it with a factory that takes `Arc<InboundMessage>`")
            .subject(who)
    };
    let violations: Vec<_> = externals.map(refuse).collect();
    if violations.is_empty() { Ok(()) } else { Err(violations) }
}

/// The longest that any handler may run, where all of them have a limit.
fn longest_run<C>(handlers: &[Handler<C>]) -> Option<Duration> {
    handlers.iter().map(|handler| handler.limit).collect::<Option<Vec<_>>>()?.into_iter().max()
}

impl<C: Consumer> Prepared for PreparedConsumer<C> {
    fn events(&self) -> &Arc<Events> {
        &self.events
    }

    fn subscribe_options(&self) -> SubscribeOptions {
        self.subscribe.clone()
    }

    fn spawn(&self, subscription: Subscription) -> Vec<JoinHandle<()>> {
        let workers = subscription.lanes.len();
        let start = |lane| tokio::spawn(work(Arc::clone(&self.engine), lane, workers));
        subscription.lanes.into_iter().map(start).collect()
    }
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("options", &self.options).finish_non_exhaustive()
    }
}
