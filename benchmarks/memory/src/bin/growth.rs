//! Whether a message costs the same beside a thousand handlers, providers and queues as beside one.

use std::cell::Cell;
use std::sync::{Arc, LazyLock};

use benchmark_memory::budget::{line, median};
use benchmark_memory::run::{Case, Mode, Run, Runtime, Sample, interleaved};
use benchmark_memory::work::{OrderCreated, TYPE, gate, handle, sample};
use messaging::app::{Key, Provider, Resolver};
use messaging::prelude::*;
use messaging::{
    ApplicationBuilder, BoxError, BoxFuture, Consumer, Declaration, FromMessage, HandlerEntry, HandlerTable, Handlers,
    MessageContext, Outcome,
};
use messaging_memory::MemoryDriver;

const MANY: usize = 1_000;
const LIMIT: f64 = 1.2;

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let (messages, rounds) = if quick { (50_000, 7) } else { (200_000, 9) };
    let case = |name, run| Case { name, modes: &[Mode::Prefill], run };
    let pairs = [
        (
            "growth-handlers",
            [
                case("1 handler", |run| Box::pin(handlers::<1>(run))),
                case("1,000 handlers", |run| Box::pin(handlers::<MANY>(run))),
            ],
        ),
        (
            "growth-providers",
            [
                case("1 provider", |run| Box::pin(providers(run, 1))),
                case("1,000 providers", |run| Box::pin(providers(run, MANY))),
            ],
        ),
        (
            "growth-queues",
            [case("1 queue", |run| Box::pin(queues(run, 1))), case("1,000 queues", |run| Box::pin(queues(run, MANY)))],
        ),
    ];
    println!("| beside | publish ns | drain ns: median | best |");
    println!("|---|---|---|---|");
    let mut budgets = Vec::new();
    for (name, pair) in pairs {
        let run = Run { messages, concurrency: 1, mode: Mode::Prefill, exit: None };
        let samples = interleaved(&pair, rounds, |case| Runtime::CurrentThread.run(case, run));
        for (case, samples) in pair.iter().zip(&samples) {
            let publish = samples.iter().map(|sample| sample.publish.as_nanos() as f64 / messages as f64);
            let drain = || samples.iter().map(|sample| sample.drain.as_nanos() as f64 / messages as f64);
            let best = drain().fold(f64::INFINITY, f64::min);
            println!("| {} | {:.0} | {:.0} | {best:.0} |", case.name, median(publish), median(drain()));
        }
        let ratios =
            samples[0].iter().zip(&samples[1]).map(|(one, many)| many.drain.as_secs_f64() / one.drain.as_secs_f64());
        budgets.push(line(name, median(ratios), LIMIT));
    }
    println!();
    budgets.iter().for_each(|line| println!("{line}"));
}

/// Spreads messages over `many`, so that no two of the same kind follow each other.
fn scattered(message: usize, many: usize) -> usize {
    message.wrapping_mul(617) % many
}

type Started = (Application, Arc<MessageBroker>);

async fn start(builder: ApplicationBuilder) -> Started {
    let app = builder.create().await.unwrap();
    app.start().await.unwrap();
    let broker = app.get::<MessageBroker>().await.unwrap();
    (app, broker)
}

/// Publishes every message, numbered from 0, where `target` says: through which application, to which queue, as which type.
async fn publish<'t>(run: Run, started: &[Started], target: impl Fn(usize) -> (usize, &'t str, &'t str)) -> Sample {
    let (order, mut message) = (&sample(), 0);
    let publish = || {
        let (application, queue, message_type) = target(message);
        message += 1;
        let broker = &started[application].1;
        async move { drop(broker.publish(queue, order).message_type(message_type).await.unwrap()) }
    };
    run.measure(publish).await
}

/// Publishes to `orders`, as the types that `message_type` gives.
async fn measure<'t>(run: Run, builder: ApplicationBuilder, message_type: impl Fn(usize) -> &'t str) -> Sample {
    let started = [start(builder).await];
    let sample = publish(run, &started, |message| (0, "orders", message_type(message))).await;
    started[0].0.stop().await;
    sample
}

/// The work of every handler here.
fn work<'m, C>(_: &'m C, context: MessageContext<'m>) -> BoxFuture<'m, Outcome> {
    Box::pin(async move {
        let order = Message::<OrderCreated>::from_message(context).await?;
        gate().await;
        handle(&order);
        Ok(())
    })
}

/// Has `N` handlers, of as many types.
#[derive(Injectable)]
struct Handling<const N: usize>;

static TYPES: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| (0..MANY).map(|number| &*format!("order.event-{number:03}").leak()).collect());

impl<const N: usize> Consumer for Handling<N> {
    fn declaration() -> Declaration {
        Declaration::new("orders")
    }
}

impl<const N: usize> Handlers for Handling<N> {
    fn table() -> HandlerTable<Self> {
        let entry = |message_type: &&'static str| HandlerEntry::new(message_type, |_| (), work).pattern(message_type);
        TYPES[..N].iter().map(entry).fold(HandlerTable::new(), HandlerTable::handler)
    }
}

async fn handlers<const N: usize>(run: Run) -> Sample {
    let plugin = MessagingPlugin::configure(MemoryDriver::new().recording(0)).consumer::<Handling<N>>();
    measure(run, Application::builder().plugin(plugin), |message| TYPES[scattered(message, N)]).await
}

