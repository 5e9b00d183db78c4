//! From what is declared to what runs: every check that needs no broker, and then the engines.

mod prepared;
mod registered;

use std::any::TypeId;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::app::{Key, Lifetime, Registry, Requirement};
use crate::capabilities::Capabilities;
use crate::consumer::{Consumer, Router};
use crate::duration::human;
use crate::options::{DefaultDeadLetter, MOST_WORKERS, MessagingOptions};
use crate::retry::RetryPlan;
use crate::violation::{Violation, ViolationKind};
use registered::{HandlerOutline, Own};

pub(crate) use prepared::{Prepared, Setup};
pub(crate) use registered::{Foreign, Registered, own};

use crate::consumer::DeadLetter;

/// The consumers of the binary, for `.discover()`; `#[consumer]` adds to it.
#[linkme::distributed_slice]
pub static CONSUMERS: [fn() -> Registration];

/// A consumer whose type is gone.
#[derive(Debug)]
pub struct Registration(pub(crate) Box<dyn Registered>);

/// Takes the type off a consumer; for generated code.
#[must_use]
pub fn registration<C: Consumer>() -> Registration {
    Registration(own::<C>())
}

/// Every consumer, once: what was named, in that order, then what was discovered, by name.
pub(crate) fn collect(
    named: Vec<Box<dyn Registered>>,
    discover: bool,
    registry: &mut Registry,
) -> Vec<Box<dyn Registered>> {
    let mut found: Vec<_> = if discover { CONSUMERS.iter().map(|make| make().0).collect() } else { Vec::new() };
    // The order of linking differs between builds.
    found.sort_by_key(|consumer| consumer.full_name());
    if discover && found.is_empty() {
        tracing::warn!(
            "`.discover()` found no consumer: a crate of consumers is linked only where something names it, as in `use my_consumers as _;`"
        );
    }
    let mut seen: HashMap<TypeId, bool> = HashMap::new();
    let mut consumers: Vec<Box<dyn Registered>> = Vec::new();
    for consumer in named {
        let ours = consumer.own().is_some();
        match seen.insert(consumer.id(), ours) {
            None => consumers.push(consumer),
            Some(true) if ours => (),
            Some(_) => {
                let fix = "say one of `.consumer::<C>()` and `.consumer_from::<C>(…)`, once";
                let problem = "is given twice, and once at least by a function: which of the two counts?";
                registry.refuse(Violation::new(ViolationKind::Queue, problem, fix).subject(consumer.name()));
            }
        }
    }
    // What is named counts, also where it comes from another container.
    consumers.extend(found.into_iter().filter(|consumer| seen.insert(consumer.id(), true).is_none()));
    consumers
}

/// Tells the container what the consumers need, and refuses what is wrong whatever the options say.
pub(crate) fn declare(consumers: &[Box<dyn Registered>], registry: &mut Registry) {
    let mut queues: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for consumer in consumers {
        let name = consumer.name();
        let declaration = consumer.declaration();
        queues.entry(declaration.queue.clone()).or_default().push(name.clone());
        if declaration.queue.is_empty() {
            let fix = "name one: `#[consumer(\"orders\")]`";
            registry
                .refuse(Violation::new(ViolationKind::Queue, "has no queue: its name is empty", fix).subject(&name));
        }
        let handlers = consumer.handlers();
        if handlers.is_empty() {
            let fix = "add a method with `#[on_message]`";
            registry.refuse(Violation::new(ViolationKind::Handlers, "has no handlers", fix).subject(&name));
        }
        if let Err(violations) = router(&handlers) {
            violations.into_iter().for_each(|violation| registry.refuse(violation.subject(&name)));
        }
        match consumer.own() {
            Some(own) => require_own(own, &name, &handlers, consumer.on_error_requires(), registry),
            None => refuse_foreign_injects(&name, &handlers, consumer.on_error_requires(), registry),
        }
    }
    for (queue, names) in queues.into_iter().filter(|(_, names)| names.len() > 1) {
        let problem = format!("is consumed by {}", names.join(" and "));
        let fix = "one consumer has all handlers of a queue: put them into one of them";
        registry.refuse(Violation::new(ViolationKind::Queue, problem, fix).subject(format!("queue `{queue}`")));
    }
}

pub(crate) fn router(handlers: &[HandlerOutline]) -> Result<Router, Vec<Violation>> {
    Router::new(handlers.iter().map(|handler| (handler.name, handler.pattern)))
}

fn require_own(own: Own, name: &str, handlers: &[HandlerOutline], on_error: Vec<Key>, registry: &mut Registry) {
    registry.add_fallback(own.provider);
    registry.require(Requirement { who: name.to_owned(), key: own.key, lifetime: Lifetime::Request });
    let of_handlers = handlers.iter().flat_map(|handler| handler.requires.iter().map(|key| (handler.name, *key)));
    for (method, key) in of_handlers.chain(on_error.into_iter().map(|key| ("#[on_error]", key))) {
        registry.require(Requirement { who: format!("{name}::{method}"), key, lifetime: Lifetime::Request });
    }
}

fn refuse_foreign_injects(name: &str, handlers: &[HandlerOutline], on_error: Vec<Key>, registry: &mut Registry) {
    let keys: Vec<_> = handlers.iter().flat_map(|handler| handler.requires.clone()).chain(on_error).collect();
    if !keys.is_empty() {
        let keys: Vec<_> = keys.iter().map(Key::to_string).collect();
        registry.refuse(
            Violation::new(
                ViolationKind::Graph,
                format!(
                    "comes from a function, and its handlers take `Inject` of {} from this container",
                    keys.join(", ")
                ),
                "let the function give the consumer what it needs, as fields",
            )
            .subject(name),
        );
    }
}

