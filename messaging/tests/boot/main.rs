//! What refuses the boot, how it reads, and what starting and stopping an application does.
#![allow(clippy::unwrap_used)]

mod everything;
mod options;
mod proofs;
mod starting;
mod stopping;
#[path = "../support/mod.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use messaging::app::{Container, Plugin, Provider, Registry};
use messaging::driver::MessagingDriver;
use messaging::prelude::*;
use messaging::{
    Attempt, Backoff, BoxError, Capabilities, ErrorKind, Jitter, OutboundMessage, QueueState, Reason, RetryPlan,
    Settlement, Step, ViolationKind, driver_from_url,
};
use messaging_memory::capabilities::{KAFKA, KAFKA_WITHOUT_RETRY_TOPICS, MEMORY, RABBITMQ, SQS};
use messaging_memory::{Fault, MemoryDriver};
use support::Log;
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

fn beyond(attempt: u32, asked: &str, longest: &str) -> String {
    format!("the retry after attempt {attempt} wants a delay of {asked}, and the driver can delay at most {longest}")
}

#[consumer("one")]
struct One {
    log: Arc<Log>,
}

#[handlers]
impl One {
    #[on_message("slow")]
    #[retry(attempts = 2, delay = 12h)]
    async fn on_slow(&self) {}

    #[on_message]
    async fn on_any(&self) {
        self.log.note("one");
    }
}

#[consumer("two")]
struct Two;

#[handlers]
impl Two {
    #[on_message]
    async fn on_any(&self) {}
}

#[consumer("three")]
struct Three;

#[handlers]
impl Three {
    #[on_message]
    async fn on_any(&self) {}
}

fn problems(error: &BootError) -> Vec<String> {
    error.violations().iter().map(|violation| format!("{}: {}", violation.concerns(), violation.problem())).collect()
}

async fn refused(builder: messaging::ApplicationBuilder) -> Vec<String> {
    problems(&builder.create().await.unwrap_err())
}

async fn created(plugin: MessagingPlugin) -> Application {
    Application::builder().shared(Arc::new(Log::default())).plugin(plugin).create().await.unwrap()
}

async fn broker_of(app: &Application) -> Arc<MessageBroker> {
    app.get().await.unwrap()
}

/// Notes what happens to it; can refuse to start.
struct Noting {
    log: Arc<Log>,
    name: &'static str,
    fails: bool,
}

#[async_trait]
impl Plugin for Noting {
    fn name(&self) -> &'static str {
        self.name
    }

    fn configure(&mut self, _registry: &mut Registry) {}

    async fn check(&mut self, _container: &Container) -> Result<(), BootError> {
        Ok(())
    }

    async fn start(&mut self) -> Result<(), BootError> {
        self.log.note(format!("start {}", self.name));
        let violation = messaging::Violation::new(ViolationKind::Options, "does not want to", "ask it nicely");
        if self.fails { Err(BootError::from(vec![violation])) } else { Ok(()) }
    }

    async fn stop(&mut self, _hurry: &CancellationToken) {
        self.log.note(format!("stop {}", self.name));
    }
}

#[consumer("beds")]
struct Sleeper;

#[handlers]
impl Sleeper {
    #[on_message]
    async fn on_any(&self) {
        sleep(10 * SECOND).await;
    }
}
