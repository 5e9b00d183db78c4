use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, PoisonError, RwLock};

use messaging::Capabilities;

use crate::faults::Faults;
use crate::gate::Gate;
use crate::idle::Idle;
use crate::queue::Queue;

/// How much of a queue is recorded unless it is said otherwise.
const RECORDED: usize = 10_000;

/// The broker: its queues, by name.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) common: Arc<Common>,
    queues: RwLock<HashMap<Arc<str>, Arc<Queue>>>,
}

/// What all queues share.
#[derive(Debug)]
pub(crate) struct Common {
    pub(crate) capabilities: Capabilities,
    pub(crate) idle: Idle,
    pub(crate) faults: Faults,
    pub(crate) gate: Gate,
    pub(crate) recording: AtomicUsize,
}

impl Store {
    pub(crate) fn new(capabilities: Capabilities) -> Self {
        let common = Common {
            capabilities,
            idle: Idle::default(),
            faults: Faults::default(),
            gate: Gate::default(),
            recording: AtomicUsize::new(RECORDED),
        };
        Self { common: Arc::new(common), queues: RwLock::default() }
    }

    /// The queue of that name; it exists from its first use on.
    pub(crate) fn queue(&self, name: &str) -> Arc<Queue> {
        if let Some(queue) = self.find(name) {
            return queue;
        }
        let name: Arc<str> = Arc::from(name);
        let mut queues = self.queues.write().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Queue::new(Arc::clone(&name), Arc::clone(&self.common)));
        Arc::clone(queues.entry(Arc::clone(&name)).or_insert_with(new))
    }

    /// The queue of that name, where it was used before.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Queue>> {
        self.queues.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Queue>> {
        self.queues.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}
