use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lapin::options::QueueDeclareOptions;
use lapin::types::{AMQPValue, FieldTable};
use messaging::{Error, ErrorKind};
use tokio::time::{sleep, timeout};

use crate::config::{QueueType, RabbitMqConfig};
use crate::connection::Link;
use crate::convert::short;
use crate::{error, lock};

/// A delivery limit that no message reaches, and that every version of the server takes for a number.
const NO_LIMIT: i64 = i32::MAX as i64;

/// How long after a queue has gone it is declared again: 3.10 forgets to tell the old queue's consumers where it is there
/// again at once.
const SETTLED: Duration = Duration::from_millis(250);

/// How a queue counts, which decides how a message goes back to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counting {
    /// It counts deliveries and drops nothing: a message goes back in place.
    InPlace,
    /// It counts, and may drop a message that comes back too often: a message goes back as a copy.
    Limited,
    /// It does not count: a retry is a copy, a release goes back in place.
    None,
}

/// The queues that are ours to declare, and how each is declared.
pub(crate) struct Topology {
    link: Arc<Link>,
    config: Arc<RabbitMqConfig>,
    ours: Mutex<BTreeMap<String, FieldTable>>,
}

impl Topology {
    pub(crate) fn new(link: Arc<Link>, config: Arc<RabbitMqConfig>) -> Self {
        Self { link, config, ours: Mutex::default() }
    }

    /// Makes sure of a queue that messages are consumed from: an existing one is used as it is.
    pub(crate) async fn consumed(&self, queue: &str) -> Result<Counting, Error> {
        let arguments = self.plain();
        lock(&self.ours).insert(queue.to_owned(), arguments.clone());
        let Err(different) = self.ensure(queue, &arguments).await? else {
            return Ok(match self.config.queue_type {
                QueueType::Quorum => Counting::InPlace,
                QueueType::Classic => Counting::None,
            });
        };
        self.of_existing(queue, different).await
    }

    /// Makes sure of a queue that messages are only put into.
    pub(crate) async fn filled(&self, queue: &str) -> Result<(), Error> {
        self.helper(queue, self.plain()).await
    }

    /// Makes sure of the queue that holds a queue's messages back for that long.
    pub(crate) async fn retry(&self, queue: &str, delay: Duration) -> Result<(), Error> {
        let mut arguments = self.holding(delay, "");
        arguments.insert("x-dead-letter-routing-key".into(), AMQPValue::LongString(queue.into()));
        self.helper(&retry_name(queue, delay), arguments).await
    }

    /// Makes sure of the queue of a delay level: what has waited goes to the next exchange, with its routing key.
    pub(crate) async fn level(&self, name: &str, delay: Duration, next: &str) -> Result<(), Error> {
        self.helper(name, self.holding(delay, next)).await
    }

    fn holding(&self, delay: Duration, exchange: &str) -> FieldTable {
        let mut arguments = type_of(self.config.queue_type);
        let millis = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
        arguments.insert("x-message-ttl".into(), AMQPValue::LongLongInt(millis));
        arguments.insert("x-dead-letter-exchange".into(), AMQPValue::LongString(exchange.into()));
        if self.config.queue_type == QueueType::Quorum {
            arguments.insert("x-dead-letter-strategy".into(), AMQPValue::LongString("at-least-once".into()));
            arguments.insert("x-overflow".into(), AMQPValue::LongString("reject-publish".into()));
        }
        arguments
    }

    /// Declares a queue of ours again, where it has gone; `false` where it is not ours.
    pub(crate) async fn again(&self, queue: &str) -> Result<bool, Error> {
        let known = lock(&self.ours).get(queue).cloned();
        let Some(arguments) = known else { return Ok(false) };
        tracing::warn!(queue, "the queue has gone, and is declared again");
        sleep(SETTLED).await;
        self.ensure(queue, &arguments).await.map(|_| true)
    }

    async fn helper(&self, queue: &str, arguments: FieldTable) -> Result<(), Error> {
        lock(&self.ours).insert(queue.to_owned(), arguments.clone());
        if let Err(difference) = self.ensure(queue, &arguments).await? {
            tracing::warn!(queue, difference, "the queue exists with other arguments, and is used as it is");
        }
        Ok(())
    }