/// Proves what was declared against the options and the driver, and says how each consumer is to be set up.
pub(crate) fn prove(
    consumers: &[Box<dyn Registered>],
    options: &MessagingOptions,
) -> Result<Vec<Proof>, Vec<Violation>> {
    let capabilities = options.driver.capabilities();
    let mut violations = options.check();
    let proofs: Vec<_> =
        consumers.iter().map(|consumer| prove_one(&**consumer, options, &capabilities, &mut violations)).collect();
    refuse_circles(consumers, &proofs, &mut violations);
    if violations.is_empty() { Ok(proofs) } else { Err(violations) }
}

/// Dead letters that go from queue to queue and come back are never at an end.
fn refuse_circles(consumers: &[Box<dyn Registered>], proofs: &[Proof], violations: &mut Vec<Violation>) {
    let queues: Vec<String> = consumers.iter().map(|consumer| consumer.declaration().queue).collect();
    let next = |index: usize| queues.iter().position(|queue| proofs[index].dead_letter.as_deref() == Some(queue));
    for start in 0..queues.len() {
        let mut way = vec![start];
        // Each circle is told once, by the first of its consumers; one that starts elsewhere is told from there.
        while let Some(index) = way.last().and_then(|index| next(*index)).filter(|index| *index > start) {
            if way.contains(&index) {
                break;
            }
            way.push(index);
        }
        if way.len() > 1 && way.last().and_then(|index| next(*index)) == Some(start) {
            let names: Vec<_> = way.iter().chain([&start]).map(|index| queues[*index].as_str()).collect();
            let problem = format!("its dead letters go round: {}", names.join(" → "));
            let fix = "let one of the consumers name another dead-letter queue, or none with `dead_letter = false`";
            let subject = format!("queue `{}`", queues[start]);
            violations.push(Violation::new(ViolationKind::Options, problem, fix).subject(subject));
        }
    }
}

/// What was proven for a consumer.
#[derive(Clone, Debug)]
pub(crate) struct Proof {
    /// For each handler, in order.
    pub(crate) plans: Vec<RetryPlan>,
    pub(crate) dead_letter: Option<Arc<str>>,
    pub(crate) concurrency: usize,
}

fn prove_one(
    consumer: &dyn Registered,
    options: &MessagingOptions,
    capabilities: &Capabilities,
    violations: &mut Vec<Violation>,
) -> Proof {
    let name = consumer.name();
    let declaration = consumer.declaration();
    let queue = &declaration.queue;
    let driver = options.driver.name();
    let mut plans = Vec::new();
    for handler in consumer.handlers() {
        let subject = format!("{name}::{} (queue `{queue}`, driver `{driver}`)", handler.name);
        match RetryPlan::prove(&handler.retry.unwrap_or(options.retry), capabilities) {
            Ok(plan) => plans.push(plan),
            Err(violation) => violations.push(violation.subject(&subject)),
        }
        violations.extend(check_timeout(&handler, capabilities).map(|violation| violation.subject(&subject)));
    }
    let dead_letter = match (&declaration.dead_letter, &options.dead_letter) {
        (DeadLetter::Queue(name), _) => Some(name.clone()),
        (DeadLetter::None, _) | (DeadLetter::Default, DefaultDeadLetter::None) => None,
        (DeadLetter::Default, DefaultDeadLetter::Named(name)) => Some(name(queue)),
        (DeadLetter::Default, DefaultDeadLetter::Driver) => Some(options.driver.dead_letter_name(queue)),
    };
    let wrong = match dead_letter.as_deref() {
        Some("") => Some("its dead-letter queue has an empty name"),
        Some(name) if name == queue => Some("its dead letters would go to its own queue, round and round"),
        Some(_) | None => None,
    };
    if let Some(problem) = wrong {
        let fix = "name another queue with `dead_letter = \"…\"`, or say `dead_letter = false`";
        violations
            .push(Violation::new(ViolationKind::Options, problem, fix).subject(format!("{name} (queue `{queue}`)")));
    }
    let concurrency = declaration.concurrency.unwrap_or(options.concurrency);
    let wrong = match declaration.concurrency {
        Some(0) => Some((
            "its concurrency is 0, and nothing would be handled".to_owned(),
            "say 1 or more, or nothing for the application's default; a process that only publishes says `consume(false)`",
        )),
        Some(many) if many > MOST_WORKERS => Some((
            format!("its concurrency is {many}, and {MOST_WORKERS} are the most"),
            "a few hundred are many: each is a task, and a message in flight",
        )),
        Some(_) | None => None,
    };
    if let Some((problem, fix)) = wrong {
        violations
            .push(Violation::new(ViolationKind::Options, problem, fix).subject(format!("{name} (queue `{queue}`)")));
    }
    Proof { plans, dead_letter: dead_letter.map(Arc::from), concurrency }
}

fn check_timeout(handler: &HandlerOutline, capabilities: &Capabilities) -> Option<Violation> {
    let timeout = handler.timeout?;
    if timeout.is_zero() {
        let fix = "leave `timeout` out, or set the time a run may take";
        return Some(Violation::new(ViolationKind::Options, "its timeout is zero: no run would ever succeed", fix));
    }
    let longest = capabilities.max_run.filter(|longest| timeout > *longest)?;
    let problem =
        format!("its timeout is {}, and the broker takes a message back after {}", human(timeout), human(longest));
    Some(Violation::new(
        ViolationKind::Options,
        problem,
        "lower the timeout, or raise what the broker allows and tell the driver",
    ))
}
