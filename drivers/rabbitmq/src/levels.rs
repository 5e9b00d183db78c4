use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lapin::options::{ExchangeBindOptions, ExchangeDeclareOptions, QueueBindOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, ExchangeKind};
use messaging::{Envelope, Error, ErrorKind};
use tokio::sync::Mutex;

use crate::config::RabbitMqConfig;
use crate::connection::Link;
use crate::convert::short;
use crate::publisher::Publisher;
use crate::topology::Topology;

/// One level for each bit of a delay in milliseconds.
const LEVELS: u32 = 32;
/// What is left of a routing key's 255 bytes behind the bits.
const LONGEST_NAME: usize = 255 - 2 * LEVELS as usize;

/// Delayed publishes: 32 queues, shared by all queues of the virtual host, that hold a message for 1, 2, 4 … milliseconds.
///
/// The routing key is the delay, bit by bit, then the queue. A message passes the levels from the highest bit to the lowest,
/// waits in those whose bit is set, and is routed to its queue behind the last.
pub(crate) struct Levels {
    link: Arc<Link>,
    config: Arc<RabbitMqConfig>,
    topology: Arc<Topology>,
    done: Mutex<Done>,
}

#[derive(Default)]
struct Done {
    declared: bool,
    bound: HashSet<String>,
}

impl Levels {
    pub(crate) fn new(link: Arc<Link>, config: Arc<RabbitMqConfig>, topology: Arc<Topology>) -> Self {
        Self { link, config, topology, done: Mutex::default() }
    }

    /// Publishes to the queue, to arrive after that long.
    pub(crate) async fn publish(
        &self,
        publisher: &Publisher,
        queue: &str,
        envelope: &Envelope,
        delay: Duration,
    ) -> Result<(), Error> {
        check_name(queue)?;
        let millis = rounded(delay)?;
        let exchange = self.name(millis.ilog2());
        let key = routing_key(millis, queue);
        self.ready(queue).await?;
        match publisher.publish(&exchange, &key, envelope).await {
            // Somebody has deleted a level.
            Err(error) if error.kind() == ErrorKind::Unroutable => {
                *self.done.lock().await = Done::default();
                self.ready(queue).await?;
                publisher.publish(&exchange, &key, envelope).await
            }
            published => published,
        }
    }

