use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use lapin::Channel;
use lapin::options::ConfirmSelectOptions;
use lapin::types::ShortString;
use messaging::{Envelope, Error, ErrorKind};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use crate::connection::Link;
use crate::convert::{encode, short};
use crate::error;
use crate::window::{Job, WINDOW, send};

/// How long a channel that could not be opened is waited for before the next attempt.
const PAUSE: Duration = Duration::from_millis(200);

/// Channels that publish, each owned by one task that sends a window of messages and waits for all its confirmations.
pub(crate) struct Publisher {
    owners: Vec<mpsc::Sender<Job>>,
    turn: AtomicUsize,
    timeout: Duration,
}

impl Publisher {
    /// Starts that many owners; they open their channels when something is to be published.
    pub(crate) fn start(link: &Arc<Link>, channels: usize, timeout: Duration) -> Self {
        let owners = (0..channels).map(|_| {
            let (sender, jobs) = mpsc::channel(WINDOW);
            tokio::spawn(Owner { link: Arc::clone(link), jobs, timeout, channel: None, kept: None }.run());
            sender
        });
        Self { owners: owners.collect(), turn: AtomicUsize::new(0), timeout }
    }

    /// Publishes to an exchange, the default one where its name is empty, and waits for the confirmation.
    pub(crate) async fn publish(&self, exchange: &str, routing_key: &str, envelope: &Envelope) -> Result<(), Error> {
        let taken = Arc::new(AtomicBool::new(false));
        let (answer, mut answered) = oneshot::channel();
        let job = Job {
            exchange: short("the name of the exchange", exchange)?,
            routing_key: short("the name of the queue", routing_key)?,
            id: ShortString::try_new(envelope.id.as_str()).unwrap_or_default(),
            encoded: encode(envelope)?,
            taken: Arc::clone(&taken),
            answer,
        };
        let deadline = Instant::now() + self.timeout;
        let gone = || error::closed(&format!("publishing to `{routing_key}`"));
        match timeout_at(deadline, self.owner(routing_key).send(job)).await {
            Ok(Ok(())) => (),
            Ok(Err(_)) => return Err(gone()),
            Err(_) => return Err(self.not_sent(routing_key)),
        }
        match timeout_at(deadline, &mut answered).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(_)) => Err(gone()),
            Err(_) => {
                answered.close();
                // It may have been answered in this very moment.
                match answered.try_recv() {
                    Ok(verdict) => verdict,
                    Err(_) if taken.load(Ordering::SeqCst) => {
                        let what = format!("publishing to `{routing_key}`: no confirmation within {:?}", self.timeout);
                        Err(Error::new(ErrorKind::Unconfirmed, what))
                    }
                    Err(_) => Err(self.not_sent(routing_key)),
                }
            }
        }
    }

    fn not_sent(&self, queue: &str) -> Error {
        error::connection(format!(
            "publishing to `{queue}`: not sent within {:?}, because RabbitMQ cannot be reached, blocks the connection, or is behind",
            self.timeout
        ))
    }

    /// Half of the owners serve a routing key: a queue that confirms nothing leaves the others to everybody else.
    fn owner(&self, routing_key: &str) -> &mpsc::Sender<Job> {
        let mut hasher = DefaultHasher::new();
        routing_key.hash(&mut hasher);
        let first = usize::try_from(hasher.finish() % self.owners.len() as u64).unwrap_or(0);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % (self.owners.len() / 2).max(1);
        &self.owners[(first + turn) % self.owners.len()]
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("channels", &self.owners.len()).finish_non_exhaustive()
    }
}

struct Owner {
    link: Arc<Link>,
    jobs: mpsc::Receiver<Job>,
    timeout: Duration,
    channel: Option<Channel>,
    /// What may not share the last window, because of its id.
    kept: Option<Job>,
}

impl Owner {
    async fn run(mut self) {
        while let Some(first) = self.next().await {
            let Some(channel) = self.channel(&first).await else { continue };
            let window = self.window(first);
            if window.is_empty() {
                continue;
            }
            if !send(&channel, window, Instant::now() + self.timeout).await {
                // A late confirmation must not meet the next window.
                self.channel = None;
            }
        }
    }

    async fn next(&mut self) -> Option<Job> {
        match self.kept.take() {
            Some(job) => Some(job),
            None => self.jobs.recv().await,
        }
    }

    /// The channel to publish on; `None` when the caller of the first job has gone, or the driver is closed.
    async fn channel(&mut self, first: &Job) -> Option<Channel> {
        loop {
            if first.answer.is_closed() || self.link.ready().await.is_err() {
                return None;
            }
            if let Some(channel) = self.channel.take_if(|channel| channel.status().connected()) {
                self.channel = Some(channel.clone());
                return Some(channel);
            }
            match self.open().await {
                Ok(channel) => self.channel = Some(channel),
                Err(error) => {
                    tracing::warn!(error = error.chain(), "cannot open a channel to publish on");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    async fn open(&self) -> Result<Channel, Error> {
        let channel = self.link.channel().await?;
        let selected = channel.confirm_select(ConfirmSelectOptions::default());
        self.link.bounded("asking for confirmations", selected).await?;
        Ok(channel)
    }

    fn window(&mut self, first: Job) -> Vec<Job> {
        let mut window: Vec<Job> = first.take().into_iter().collect();
        while window.len() < WINDOW {
            let Ok(job) = self.jobs.try_recv() else { break };
            if window.iter().any(|other| other.id == job.id) {
                self.kept = Some(job);
                break;
            }
            window.extend(job.take());
        }
        window
    }
}
