use std::sync::Arc;

use super::verdicts::Terminal;
use crate::message::{InboundMessage, OutboundMessage};
use crate::wire_names::WireNames;

/// The copy of a message that cannot be handled.
pub(super) struct DeadLetterCopy<'m> {
    pub(super) message: &'m Arc<InboundMessage>,
    pub(super) terminal: Terminal,
    pub(super) queue: &'m Arc<str>,
    pub(super) names: &'m WireNames,
}

impl DeadLetterCopy<'_> {
    /// The copy as it should be, then ever smaller: without the error text, without headers of ours.
    ///
    /// The last is as large as the original, so whatever was accepted once is accepted again; its reason is in the error
    /// event then.
    pub(super) fn versions(&self) -> impl Iterator<Item = OutboundMessage> + '_ {
        [Self::full, Self::without_error, Self::bare].into_iter().map(move |make| make(self))
    }

    fn full(&self) -> OutboundMessage {
        let mut copy = self.without_error();
        if let Some(error) = self.message.failure() {
            copy.headers.insert(self.names.error(), error);
        }
        copy
    }

    fn without_error(&self) -> OutboundMessage {
        let mut copy = self.bare();
        let attempts = self.terminal.attempts.to_string();
        copy.headers.insert(self.names.dead_letter_reason(), self.terminal.reason.as_str());
        copy.headers.insert(self.names.original_queue(), self.message.shared_queue());
        copy.headers.insert(self.names.attempts(), attempts);
        copy
    }

    /// What the message brought along of an earlier life as a dead letter goes.
    fn bare(&self) -> OutboundMessage {
        let names = self.names;
        let mut copy = OutboundMessage::copy_of(self.message, Arc::clone(self.queue));
        for name in
            [names.attempt(), names.dead_letter_reason(), names.error(), names.original_queue(), names.attempts()]
        {
            copy.headers.remove(name);
        }
        copy
    }
}
