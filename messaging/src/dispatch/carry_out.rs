//! The only room that publishes: what ends a message that will not be retried.

use std::sync::Arc;
use std::time::Duration;

use super::Engine;
use super::dead_letter::DeadLetterCopy;
use super::verdicts::Terminal;
use crate::delivery::Settler;
use crate::error::{Error, ErrorKind};
use crate::message::{InboundMessage, OutboundMessage};
use crate::settlement::Settlement;

/// What came of a dead-letter copy.
enum Copy {
    Confirmed,
    /// The message was taken from us; there was no copy.
    NotOurs,
    /// Not confirmed, or not tried yet: how long to wait.
    Failed(Duration),
}

impl<C: Send + Sync + 'static> Engine<C> {
    /// Ends a message: discards it, or makes sure of its dead-letter copy first.
    ///
    /// `None` where it is not ours any more: nothing is published, and the settler's drop gives it back. A copy that
    /// cannot be confirmed releases the message; when it comes back, only the copy is tried again.
    pub(super) async fn end(
        &self,
        message: &Arc<InboundMessage>,
        terminal: Terminal,
        settler: &mut dyn Settler,
    ) -> Option<Settlement> {
        let Some(dead_letter) = self.dead_letter.as_ref().filter(|_| !terminal.discard) else {
            return Some(Settlement::Discard(terminal.reason));
        };
        loop {
            let delay = match self.try_copy(message, terminal, dead_letter, settler).await {
                Copy::Confirmed => return Some(Settlement::DeadLetter(terminal.reason)),
                Copy::NotOurs => return None,
                Copy::Failed(delay) => delay,
            };
            if self.verdicts.remember(message, settler, terminal) {
                return Some(Settlement::Release { delay });
            }
            // Too many wait for the dead-letter queue already. Given back, this one would run again: so it is held, and
            // the consumer takes on nothing more.
            tokio::select! {
                () = self.token.cancelled() => return Some(Settlement::Release { delay: Duration::ZERO }),
                () = tokio::time::sleep(delay) => (),
            }
        }
    }

    async fn try_copy(
        &self,
        message: &Arc<InboundMessage>,
        terminal: Terminal,
        dead_letter: &Arc<str>,
        settler: &mut dyn Settler,
    ) -> Copy {
        let pass = match self.gate.enter() {
            Ok(pass) => pass,
            Err(delay) => return Copy::Failed(delay),
        };
        if !settler.still_ours() {
            return Copy::NotOurs;
        }
        match self.publish_copy(message, terminal, dead_letter).await {
            Ok(()) => {
                pass.succeeded();
                self.verdicts.forget(message, settler);
                Copy::Confirmed
            }
            Err(error) => {
                let delay = pass.failed();
                self.events.copy_failed(message, dead_letter, terminal.reason, &error);
                Copy::Failed(delay)
            }
        }
    }

    /// Publishes the copy, trimmed step by step where it is too large for the queue.
    async fn publish_copy(
        &self,
        message: &Arc<InboundMessage>,
        terminal: Terminal,
        dead_letter: &Arc<str>,
    ) -> Result<(), Error> {
        let copy = DeadLetterCopy { message, terminal, queue: dead_letter, names: &self.names };
        let mut refused = None;
        for outbound in copy.versions() {
            match self.publish_within(self.copy_timeout, outbound).await {
                Err(error) if error.kind() == ErrorKind::TooLarge => refused = Some(error),
                published => return published,
            }
        }
        let none = || Error::new(ErrorKind::TooLarge, "there is no copy that fits");
        Err(refused.unwrap_or_else(none))
    }

    async fn publish_within(&self, limit: Duration, outbound: OutboundMessage) -> Result<(), Error> {
        match tokio::time::timeout(limit, self.driver.publish(outbound)).await {
            Ok(published) => published.map(drop),
            Err(_) => Err(Error::new(
                ErrorKind::Unconfirmed,
                format!("the dead-letter copy was not confirmed within {limit:?}"),
            )),
        }
    }
}
