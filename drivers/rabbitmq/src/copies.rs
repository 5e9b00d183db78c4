use std::sync::Arc;
use std::time::Duration;

use messaging::{Attempt, Error, ErrorKind, InboundMessage, OutboundMessage, Settlement, Step};

use crate::convert::copy_mark;
use crate::error;
use crate::intake::Intake;
use crate::levels::Levels;
use crate::publisher::Publisher;
use crate::settle::{Note, Side};
use crate::topology::{Topology, retry_name};

/// Publishes the copies by which a message goes back to its queue.
#[derive(Debug)]
pub(crate) struct Copies {
    pub(crate) publisher: Publisher,
    pub(crate) topology: Arc<Topology>,
    pub(crate) levels: Arc<Levels>,
}

impl Copies {
    /// Publishes the copy that the settlement needs, and tells the channel's task.
    pub(crate) fn make(
        self: &Arc<Self>,
        intake: &Arc<Intake>,
        side: &Arc<Side>,
        tag: u64,
        message: Arc<InboundMessage>,
        settlement: Settlement,
    ) {
        let (copies, intake, side) = (Arc::clone(self), Arc::clone(intake), Arc::clone(side));
        tokio::spawn(async move {
            let result = copies.publish(&intake, &message, settlement).await;
            if side.notes.send(Note::Copied { tag, settlement, result }).is_err() {
                intake.tell(&message, &settlement, Err(error::lost()));
            }
        });
    }

    async fn publish(&self, intake: &Intake, message: &InboundMessage, settlement: Settlement) -> Result<(), Error> {
        let (delay, attempt) = match settlement {
            Settlement::Retry { step: Step::Native(delay), attempt } => (delay, attempt),
            Settlement::Retry { step: Step::InProcess(_), attempt } => (Duration::ZERO, attempt),
            Settlement::Release { .. } | Settlement::Ack | Settlement::Discard(_) | Settlement::DeadLetter(_) => {
                (Duration::ZERO, message.attempt())
            }
        };
        if !delay.is_zero() && !intake.native_delays.contains(&delay) {
            // A delay that a handler asked for: no queue of its own.
            let copy = copy(intake, message, &intake.queue, attempt);
            return self.levels.publish(&self.publisher, &intake.queue, &copy, delay).await;
        }
        let queue = if delay.is_zero() { intake.queue.to_string() } else { retry_name(&intake.queue, delay) };
        let copy = copy(intake, message, &queue, attempt);
        match self.publisher.publish("", &queue, &copy).await {
            Err(error) if error.kind() == ErrorKind::Unroutable => {
                if delay.is_zero() {
                    self.topology.consumed(&queue).await?;
                } else {
                    self.topology.retry(&intake.queue, delay).await?;
                }
                self.publisher.publish("", &queue, &copy).await
            }
            published => published,
        }
    }
}

fn copy(intake: &Intake, message: &InboundMessage, queue: &str, attempt: Attempt) -> messaging::Envelope {
    let mark = copy_mark(&intake.names);
    let copy = OutboundMessage::copy_of(message, queue)
        .header(intake.names.attempt(), attempt.to_string())
        .header(&mark, Arc::clone(&intake.queue));
    copy.into_parts().1
}
