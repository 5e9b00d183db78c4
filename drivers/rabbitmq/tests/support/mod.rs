//! What the tests against a real broker share.

#![allow(dead_code, unreachable_pub, clippy::expect_used)]

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lapin::options::{BasicGetOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use libtest_mimic::{Arguments, Trial};
use messaging::driver::{DriverEvents, Fault, Lane, MessagingDriver, SubscribeOptions, Subscription};
use messaging::{BoxError, Delivery, Error, InboundMessage, Settlement};
use messaging_rabbitmq::{RabbitMqConfig, RabbitMqDriver};
use messaging_testkit::Relay;

/// Where the broker is; the tests show as ignored without.
pub fn url() -> Option<String> {
    std::env::var("RABBITMQ_URL").ok()
}

/// What ends and starts the broker: the command in `RABBITMQ_SCRIPT`, which takes `kill`, `stop`, `start` and `ctl`.
pub struct Script(String);

impl Script {
    pub fn given() -> Option<Self> {
        std::env::var("RABBITMQ_SCRIPT").ok().map(Self)
    }

    pub async fn run(&self, arguments: &str) -> Result<(), BoxError> {
        let command = format!("{} {arguments}", self.0);
        let run = move || std::process::Command::new("bash").args(["-c", &command]).output();
        let output = tokio::task::spawn_blocking(run).await??;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("{arguments}: {said}").into()) }
    }
}

/// A test that needs the broker.
pub fn trial<F: Future<Output = ()> + 'static>(name: &'static str, test: fn(String) -> F) -> Trial {
    let shown = if url().is_some() { name.to_owned() } else { format!("{name} (needs RABBITMQ_URL)") };
    let run = move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let url = url().ok_or("RABBITMQ_URL is not set")?;
        runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), test(url)).await })?;
        Ok(())
    };
    Trial::test(shown, run).with_ignored_flag(url().is_none())
}

pub fn run(trials: Vec<Trial>) {
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

/// A name that no other test has used.
pub fn unique(name: &str) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock").as_nanos();
    format!("test.{name}.{now}")
}

pub async fn connected(config: RabbitMqConfig) -> RabbitMqDriver {
    let driver = RabbitMqDriver::new(config);
    driver.connect().await.expect("connects");
    driver
}

pub fn config(url: &str) -> RabbitMqConfig {
    RabbitMqConfig::new(url).expect("a URL")
}

/// A relay in front of the broker, and the URL that goes through it.
pub fn relayed(url: &str) -> (Relay, String) {
    let (user, rest) = url.rsplit_once('@').expect("a user in RABBITMQ_URL");
    let (host, vhost) = rest.split_once('/').map_or((rest, String::new()), |(host, vhost)| (host, format!("/{vhost}")));
    let relay = Relay::to(host).expect("a relay");
    let url = format!("{user}@{}{vhost}", relay.address());
    (relay, url)
}

/// A client of its own, for what the driver does not do.
pub struct Raw {
    _connection: Connection,
    pub channel: Channel,
}

impl Raw {
    pub async fn new(url: &str) -> Self {
        let connection = Connection::connect(url, ConnectionProperties::default()).await.expect("connects");
        let channel = connection.create_channel().await.expect("a channel");
        Self { _connection: connection, channel }
    }

    pub async fn send(&self, queue: &str, body: &[u8], properties: BasicProperties) {
        let confirm = self.channel.basic_publish("".into(), queue.into(), Default::default(), body, properties).await;
        confirm.expect("sent").await.expect("sent");
    }

    pub async fn get(&self, queue: &str) -> Option<lapin::message::BasicGetMessage> {
        self.channel.basic_get(queue.into(), BasicGetOptions { no_ack: true }).await.expect("a queue")
    }

    /// Waits for the message.
    pub async fn wait(&self, queue: &str) -> lapin::message::BasicGetMessage {
        loop {
            if let Some(message) = self.get(queue).await {
                return message;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn count(&self, queue: &str) -> u32 {
        let options = QueueDeclareOptions { passive: true, ..Default::default() };
        self.channel.queue_declare(queue.into(), options, FieldTable::default()).await.expect("a queue").message_count()
    }

    pub async fn delete(&self, queue: &str) {
        self.channel.queue_delete(queue.into(), QueueDeleteOptions::default()).await.expect("deleted");
    }
}

/// What a driver told.
#[derive(Default)]
pub struct Told {
    pub settled: Mutex<Vec<(Settlement, bool)>>,
    pub faults: Mutex<Vec<String>>,
    pub healed: Mutex<usize>,
}

impl DriverEvents for Told {
    fn settled(&self, _: &Arc<InboundMessage>, settlement: &Settlement, result: Result<(), Error>) {
        self.settled.lock().expect("a lock").push((*settlement, result.is_ok()));
    }

    fn fault(&self, fault: Fault) {
        self.faults.lock().expect("a lock").push(fault.error.chain());
    }

    fn healed(&self) {
        *self.healed.lock().expect("a lock") += 1;
    }
}

impl Told {
    pub fn options(self: &Arc<Self>, queue: &str) -> SubscribeOptions {
        SubscribeOptions::new(queue, Arc::clone(self) as Arc<dyn DriverEvents>)
    }

    pub fn settlements(&self) -> Vec<(Settlement, bool)> {
        self.settled.lock().expect("a lock").clone()
    }
}

/// The next delivery of the first lane.
pub async fn next(subscription: &mut Subscription) -> Delivery {
    let lane: &mut Box<dyn Lane> = &mut subscription.lanes[0];
    let mut taken = VecDeque::new();
    let polled = poll_fn(|cx| lane.poll_next(cx, 1, &mut taken));
    tokio::time::timeout(Duration::from_secs(30), polled).await.expect("a delivery within 30 s").expect("not ended");
    taken.pop_front().expect("a delivery")
}

/// Waits until something holds.
pub async fn until(what: impl Fn() -> bool) {
    while !what() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
