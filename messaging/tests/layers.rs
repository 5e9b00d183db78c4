//! Tower layers around scope, decoding and handler.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use messaging::prelude::*;
use messaging::{HandlerError, HandlerService, Incoming, Reason, Settlement};
use messaging_memory::MemoryDriver;
use support::{Log, Rig};
use tower::limit::RateLimitLayer;
use tower::timeout::TimeoutLayer;
use tower::{BoxError, Layer, Service};

const SECOND: Duration = Duration::from_secs(1);

#[consumer("orders", concurrency = 4)]
struct Orders {
    log: Arc<Log>,
}

#[handlers]
impl Orders {
    #[on_message("good")]
    async fn good(&self) {
        self.log.note("handler");
    }

    #[on_message("final")]
    async fn ends(&self) -> Result<(), Failure> {
        Err(Failure::non_retryable("never"))
    }

    #[on_message("slow")]
    #[retry(attempts = 2, delay = 1s)]
    async fn slow(&self) {
        tokio::time::sleep(60 * SECOND).await;
    }

    #[on_error]
    async fn failed(&self, failure: &Failure) {
        self.log.note(format!("on_error {:?}", failure.kind()));
    }
}

/// Notes what goes in and comes out, under a name.
struct Noting(&'static str, Arc<Log>);

struct NotingService<S>(&'static str, Arc<Log>, S);

impl<S> Layer<S> for Noting {
    type Service = NotingService<S>;

    fn layer(&self, inner: S) -> NotingService<S> {
        NotingService(self.0, Arc::clone(&self.1), inner)
    }
}

impl<S> Service<Incoming> for NotingService<S>
where
    S: Service<Incoming, Response = (), Error = BoxError>,
    S::Future: Send + 'static,
{
    type Response = ();
    type Error = BoxError;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.2.poll_ready(cx)
    }

    fn call(&mut self, message: Incoming) -> Self::Future {
        let (name, log) = (self.0, Arc::clone(&self.1));
        log.note(format!("{name} in {}", message.message_type().unwrap_or("-")));
        let running = self.2.call(message);
        Box::pin(async move {
            let result = running.await;
            let text = match &result {
                Ok(()) => "ok".to_owned(),
                Err(error) => match error.downcast_ref::<HandlerError>() {
                    Some(error) => format!("{:?}", error.failure().kind()),
                    None => error.to_string(),
                },
            };
            log.note(format!("{name} out {text}"));
            result
        })
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_layer_is_the_outermost_and_sees_what_the_handler_failed_with() {
    let layers = Arc::new(Log::default());
    let (outer, inner) = (Noting("outer", Arc::clone(&layers)), Noting("inner", Arc::clone(&layers)));
    let rig = Rig::start_with::<Orders>(MemoryDriver::new(), |options| options.layer(outer).layer(inner)).await;
    rig.send("good", "");
    rig.driver.idle().await;
    assert_eq!(layers.lines(), ["outer in good", "inner in good", "inner out ok", "outer out ok"]);
    rig.send("final", "");
    rig.driver.idle().await;
    assert_eq!(layers.lines()[6..], ["inner out NonRetryable", "outer out NonRetryable"]);
    assert_eq!(rig.driver.settlements("orders"), [Settlement::Ack, Settlement::DeadLetter(Reason::NonRetryable)]);
    assert_eq!(rig.log.lines(), ["handler", "on_error NonRetryable"]);
}

#[tokio::test(start_paused = true)]
async fn towers_timeout_is_a_timeout() {
    let rig =
        Rig::start_with::<Orders>(MemoryDriver::new(), |options| options.layer(TimeoutLayer::new(5 * SECOND))).await;
    rig.send("slow", "");
    rig.driver.idle().await;
    assert_eq!(
        rig.driver.settlements("orders"),
        [Settlement::retry(SECOND, 2), Settlement::DeadLetter(Reason::Exhausted)]
    );
    assert_eq!(rig.log.lines(), ["on_error Timeout"]);
}

#[tokio::test(start_paused = true)]
async fn a_limit_is_a_limit_of_the_consumer_whatever_its_concurrency() {
    let rig =
        Rig::start_with::<Orders>(MemoryDriver::new(), |options| options.layer(RateLimitLayer::new(10, SECOND))).await;
    for _ in 0..100 {
        rig.send("good", "");
    }
    tokio::time::sleep(Duration::from_millis(4_500)).await;
    assert_eq!(rig.log.count("handler"), 50);
    rig.driver.idle().await;
    assert_eq!(rig.log.count("handler"), 100);
}

#[tokio::test(start_paused = true)]
async fn stopping_while_a_layer_is_not_ready_gives_the_messages_back_unstarted() {
    let rig =
        Rig::start_with::<Orders>(MemoryDriver::new(), |options| options.layer(RateLimitLayer::new(1, 3_600 * SECOND)))
            .await;
    for _ in 0..3 {
        rig.send("good", "");
    }
    tokio::time::sleep(SECOND).await;
    let stopping = tokio::time::Instant::now();
    rig.app.stop().await;
    assert!(stopping.elapsed() < SECOND);
    assert_eq!(rig.log.count("handler"), 1);
    assert_eq!(rig.driver.pending("orders"), 2);
}

/// Answers every second message itself.
struct EverySecond(Arc<AtomicUsize>);

struct EverySecondService<S>(Arc<AtomicUsize>, S);

impl<S> Layer<S> for EverySecond {
    type Service = EverySecondService<S>;

    fn layer(&self, inner: S) -> EverySecondService<S> {
        EverySecondService(Arc::clone(&self.0), inner)
    }
}

impl<S: Service<Incoming, Response = (), Error = BoxError, Future: Send + 'static>> Service<Incoming>
    for EverySecondService<S>
{
    type Response = ();
    type Error = BoxError;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.1.poll_ready(cx)
    }

    fn call(&mut self, message: Incoming) -> Self::Future {
        match self.0.fetch_add(1, Ordering::Relaxed) % 4 {
            1 => Box::pin(std::future::ready(Ok(()))),
            3 => Box::pin(async { panic!("in a layer") }),
            _ => Box::pin(self.1.call(message)),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_may_answer_itself_and_its_panic_is_one_messages_failure() {
    let calls = Arc::new(AtomicUsize::new(0));
    let layer = EverySecond(Arc::clone(&calls));
    let rig = Rig::start_with::<Orders>(MemoryDriver::new(), |options| options.layer(layer)).await;
    for _ in 0..4 {
        rig.send("good", "");
    }
    rig.driver.idle().await;
    let settlements = rig.driver.settlements("orders");
    assert_eq!(settlements.iter().filter(|settlement| **settlement == Settlement::Ack).count(), 4);
    assert_eq!(settlements.len(), 5, "three acks, one retry, its ack: {settlements:?}");
    // The fourth call panicked and was retried; the fifth passed.
    assert_eq!(rig.log.count("handler"), 3);
}

#[test]
fn services_name_themselves() {
    fn assert_debug<T: std::fmt::Debug>() {}
    assert_debug::<HandlerService>();
    assert_debug::<Incoming>();
}
