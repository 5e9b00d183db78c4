use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use messaging::driver::{COPY_RESERVE, MessagingDriver, SubscribeOptions, Subscription};
use messaging::{Capabilities, DeliveryCount, Error, ErrorKind, MessageId, Order, OutboundMessage};
use tokio_util::sync::CancellationToken;

use crate::config::{QueueType, RabbitMqConfig};
use crate::connection::Link;
use crate::copies::Copies;
use crate::intake::Intake;
use crate::levels::Levels;
use crate::publisher::Publisher;
use crate::subscriber::Subscriber;
use crate::topology::Topology;
use crate::{error, lock};

/// How many channels publish for services, and how many for retry and dead-letter copies.
const PUBLISH_CHANNELS: usize = 8;
const COPY_CHANNELS: usize = 4;
/// How long a close waits for the subscriptions to settle.
const CLOSE_LIMIT: Duration = Duration::from_secs(3);
/// 2^32 − 1 ms.
const LONGEST_DELAY: Duration = Duration::from_millis(u32::MAX as u64);

/// RabbitMQ, over two connections: one publishes, one consumes. See the [crate](crate).
pub struct RabbitMqDriver {
    config: Arc<RabbitMqConfig>,
    closing: CancellationToken,
    connecting: tokio::sync::Mutex<()>,
    connected: Mutex<Option<Connected>>,
}

#[derive(Clone)]
struct Connected {
    publish: Arc<Publisher>,
    copies: Arc<Copies>,
    consume: Arc<Link>,
    topology: Arc<Topology>,
    levels: Arc<Levels>,
    subscriptions: Arc<Mutex<Vec<Arc<Intake>>>>,
    closed: Arc<[Arc<Link>; 2]>,
}

impl RabbitMqDriver {
    /// A driver that connects to nothing yet.
    #[must_use]
    pub fn new(config: RabbitMqConfig) -> Self {
        Self {
            config: Arc::new(config),
            closing: CancellationToken::new(),
            connecting: tokio::sync::Mutex::default(),
            connected: Mutex::default(),
        }
    }

    fn connected(&self, what: &str) -> Result<Connected, Error> {
        if self.closing.is_cancelled() {
            return Err(error::closed(what));
        }
        lock(&self.connected).clone().ok_or_else(|| error::closed(what))
    }

    fn check_size(&self, message: &OutboundMessage) -> Result<(), Error> {
        let Some(largest) = self.capabilities().max_message_size else { return Ok(()) };
        // A copy may use what is kept free for its headers.
        let largest = if message.is_copy() { largest } else { largest.saturating_sub(COPY_RESERVE) };
        let (size, queue) = (message.size(), message.queue());
        if size <= largest {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::TooLarge,
            format!("publishing {size} bytes to `{queue}`, where {largest} are the most"),
        ))
    }

    async fn open(&self) -> Result<Connected, Error> {
        let closing = self.closing.child_token();
        // Whatever keeps this from being completed, the connection that is open already is closed.
        let unless_complete = closing.clone().drop_guard();
        let publish = Link::new(Arc::clone(&self.config), "publish", closing.clone());
        let consume = Link::new(Arc::clone(&self.config), "consume", closing);
        consume.start().await?;
        publish.start().await?;
        unless_complete.disarm();
        let topology = Arc::new(Topology::new(Arc::clone(&consume), Arc::clone(&self.config)));
        let timeout = self.config.publish_timeout;
        let levels = Arc::new(Levels::new(Arc::clone(&consume), Arc::clone(&self.config), Arc::clone(&topology)));
        let copies = Copies {
            publisher: Publisher::start(&publish, COPY_CHANNELS, timeout),
            topology: Arc::clone(&topology),
            levels: Arc::clone(&levels),
        };
        Ok(Connected {
            publish: Arc::new(Publisher::start(&publish, PUBLISH_CHANNELS, timeout)),
            copies: Arc::new(copies),
            topology,
            levels,
            subscriptions: Arc::default(),
            closed: Arc::new([Arc::clone(&publish), Arc::clone(&consume)]),
            consume,
        })
    }
}

