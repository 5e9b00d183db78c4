//! A whole application over a real broker.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use messaging::prelude::*;
use messaging::{RetryPolicy, driver_from_url};
use support::{Raw, run, trial, unique, until};

#[derive(Default)]
struct Seen {
    attempts: std::sync::Mutex<Vec<u32>>,
    handled: AtomicUsize,
}

#[consumer("test.application")]
struct Orders {
    seen: Arc<Seen>,
}

#[handlers]
impl Orders {
    #[on_message("order.created")]
    async fn on_created(&self) {
        self.seen.handled.fetch_add(1, Ordering::SeqCst);
    }

    #[on_message("order.broken")]
    async fn on_broken(&self, attempt: Attempt) -> Result<(), Failure> {
        self.seen.attempts.lock().unwrap().push(attempt.get());
        Err("the warehouse is closed".into())
    }
}

async fn started(url: &str) -> (Application, Arc<MessageBroker>, Arc<Seen>) {
    let options = MessagingOptions::from(driver_from_url(url).unwrap())
        .retry(RetryPolicy::new(3).delay(Duration::from_millis(50)))
        .concurrency(4);
    let plugin = MessagingPlugin::configure(options).consumer::<Orders>();
    let app = Application::builder().value(Seen::default()).plugin(plugin).create().await.unwrap();
    app.start().await.unwrap();
    let (broker, seen) = (app.get().await.unwrap(), app.get().await.unwrap());
    (app, broker, seen)
}

async fn it_consumes_retries_and_dead_letters(url: String) {
    let raw = Raw::new(&url).await;
    let (app, broker, seen) = started(&url).await;
    let id = unique("broken");
    broker.publish_raw("test.application", "{}").message_type("order.broken").id(id.clone()).await.unwrap();
    for _ in 0..100 {
        broker.publish_raw("test.application", "{}").message_type("order.created").await.unwrap();
    }
    let letter = raw.wait("test.application.dead-letter").await;
    let headers = letter.properties.headers().clone().unwrap();
    let text = |name: &str| match headers.inner().get(name) {
        Some(lapin::types::AMQPValue::LongString(text)) => text.to_string(),
        other => panic!("{name} is {other:?}"),
    };
    assert_eq!(letter.properties.message_id().as_ref().map(|id| id.to_string()), Some(id));
    assert_eq!(text("x-znight-error"), "the warehouse is closed");
    assert_eq!(text("x-znight-attempts"), "3");
    until(|| seen.handled.load(Ordering::SeqCst) == 100).await;
    assert_eq!(*seen.attempts.lock().unwrap(), [1, 2, 3]);
    app.stop().await;
    // What was handled is gone: the next process sees only what comes after.
    let (app, broker, seen) = started(&url).await;
    broker.publish_raw("test.application", "{}").message_type("order.created").await.unwrap();
    until(|| seen.handled.load(Ordering::SeqCst) > 0).await;
    app.stop().await;
    assert_eq!((seen.handled.load(Ordering::SeqCst), seen.attempts.lock().unwrap().len()), (1, 0));
    assert_eq!(raw.count("test.application").await, 0);
    raw.delete("test.application").await;
    raw.delete("test.application.dead-letter").await;
}

fn main() {
    run(vec![trial("it consumes, retries and dead-letters", it_consumes_retries_and_dead_letters)]);
}
