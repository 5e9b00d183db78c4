use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use lapin::options::{BasicConsumeOptions, BasicQosOptions};
use lapin::types::FieldTable;
use messaging::driver::{Ended, Lane, Subscription, SubscriptionControl};
use messaging::{Delivery, Error};
use tokio::task::coop;
use tokio::time::{Instant, sleep, timeout};

use crate::backoff::Backoff;
use crate::connection::Link;
use crate::convert::short;
use crate::copies::Copies;
use crate::error;
use crate::generation::{Ending, Generation, Opened};
use crate::intake::Intake;
use crate::topology::Topology;

/// How long a flush waits.
const FLUSH_LIMIT: Duration = Duration::from_secs(5);
/// How long a channel must have delivered for the next loss to be met with the shortest wait.
const STEADY: Duration = Duration::from_secs(30);

/// Consumes one queue, over as many channels as it takes, one after the other.
pub(crate) struct Subscriber {
    pub(crate) link: Arc<Link>,
    pub(crate) topology: Arc<Topology>,
    pub(crate) copies: Arc<Copies>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) prefetch: u16,
}

impl Subscriber {
    /// Opens the lanes; nothing is received before one is polled.
    pub(crate) fn open(self, lanes: usize) -> Subscription {
        let intake = Arc::clone(&self.intake);
        let lane =
            |number| Box::new(RabbitMqLane { intake: Arc::clone(&intake), number, asked: false }) as Box<dyn Lane>;
        let lanes = (0..lanes).map(lane).collect();
        tokio::spawn(self.consume());
        Subscription { lanes, control: Arc::new(Control(intake)) }
    }

    async fn consume(self) {
        let stop = &self.intake.stop;
        tokio::select! {
            () = stop.cancelled() => return,
            () = self.intake.wanted.notified() => (),
        }
        let mut backoff = Backoff::default();
        let mut faulty = false;
        loop {
            let since = Instant::now();
            let error = match self.generation().await {
                Ok(generation) => {
                    if std::mem::take(&mut faulty) {
                        self.intake.events.healed();
                    }
                    match generation.run().await {
                        Ending::Stopped => return,
                        Ending::Cancelled(rest) => {
                            tokio::spawn(rest.settle_the_rest());
                            error::connection(format!("the broker ended the consumer of `{}`", self.intake.queue))
                        }
                        Ending::Lost { error, delivered } => {
                            if delivered || since.elapsed() > STEADY {
                                backoff.reset();
                            }
                            error
                        }
                    }
                }
                Err(error) => error,
            };
            if stop.is_cancelled() {
                return;
            }
            if !std::mem::replace(&mut faulty, true) {
                self.intake.fault(error);
            } else {
                tracing::warn!(queue = %self.intake.queue, error = error.chain(), "cannot consume yet");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(backoff.next()) => (),
            }
        }
    }

    /// Makes sure of the queue, and consumes it on a new channel.
    async fn generation(&self) -> Result<Generation, Error> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let queue = &*self.intake.queue;
        tokio::select! {
            () = self.intake.stop.cancelled() => return Err(error::closed("consuming")),
            ready = self.link.ready() => drop(ready?),
        }
        let counting = self.topology.consumed(queue).await?;
        let channel = self.link.channel_now().await?;
        let what = format!("consuming `{queue}`");
        self.link.bounded(&what, channel.basic_qos(self.prefetch, BasicQosOptions::default())).await?;
        let tag = short("the consumer tag", &tag(&self.intake.consumer, number))?;
        let consume = channel.basic_consume(
            short("the name of the queue", queue)?,
            tag,
            BasicConsumeOptions::default(),
            FieldTable::default(),
        );
        let consumer = self.link.bounded(&what, consume).await?;
        let ack_batch = usize::from(self.prefetch / 4).max(1);
        let opened = Opened { channel, consumer, counting, ack_batch };
        Ok(Generation::new(number, Arc::clone(&self.intake), Arc::clone(&self.copies), opened))
    }
}

/// A tag that an operator recognises the consumer by.
fn tag(consumer: &str, number: u64) -> String {
    let end = consumer.char_indices().map(|(at, _)| at).take_while(|at| *at <= 200).last().unwrap_or(0);
    let name = if consumer.len() <= 200 { consumer } else { &consumer[..end] };
    format!("{name}-{}-{number}", std::process::id())
}

struct RabbitMqLane {
    intake: Arc<Intake>,
    number: usize,
    asked: bool,
}

impl Lane for RabbitMqLane {
    fn poll_next(&mut self, cx: &mut Context<'_>, max: usize, out: &mut VecDeque<Delivery>) -> Poll<Result<(), Ended>> {
        let budget = ready!(coop::poll_proceed(cx));
        if !std::mem::replace(&mut self.asked, true) {
            self.intake.wanted.notify_one();
        }
        let polled = self.intake.buffer.poll(self.number, cx, max, out);
        if polled.is_ready() {
            budget.made_progress();
        }
        polled
    }
}

impl Drop for RabbitMqLane {
    fn drop(&mut self) {
        self.intake.leave(self.number);
    }
}

struct Control(Arc<Intake>);

#[async_trait]
impl SubscriptionControl for Control {
    fn stop_receiving(&self) {
        self.0.stop_receiving();
    }

    async fn flush(&self) -> Result<(), Error> {
        let Self(intake) = self;
        timeout(FLUSH_LIMIT, intake.flushed()).await.map_err(|_| {
            let (pending, queue) = (intake.pending(), &intake.queue);
            error::connection(format!(
                "{pending} settlements of `{queue}` did not reach the broker within {FLUSH_LIMIT:?}"
            ))
        })
    }
}