#[async_trait]
impl MessagingDriver for RabbitMqDriver {
    fn name(&self) -> &'static str {
        "rabbitmq"
    }

    fn capabilities(&self) -> Capabilities {
        let counts = self.config.queue_type == QueueType::Quorum;
        Capabilities {
            native_delay: true,
            max_native_delay: LONGEST_DELAY,
            native_delay_granularity: Duration::from_millis(1),
            max_in_process_delay: Duration::from_secs(5),
            delivery_count: if counts { DeliveryCount::Failures } else { DeliveryCount::None },
            // Before 4.3 the broker counts what is given back; which version it is, is not known yet.
            release_counts: counts,
            crash_counts: counts,
            max_run: Some(Duration::from_secs(29 * 60)),
            max_publish_delay: LONGEST_DELAY,
            order: Order::Queue,
            keys: false,
            max_message_size: Some(16 * 1024 * 1024),
            max_headers: None,
        }
    }

    async fn connect(&self) -> Result<(), Error> {
        let _one_at_a_time = self.connecting.lock().await;
        if self.closing.is_cancelled() {
            return Err(error::closed("connecting"));
        }
        if lock(&self.connected).is_some() {
            return Ok(());
        }
        let opened = tokio::select! {
            () = self.closing.cancelled() => return Err(error::closed("connecting")),
            opened = self.open() => opened?,
        };
        *lock(&self.connected) = Some(opened);
        Ok(())
    }

    async fn subscribe(&self, options: SubscribeOptions) -> Result<Subscription, Error> {
        let connected = self.connected(&format!("subscribing to `{}`", options.queue))?;
        let topology = &connected.topology;
        topology.consumed(&options.queue).await?;
        if let Some(dead_letter) = &options.dead_letter {
            topology.filled(dead_letter).await?;
        }
        for delay in &options.native_delays {
            topology.retry(&options.queue, *delay).await?;
        }
        let intake = Arc::new(Intake::new(&options));
        lock(&connected.subscriptions).push(Arc::clone(&intake));
        let subscriber = Subscriber {
            link: Arc::clone(&connected.consume),
            topology: Arc::clone(topology),
            copies: Arc::clone(&connected.copies),
            intake,
            prefetch: self.config.prefetch_for(options.concurrency),
        };
        Ok(subscriber.open(options.concurrency))
    }

    async fn publish(&self, message: OutboundMessage) -> Result<MessageId, Error> {
        let connected = self.connected(&format!("publishing to `{}`", message.queue()))?;
        self.check_size(&message)?;
        let delay = message.delay_by();
        let publisher = if message.is_copy() { &connected.copies.publisher } else { &*connected.publish };
        let id = message.id.clone();
        let (queue, envelope) = message.into_parts();
        let publishing = async {
            if !delay.is_zero() {
                return connected.levels.publish(publisher, &queue, &envelope, delay).await;
            }
            match publisher.publish("", &queue, &envelope).await {
                Err(error) if error.kind() == ErrorKind::Unroutable && connected.topology.again(&queue).await? => {
                    publisher.publish("", &queue, &envelope).await
                }
                published => published,
            }
        };
        tokio::select! {
            published = publishing => published.map(|()| id),
            () = self.closing.cancelled() => {
                Err(Error::new(ErrorKind::Unconfirmed, format!("publishing to `{queue}`: the driver was closed")))
            }
        }
    }

    async fn close(&self) -> Result<(), Error> {
        let connected = lock(&self.connected).take();
        if let Some(connected) = &connected {
            let intakes = std::mem::take(&mut *lock(&connected.subscriptions));
            intakes.iter().for_each(|intake| intake.stop_receiving());
            let flushed = async {
                for intake in &intakes {
                    intake.flushed().await;
                }
            };
            let _ = tokio::time::timeout(CLOSE_LIMIT, flushed).await;
            intakes.iter().for_each(|intake| intake.closed.cancel());
        }
        self.closing.cancel();
        if let Some(connected) = connected {
            for link in connected.closed.iter() {
                link.closed().await;
            }
        }
        Ok(())
    }

    fn dead_letter_name(&self, queue: &str) -> String {
        format!("{queue}.dead-letter")
    }
}

impl fmt::Debug for RabbitMqDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitMqDriver").field("config", &self.config).finish_non_exhaustive()
    }
}
