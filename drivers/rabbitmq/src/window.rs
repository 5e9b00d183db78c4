use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use lapin::message::BasicReturnMessage;
use lapin::options::BasicPublishOptions;
use lapin::types::ShortString;
use lapin::{Channel, Confirmation, PublisherConfirm};
use messaging::{Error, ErrorKind};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::convert::Encoded;
use crate::error;

/// The most publishes that are on their way on one channel.
pub(crate) const WINDOW: usize = 32;

/// A publish that waits for its turn.
pub(crate) struct Job {
    pub(crate) exchange: ShortString,
    pub(crate) routing_key: ShortString,
    pub(crate) id: ShortString,
    pub(crate) encoded: Encoded,
    /// Whether it may be on its way; read by a caller that has waited long enough.
    pub(crate) taken: Arc<AtomicBool>,
    pub(crate) answer: oneshot::Sender<Result<(), Error>>,
}

impl Job {
    /// Takes it on its way, unless its caller has gone.
    pub(crate) fn take(self) -> Option<Self> {
        self.taken.store(true, Ordering::SeqCst);
        (!self.answer.is_closed()).then_some(self)
    }

    fn name(&self) -> &str {
        self.routing_key.as_str()
    }
}

/// What became of one publish, before the returned messages are matched.
enum Outcome {
    Acked { with_return: bool },
    Nacked,
    Failed(lapin::Error),
    Open,
}

/// Publishes all jobs on the channel, waits for all their confirmations, and answers them; `false` when the channel must
/// not be used again.
///
/// The client hands a returned message to whichever confirmation of the channel completes next, so returns are matched by
/// message id once the window is closed. That is exact: a return precedes its own confirmation, and a confirmation that
/// came without any return had none before it that was not handed out. No two jobs may have the same id.
pub(crate) async fn send(channel: &Channel, jobs: Vec<Job>, deadline: Instant) -> bool {
    let mut sent = Vec::with_capacity(jobs.len());
    for job in &jobs {
        sent.push(timeout_at(deadline, publish(channel, job)).await);
    }
    let mut returned = HashMap::new();
    let mut outcomes = Vec::with_capacity(jobs.len());
    for confirm in sent {
        outcomes.push(match confirm {
            Ok(Ok(confirm)) => settle(confirm, deadline, &mut returned).await,
            Ok(Err(error)) => Outcome::Failed(error),
            Err(_) => Outcome::Open,
        });
    }
    let whole = outcomes.iter().all(|outcome| matches!(outcome, Outcome::Acked { .. } | Outcome::Nacked));
    for (job, outcome) in jobs.into_iter().zip(outcomes) {
        let verdict = judge(&job, outcome, returned.get(&job.id), whole);
        let _ = job.answer.send(verdict);
    }
    whole
}

async fn publish(channel: &Channel, job: &Job) -> lapin::Result<PublisherConfirm> {
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    let properties = job.encoded.properties.clone();
    channel.basic_publish(job.exchange.clone(), job.routing_key.clone(), options, &job.encoded.body, properties).await
}

async fn settle(
    confirm: PublisherConfirm,
    deadline: Instant,
    returned: &mut HashMap<ShortString, (u16, String)>,
) -> Outcome {
    let mut confirm = std::pin::pin!(confirm);
    let confirmed = match timeout_at(deadline, confirm.as_mut()).await {
        Ok(confirmed) => Some(confirmed),
        // Past the deadline: what has come is taken, the rest stays open.
        Err(_) => confirm.now_or_never(),
    };
    let mut note = |message: BasicReturnMessage| {
        if let Some(id) = message.delivery.properties.message_id() {
            returned.insert(id.clone(), (message.reply_code, message.reply_text.to_string()));
        }
    };
    match confirmed {
        Some(Ok(Confirmation::Ack(message))) => {
            let with_return = message.is_some();
            message.into_iter().for_each(&mut note);
            Outcome::Acked { with_return }
        }
        Some(Ok(Confirmation::Nack(message))) => {
            message.into_iter().for_each(&mut note);
            Outcome::Nacked
        }
        Some(Ok(Confirmation::NotRequested)) | None => Outcome::Open,
        Some(Err(error)) => Outcome::Failed(error),
    }
}

fn judge(job: &Job, outcome: Outcome, returned: Option<&(u16, String)>, whole: bool) -> Result<(), Error> {
    let name = job.name();
    if let Some((code, text)) = returned {
        let what = format!("publishing to `{name}`: {text} ({code}); no such queue, declare it or consume it first");
        return Err(Error::new(ErrorKind::Unroutable, what));
    }
    let unconfirmed = || Error::new(ErrorKind::Unconfirmed, format!("publishing to `{name}`"));
    match outcome {
        // In a window that was broken off, another's return may hide this one's.
        Outcome::Acked { with_return } if whole || !with_return => Ok(()),
        Outcome::Acked { .. } | Outcome::Open => Err(unconfirmed()),
        Outcome::Nacked if job.exchange.as_str().is_empty() => {
            let what = format!("publishing to `{name}`: the queue refuses it, because it is full or not available");
            Err(Error::new(ErrorKind::Rejected, what))
        }
        Outcome::Nacked => Err(unconfirmed()),
        Outcome::Failed(error) => Err(failed(job, error)),
    }
}

fn failed(job: &Job, error: lapin::Error) -> Error {
    let (name, text) = (job.name(), error::text(&error));
    let kind = match error::code(&error) {
        Some(406) if text.contains(&format!("message size {}", job.encoded.body.len())) => ErrorKind::TooLarge,
        Some(404) if !job.exchange.as_str().is_empty() && text.contains(job.exchange.as_str()) => ErrorKind::Unroutable,
        _ => ErrorKind::Unconfirmed,
    };
    Error::new(kind, format!("publishing to `{name}`")).source(error)
}
