use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use messaging::driver::SubscribeOptions;
use messaging::{MessageId, MessagingDriver, OutboundMessage};
use tokio::time::sleep;

use super::app::AppBuilder;
use super::breach::Verdict;
use super::broker::Client;
use super::hand::{Hand, Told};
use super::stage::Stage;

/// One process of the application under test: a driver, by which it publishes and consumes.
pub(crate) struct Process {
    pub(crate) stage: Stage,
    client: Client,
}

impl Process {
    pub(super) fn new(stage: Stage, client: Client) -> Self {
        Self { stage, client }
    }

    pub(crate) fn driver(&self) -> &Arc<dyn MessagingDriver> {
        &self.client.driver
    }

    pub(crate) async fn connect(&self) -> Verdict {
        self.stage.succeeds("the driver connects", self.client.driver.connect()).await
    }

    /// Loses the connection for a moment.
    pub(crate) async fn cut(&self) -> Verdict {
        self.stage.within("the connection is cut", self.client.cut()).await
    }

    pub(crate) async fn close(&self) -> Verdict {
        self.stage.succeeds("the driver closes", self.client.driver.close()).await
    }

    /// Publishes a message that must be confirmed.
    pub(crate) async fn publish(&self, message: OutboundMessage) -> Verdict<MessageId> {
        let what = format!("a publish to `{}` is confirmed", message.queue());
        self.stage.succeeds(what, self.client.driver.publish(message)).await
    }

    /// Publishes so many messages, one after the other, and gives their ids.
    pub(crate) async fn publish_some(&self, queue: &str, count: usize) -> Verdict<Vec<String>> {
        let mut ids = Vec::new();
        for _ in 0..count {
            ids.push(self.publish(self.message(queue)).await?.as_str().to_owned());
        }
        Ok(ids)
    }

    /// Publishes, again and again until it is confirmed, and gives the id of the one that was.
    pub(crate) async fn published_at_last(&self, queue: &str) -> Verdict<String> {
        let publish = async {
            loop {
                match self.client.driver.publish(self.message(queue)).await {
                    Ok(id) => return id.as_str().to_owned(),
                    Err(_) => sleep(Duration::from_millis(50)).await,
                }
            }
        };
        self.stage.within("a publish is confirmed again", publish).await
    }

    /// A message whose id is its number, and whose body is that as well.
    pub(crate) fn message(&self, queue: &str) -> OutboundMessage {
        let id = format!("m-{:04}", self.stage.next_message());
        OutboundMessage::raw(queue, Bytes::from(id.clone())).id(id)
    }

    /// Consumes a queue by hand.
    pub(crate) async fn consume(&self, queue: &str) -> Verdict<Hand> {
        self.consume_with(queue, |_| ()).await
    }

    pub(crate) async fn consume_with(&self, queue: &str, set: impl FnOnce(&mut SubscribeOptions)) -> Verdict<Hand> {
        let told = Arc::<Told>::default();
        let mut options = SubscribeOptions::new(queue, Arc::clone(&told) as _);
        options.dead_letter = Some(Arc::from(self.stage.dead_letter_queue(queue).await?));
        options.max_attempts = 5;
        options.native_delays = BTreeSet::from([self.stage.short_delay()]);
        options.longest_wait = self.stage.short_delay() * 5;
        set(&mut options);
        let stopping = Arc::clone(&options.stopping);
        let what = format!("subscribing to `{queue}`");
        let subscription = self.stage.succeeds(what, self.client.driver.subscribe(options)).await?;
        Ok(Hand::new(self.stage.clone(), queue, subscription, told, stopping))
    }

    /// Describes an application on this driver; it connects the driver itself.
    pub(crate) fn app(&self) -> AppBuilder {
        AppBuilder::new(self.stage.clone(), Arc::clone(&self.client.driver))
    }
}
