use std::collections::BTreeMap;
use std::sync::Arc;

use messaging::{InboundMessage, Settlement};

/// What a channel has delivered and not yet heard of: only outstanding tags, so a slow message makes nothing grow.
#[derive(Default)]
pub(crate) struct Ledger {
    open: BTreeMap<u64, Arc<InboundMessage>>,
    acked: BTreeMap<u64, Acked>,
}

/// A message whose ack is not yet written.
pub(crate) type Acked = (Arc<InboundMessage>, Settlement);

/// Acks to be written, in this order; the first settles every outstanding tag up to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Acks {
    pub(crate) up_to: Option<u64>,
    pub(crate) single: Vec<u64>,
}

impl Ledger {
    pub(crate) fn deliver(&mut self, tag: u64, message: Arc<InboundMessage>) {
        self.open.insert(tag, message);
    }

    pub(crate) fn message(&self, tag: u64) -> Option<&Arc<InboundMessage>> {
        self.open.get(&tag)
    }

    /// Notes that the message is done; its ack is written with others.
    pub(crate) fn ack(&mut self, tag: u64, settlement: Settlement) {
        if let Some(message) = self.open.remove(&tag) {
            self.acked.insert(tag, (message, settlement));
        }
    }

    /// Takes a message out that is given back by its own frame.
    pub(crate) fn give_back(&mut self, tag: u64) -> Option<Arc<InboundMessage>> {
        self.open.remove(&tag)
    }

    pub(crate) fn unwritten(&self) -> usize {
        self.acked.len()
    }

    pub(crate) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.acked.is_empty()
    }

    /// The acks to write: one for all below the first open message, one each above it.
    pub(crate) fn acks(&self) -> Acks {
        let first_open = self.open.keys().next().copied().unwrap_or(u64::MAX);
        let up_to = self.acked.range(..first_open).next_back().map(|(tag, _)| *tag);
        let single = self.acked.range(first_open..).map(|(tag, _)| *tag).collect();
        Acks { up_to, single }
    }

    /// What waited for an ack; to be called when it is written, or cannot be any more.
    pub(crate) fn take_acked(&mut self) -> impl Iterator<Item = Acked> + use<> {
        std::mem::take(&mut self.acked).into_values()
    }

    /// Every message that is open.
    pub(crate) fn take_open(&mut self) -> impl Iterator<Item = Arc<InboundMessage>> + use<> {
        std::mem::take(&mut self.open).into_values()
    }
}

#[cfg(test)]
mod tests {
    use messaging::{Attempt, Envelope};

    use super::*;

    fn ledger(tags: u64) -> Ledger {
        let mut ledger = Ledger::default();
        for tag in 1..=tags {
            ledger.deliver(tag, Arc::new(InboundMessage::new("q", Envelope::new(""), Attempt::FIRST)));
        }
        ledger
    }

    #[test]
    fn one_ack_stands_for_all_below_the_first_open_message() {
        let mut ledger = ledger(6);
        for tag in [1, 2, 4, 6] {
            ledger.ack(tag, Settlement::Ack);
        }
        assert_eq!(ledger.acks(), Acks { up_to: Some(2), single: vec![4, 6] });
        assert_eq!(ledger.take_acked().count(), 4);
        ledger.ack(3, Settlement::Ack);
        assert_eq!(ledger.acks(), Acks { up_to: Some(3), single: vec![] });
    }

    #[test]
    fn a_tag_that_was_given_back_is_never_named() {
        let mut ledger = ledger(3);
        ledger.ack(1, Settlement::Ack);
        assert!(ledger.give_back(2).is_some());
        ledger.ack(2, Settlement::Ack);
        assert_eq!(ledger.acks(), Acks { up_to: Some(1), single: vec![] });
        assert!(ledger.has_open() && !ledger.is_empty());
    }
}