    /// Looks for the queue, and declares it where there is none; inside, how an existing one differs.
    async fn ensure(&self, queue: &str, arguments: &FieldTable) -> Result<Result<(), String>, Error> {
        let exists = match self.declare(queue, true, FieldTable::default()).await {
            Ok(()) => true,
            Err(refusal) if refusal.code == Some(404) => false,
            Err(refusal) => return Err(refusal.error(queue)),
        };
        match self.declare(queue, false, arguments.clone()).await {
            Ok(()) => Ok(Ok(())),
            Err(refusal) if refusal.code == Some(406) => Ok(Err(refusal.text)),
            Err(refusal) if refusal.code == Some(403) && exists => Ok(Err(refusal.text)),
            Err(refusal) => Err(refusal.error(queue)),
        }
    }

    async fn of_existing(&self, queue: &str, difference: String) -> Result<Counting, Error> {
        let mut difference = difference;
        if !difference.contains("'x-queue-type'") {
            match self.declare(queue, false, type_of(self.config.queue_type)).await {
                Ok(()) => difference.clear(),
                Err(refusal) => difference = refusal.text,
            }
        }
        if difference.contains("'stream'") {
            let what = format!("`{queue}` is a stream, which cannot be consumed as a queue: name another queue");
            return Err(Error::new(ErrorKind::Config, what));
        }
        // Where no type was given, 3.x says `none`.
        let is_classic = difference.contains("'x-queue-type'")
            && ["current is 'classic'", "current is none"].iter().any(|current| difference.contains(current));
        if is_classic && self.config.queue_type == QueueType::Quorum {
            let what = format!(
                "`{queue}` exists as a classic queue, which counts no deliveries: configure `queue_type` classic, or delete the queue"
            );
            return Err(Error::new(ErrorKind::Config, what));
        }
        tracing::warn!(
            queue,
            "the queue was declared by somebody else and may have a delivery limit: retries go back to it as copies"
        );
        Ok(if is_classic { Counting::None } else { Counting::Limited })
    }

    fn plain(&self) -> FieldTable {
        let mut arguments = type_of(self.config.queue_type);
        if self.config.queue_type == QueueType::Quorum {
            arguments.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(NO_LIMIT));
        }
        arguments
    }

    /// Declares on a channel of its own, which a refusal closes.
    async fn declare(&self, queue: &str, passive: bool, arguments: FieldTable) -> Result<(), Refusal> {
        let name = short("the name of the queue", queue).map_err(Refusal::from)?;
        let channel = self.link.channel_now().await.map_err(Refusal::from)?;
        let options = QueueDeclareOptions { passive, durable: true, ..QueueDeclareOptions::default() };
        let limit = self.config.connect_timeout;
        match timeout(limit, channel.queue_declare(name, options, arguments)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => {
                Err(Refusal { code: error::code(&error), text: error::text(&error), error: error::failed("", error) })
            }
            Err(_) => Err(error::connection(format!("declaring `{queue}`: no answer within {limit:?}")).into()),
        }
    }
}

/// The queue that holds messages of `queue` back for that long.
pub(crate) fn retry_name(queue: &str, delay: Duration) -> String {
    format!("{queue}.retry.{}", delay.as_millis())
}

fn type_of(queue_type: QueueType) -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString(queue_type.name().into()));
    arguments
}

/// Why a declaration was refused.
struct Refusal {
    code: Option<u16>,
    text: String,
    error: Error,
}

impl Refusal {
    fn error(self, queue: &str) -> Error {
        let hint = match self.code {
            Some(403) => "; the user needs the permission to configure, write and read it",
            Some(405) => "; it is exclusive to another connection",
            _ => "",
        };
        let kind = self.error.kind();
        if self.code.is_none() {
            self.error
        } else {
            Error::new(kind, format!("declaring `{queue}`: {}{hint}", self.text))
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { code: None, text: error.to_string(), error }
    }
}

impl fmt::Debug for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topology").field("ours", &lock(&self.ours).keys()).finish_non_exhaustive()
    }
}
