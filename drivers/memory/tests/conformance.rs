//! Every promise, on this driver as it is, and as it passes for the others.

use messaging::Capabilities;
use messaging_memory::{MemoryDriver, capabilities};
use messaging_testkit::conformance::{Client, Suite, TestBroker, Timing};

struct Broker(MemoryDriver);

impl TestBroker for Broker {
    fn client(&self) -> Client {
        let driver = self.0.another_process();
        let same = driver.clone();
        Client::new(driver).cut_by(move || {
            same.disconnect();
            std::future::ready(())
        })
    }

    fn timing(&self) -> Timing {
        Timing::paused()
    }
}

fn broker(capabilities: Capabilities) -> Broker {
    Broker(MemoryDriver::emulating(capabilities))
}

fn main() -> std::process::ExitCode {
    Suite::new("memory", broker(capabilities::MEMORY))
        .and("memory-as-rabbitmq", broker(capabilities::RABBITMQ))
        .and("memory-as-rabbitmq-classic", broker(capabilities::RABBITMQ_CLASSIC))
        .and("memory-as-sqs", broker(capabilities::SQS))
        .and("memory-as-kafka", broker(capabilities::KAFKA))
        .and("memory-as-kafka-without-retry-topics", broker(capabilities::KAFKA_WITHOUT_RETRY_TOPICS))
        .run()
}