    /// Makes sure of the levels and of the queue's binding, once.
    async fn ready(&self, queue: &str) -> Result<(), Error> {
        let mut done = self.done.lock().await;
        if done.declared && done.bound.contains(queue) {
            return Ok(());
        }
        let channel = self.link.channel_now().await?;
        if !done.declared {
            self.declare(&channel).await?;
            done.declared = true;
        }
        let key = format!("{}{queue}", "*.".repeat(LEVELS as usize));
        match self.bind_queue(&channel, queue, &self.delivery(), &key).await {
            Ok(()) => drop(done.bound.insert(queue.to_owned())),
            Err(error) if error.kind() == ErrorKind::Config => {
                let what =
                    format!("publishing to `{queue}` with a delay: no such queue, declare it or consume it first");
                return Err(Error::new(ErrorKind::Unroutable, what).source(error));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Declares all levels from the last to the first, so that none leads nowhere.
    async fn declare(&self, channel: &Channel) -> Result<(), Error> {
        let unrouted = format!("{}.unrouted", self.config.delay_levels);
        self.exchange(channel, &unrouted, ExchangeKind::Fanout, FieldTable::default()).await?;
        self.topology.filled(&unrouted).await?;
        self.bind_queue(channel, &unrouted, &unrouted, "").await?;
        let mut arguments = FieldTable::default();
        // What finds no queue any more must not hold up what comes behind it.
        arguments.insert("alternate-exchange".into(), AMQPValue::LongString(unrouted.into()));
        self.exchange(channel, &self.delivery(), ExchangeKind::Topic, arguments).await?;
        for level in 0..LEVELS {
            let (name, next) = (self.name(level), if level == 0 { self.delivery() } else { self.name(level - 1) });
            let above = "*.".repeat((LEVELS - 1 - level) as usize);
            self.exchange(channel, &name, ExchangeKind::Topic, FieldTable::default()).await?;
            self.topology.level(&name, Duration::from_millis(1 << level), &next).await?;
            self.bind_queue(channel, &name, &name, &format!("{above}1.#")).await?;
            let bound = channel.exchange_bind(
                short("the name of a delay level", &next)?,
                short("the name of a delay level", &name)?,
                format!("{above}0.#").into(),
                ExchangeBindOptions::default(),
                FieldTable::default(),
            );
            self.link.bounded("binding a delay level", bound).await?;
        }
        Ok(())
    }

    async fn exchange(
        &self,
        channel: &Channel,
        name: &str,
        kind: ExchangeKind,
        arguments: FieldTable,
    ) -> Result<(), Error> {
        let options = ExchangeDeclareOptions { durable: true, ..ExchangeDeclareOptions::default() };
        let declared = channel.exchange_declare(short("the name of a delay level", name)?, kind, options, arguments);
        let what = format!(
            "declaring the exchange `{name}`; where it exists with other arguments, set another `delay_levels`"
        );
        self.link.bounded(&what, declared).await
    }

    async fn bind_queue(&self, channel: &Channel, queue: &str, exchange: &str, key: &str) -> Result<(), Error> {
        let bound = channel.queue_bind(
            short("the name of the queue", queue)?,
            short("the name of a delay level", exchange)?,
            short("a routing key", key)?,
            QueueBindOptions::default(),
            FieldTable::default(),
        );
        self.link.bounded(&format!("binding `{queue}` to `{exchange}`"), bound).await
    }

    fn name(&self, level: u32) -> String {
        format!("{}.{level}", self.config.delay_levels)
    }

    fn delivery(&self) -> String {
        format!("{}.delivery", self.config.delay_levels)
    }
}

impl fmt::Debug for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Levels").field("prefix", &self.config.delay_levels).finish_non_exhaustive()
    }
}

fn check_name(queue: &str) -> Result<(), Error> {
    let what = if queue.len() > LONGEST_NAME {
        format!("a delayed publish needs a queue name of at most {LONGEST_NAME} bytes, this one has {}", queue.len())
    } else if queue.split('.').any(|word| word == "*" || word == "#") {
        format!("a delayed publish cannot reach `{queue}`: `*` and `#` would be patterns")
    } else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Config, what))
}

/// The delay in milliseconds, rounded up to 8 significant bits: each set bit is a queue to pass. Never early, and less than
/// 1.6 % late.
fn rounded(delay: Duration) -> Result<u32, Error> {
    let millis = u64::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).max(1);
    let exact = u32::try_from(millis).map_err(|_| {
        let what = format!("a delay of {delay:?}, where {} ms are the longest", u32::MAX);
        Error::new(ErrorKind::Unsupported, what)
    })?;
    let step = (millis.next_power_of_two() >> 7).max(1);
    Ok(u32::try_from(millis.div_ceil(step) * step).unwrap_or(exact))
}

/// The bits of the delay, the highest first, then the queue.
fn routing_key(millis: u32, queue: &str) -> String {
    let mut key = String::with_capacity(2 * LEVELS as usize + queue.len());
    for level in (0..LEVELS).rev() {
        key.push_str(if millis >> level & 1 == 1 { "1." } else { "0." });
    }
    key.push_str(queue);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_never_shortened_and_have_few_bits() {
        for millis in [1, 5, 128, 129, 1_000, 86_400_000, 2_592_000_123, u64::from(u32::MAX)] {
            let rounded = rounded(Duration::from_millis(millis)).map(u64::from).unwrap_or_default();
            assert!(rounded >= millis && rounded - millis <= millis / 64, "{millis} became {rounded}");
            assert!(rounded.count_ones() <= 8 || millis == u64::from(u32::MAX));
        }
        assert!(rounded(Duration::from_millis(u64::from(u32::MAX) + 1)).is_err());
        assert_eq!(rounded(Duration::from_nanos(1)).ok(), Some(1));
    }

    #[test]
    fn the_key_is_the_delay_bit_by_bit() {
        assert_eq!(routing_key(5, "orders"), format!("{}1.0.1.orders", "0.".repeat(29)));
    }

    #[test]
    fn names_that_would_be_patterns_are_refused() {
        assert!(check_name("orders.*.new").is_err());
        assert!(check_name(&"q".repeat(192)).is_err());
        assert!(check_name("orders.new").is_ok());
    }
}
