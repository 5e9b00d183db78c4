//! Under a whole application.

#![allow(clippy::expect_used)]

use std::time::Duration;

use messaging::prelude::*;
use messaging::{OutboundMessage, Reason, Settlement};
use messaging_memory::{Fault, MemoryDriver};

#[consumer("orders")]
struct OrderConsumer;

#[handlers]
impl OrderConsumer {
    #[on_message("order.created")]
    #[retry(attempts = 3, backoff = fixed, delay = 1d)]
    async fn on_created(&self, attempt: Attempt) -> Result<(), Failure> {
        Err(format!("run {attempt} failed").into())
    }

    #[on_message("order.cancelled")]
    async fn on_cancelled(&self) {}
}

async fn start(driver: &MemoryDriver) -> Application {
    let plugin = MessagingPlugin::configure(driver.clone()).consumer::<OrderConsumer>();
    let app = Application::builder().plugin(plugin).create().await.expect("boots");
    app.start().await.expect("starts");
    app
}

fn order(message_type: &str) -> OutboundMessage {
    OutboundMessage::raw("orders", "{}").message_type(message_type)
}

#[tokio::test(start_paused = true)]
async fn the_timeline_tells_each_failure_and_the_dead_letter_is_found() {
    let driver = MemoryDriver::new();
    let app = start(&driver).await;
    driver.send(order("order.created"));
    driver.idle().await;
    let errors: Vec<_> = driver.timeline("orders").into_iter().map(|entry| entry.error.expect("an error")).collect();
    assert_eq!(
        errors.iter().map(|error| &**error).collect::<Vec<_>>(),
        ["run 1 failed", "run 2 failed", "run 3 failed"]
    );
    let letters = driver.dead_letters("orders");
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].headers.text("x-znight-attempts"), Some("3"));
    assert_eq!(driver.pending("orders.dead-letter"), 1);
    app.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_is_not_confirmed_is_made_again_and_the_handler_is_not_run_again() {
    let driver = MemoryDriver::new();
    let app = start(&driver).await;
    driver.fail(Fault::publish("orders.dead-letter").times(2));
    driver.send(order("order.created"));
    driver.idle().await;
    let day = Duration::from_secs(86_400);
    let release = |seconds| Settlement::Release { delay: Duration::from_secs(seconds) };
    let expected = [
        Settlement::retry(day, 2),
        Settlement::retry(day, 3),
        release(1),
        release(2),
        Settlement::DeadLetter(Reason::Exhausted),
    ];
    assert_eq!(driver.settlements("orders"), expected);
    app.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_when_the_application_stops_is_consumed_by_the_next_one() {
    let driver = MemoryDriver::new();
    let app = start(&driver).await;
    driver.send(order("order.created"));
    tokio::time::sleep(Duration::from_secs(60)).await;
    app.stop().await;
    assert_eq!(driver.pending("orders"), 1);
    let next = driver.another_process();
    next.send(order("order.cancelled"));
    let app = start(&next).await;
    next.idle().await;
    assert_eq!(next.pending("orders"), 0);
    assert_eq!(next.timeline("orders").last().map(|entry| entry.attempt.get()), Some(3));
    app.stop().await;
}
