//! What was decided about messages whose dead-letter copy failed.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::delivery::Settler;
use crate::message::InboundMessage;
use crate::settlement::Reason;

/// How many are remembered; with more, a consumer waits for its dead-letter queue instead of taking on.
const MOST: usize = 1_024;

/// How a message ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal {
    pub(super) reason: Reason,
    /// How often it was run.
    pub(super) attempts: u32,
    /// `#[on_error]` wants it dropped.
    pub(super) discard: bool,
}

/// Remembers terminal verdicts, so that a message that comes back goes straight to its copy: no handler, no `#[on_error]`.
#[derive(Default)]
pub(super) struct Verdicts {
    /// Whether there are any: nearly always there are none, and then nobody is asked for an identity.
    any: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: HashMap<String, Verdict>,
}

struct Verdict {
    terminal: Terminal,
    error: Option<Arc<str>>,
}

impl Verdicts {
    pub(super) fn recall(&self, message: &InboundMessage, settler: &dyn Settler) -> Option<Terminal> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let state = self.lock();
        let verdict = state.known.get(&identity(message, settler))?;
        if let Some(error) = &verdict.error {
            message.note_failure_with(|| error.to_string());
        }
        Some(verdict.terminal)
    }

    /// Remembers it, unless there are too many already.
    pub(super) fn remember(&self, message: &InboundMessage, settler: &dyn Settler, terminal: Terminal) -> bool {
        let identity = identity(message, settler);
        let verdict = Verdict { terminal, error: message.failure().map(Arc::from) };
        let mut state = self.lock();
        if state.known.len() >= MOST && !state.known.contains_key(&identity) {
            return false;
        }
        state.known.insert(identity, verdict);
        self.any.store(true, Ordering::Relaxed);
        true
    }

    pub(super) fn forget(&self, message: &InboundMessage, settler: &dyn Settler) {
        if !self.any.load(Ordering::Relaxed) {
            return;
        }
        let identity = identity(message, settler);
        let mut state = self.lock();
        state.known.remove(&identity);
        self.any.store(!state.known.is_empty(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn identity(message: &InboundMessage, settler: &dyn Settler) -> String {
    settler.identity().unwrap_or_else(|| {
        // An id alone may be another message's.
        let mut content = DefaultHasher::new();
        (&message.body, message.message_type()).hash(&mut content);
        format!("{} {:x}", message.id, content.finish())
    })
}