/// One of a thousand types, numbered by its digits.
struct Numbered<const A: usize, const B: usize, const C: usize>;

/// What is done with each of the thousand types, in order.
trait Each {
    fn one<const A: usize, const B: usize, const C: usize>(&mut self);
}

macro_rules! ten_times {
    ($each:ident $call:ident $($digits:ident)*) => {
        ten_times!(@ $each $call [$($digits),*] 0 1 2 3 4 5 6 7 8 9)
    };
    (@ $each:ident $call:ident $digits:tt $($digit:literal)*) => {
        $(ten_times!(% $each $call $digits $digit);)*
    };
    (% $each:ident $call:ident [$($digits:ident),*] $digit:literal) => {
        $call::<_, $($digits,)* $digit>($each)
    };
}

fn hundreds<E: Each>(each: &mut E) {
    ten_times!(each tens);
}

fn tens<E: Each, const A: usize>(each: &mut E) {
    ten_times!(each ones A);
}

fn ones<E: Each, const A: usize, const B: usize>(each: &mut E) {
    ten_times!(each one A B);
}

fn one<E: Each, const A: usize, const B: usize, const C: usize>(each: &mut E) {
    each.one::<A, B, C>();
}

/// A thing of each delivery, of which each knows the message; the first is what the consumer needs.
impl<const A: usize, const B: usize, const C: usize> Injectable for Numbered<A, B, C> {
    const LIFETIME: messaging::Lifetime = messaging::Lifetime::Request;

    fn dependencies() -> Vec<Key> {
        vec![Key::of::<InboundMessage>()]
    }

    fn construct(resolver: &mut Resolver<'_>) -> Result<Self, BoxError> {
        resolver.next::<InboundMessage>().map(|_| Self)
    }
}

#[derive(Default)]
struct Provide(Vec<Provider>);

impl Each for Provide {
    fn one<const A: usize, const B: usize, const C: usize>(&mut self) {
        self.0.push(Provider::of::<Numbered<A, B, C>>());
    }
}

#[consumer("orders", scope = "request")]
struct Needing {
    #[expect(dead_code, reason = "built, which is the point")]
    first: Arc<Numbered<0, 0, 0>>,
}

#[handlers]
impl Needing {
    #[on_message("order.created")]
    async fn on_created(&self, order: Message<OrderCreated>) {
        gate().await;
        handle(&order);
    }
}

async fn providers(run: Run, many: usize) -> Sample {
    let mut provide = Provide::default();
    hundreds(&mut provide);
    let builder = provide.0.into_iter().take(many).fold(Application::builder(), ApplicationBuilder::add);
    let plugin = MessagingPlugin::configure(MemoryDriver::new().recording(0)).consumer::<Needing>();
    measure(run, builder.plugin(plugin), |_| TYPE).await
}

/// The consumer of one queue of an application.
#[derive(Injectable)]
struct Consuming<const A: usize, const B: usize, const C: usize>;

/// How many consumers an application has: each is compiled with a dispatcher of its own, and a thousand of those take a
/// quarter of an hour to build. So a thousand queues are those of a hundred applications on one memory broker.
const CONSUMERS: usize = 10;

thread_local! {
    /// Which application is being created.
    static APPLICATION: Cell<usize> = const { Cell::new(0) };
}

static QUEUES: LazyLock<Vec<String>> =
    LazyLock::new(|| (0..MANY).map(|number| format!("orders.{number:03}")).collect());

impl<const A: usize, const B: usize, const C: usize> Consumer for Consuming<A, B, C> {
    fn declaration() -> Declaration {
        Declaration::new(QUEUES[APPLICATION.get() * CONSUMERS + C].as_str())
    }
}

impl<const A: usize, const B: usize, const C: usize> Handlers for Consuming<A, B, C> {
    fn table() -> HandlerTable<Self> {
        HandlerTable::new().handler(HandlerEntry::new("on_created", |_| (), work).pattern(TYPE))
    }
}

struct Subscribe {
    plugin: Option<MessagingPlugin>,
    left: usize,
}

impl Each for Subscribe {
    fn one<const A: usize, const B: usize, const C: usize>(&mut self) {
        if self.left > 0 {
            self.left -= 1;
            self.plugin = self.plugin.take().map(|plugin| plugin.consumer::<Consuming<A, B, C>>());
        }
    }
}

async fn queues(run: Run, many: usize) -> Sample {
    let driver = MemoryDriver::new().recording(0);
    let mut started = Vec::new();
    for application in 0..many.div_ceil(CONSUMERS) {
        APPLICATION.set(application);
        let plugin = MessagingPlugin::configure(driver.another_process());
        let mut subscribe = Subscribe { plugin: Some(plugin), left: many.min(CONSUMERS) };
        ones::<_, 0, 0>(&mut subscribe);
        started.push(start(Application::builder().plugin(subscribe.plugin.unwrap())).await);
    }
    let sample = publish(run, &started, |message| {
        let queue = scattered(message, many);
        (queue / CONSUMERS, &QUEUES[queue], TYPE)
    })
    .await;
    for (app, _) in started {
        app.stop().await;
    }
    sample
}
