//! Every promise, on the broker that `RABBITMQ_URL` names; with `RABBITMQ_SCRIPT` it is killed and started too.

#![allow(clippy::expect_used)]

mod support;

use async_trait::async_trait;
use lapin::options::QueueDeleteOptions;
use messaging::BoxError;
use messaging_rabbitmq::{QueueType, RabbitMqDriver};
use messaging_testkit::conformance::{BrokerProcess, Client, Suite, TestBroker};
use support::{Raw, Script, config, relayed};

struct Broker {
    url: Option<String>,
    script: Option<Script>,
    queue_type: QueueType,
}

#[async_trait]
impl TestBroker for Broker {
    fn client(&self) -> Client {
        let (relay, url) = relayed(self.url.as_deref().expect("RABBITMQ_URL"));
        Client::new(RabbitMqDriver::new(config(&url).queue_type(self.queue_type))).cut_by(move || {
            relay.cut();
            std::future::ready(())
        })
    }

    fn missing(&self) -> Option<String> {
        self.url.is_none().then(|| "RABBITMQ_URL is not set".into())
    }

    async fn remove(&self, queue: &str) {
        let raw = Raw::new(self.url.as_deref().expect("RABBITMQ_URL")).await;
        for queue in [queue.to_owned(), format!("{queue}.retry.100")] {
            raw.channel.queue_delete(queue.into(), QueueDeleteOptions::default()).await.expect("deleted");
        }
    }

    fn process(&self) -> Option<&dyn BrokerProcess> {
        self.script.as_ref().map(|script| script as _)
    }
}

#[async_trait]
impl BrokerProcess for Script {
    async fn kill(&self) -> Result<(), BoxError> {
        self.run("kill").await
    }

    async fn start(&self) -> Result<(), BoxError> {
        self.run("start").await
    }
}

fn main() -> std::process::ExitCode {
    let broker = |queue_type| Broker { url: support::url(), script: Script::given(), queue_type };
    Suite::new("rabbitmq", broker(QueueType::Quorum)).and("rabbitmq-classic", broker(QueueType::Classic)).run()
}
