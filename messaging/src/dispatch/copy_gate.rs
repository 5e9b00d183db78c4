//! How often a dead-letter queue that refuses copies is tried.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::driver::DelayHeap;

/// The longest wait between two tries.
const LONGEST: Duration = Duration::from_secs(30);

/// Open as long as copies succeed; after a failure it lets one copy a delay through, and the delay grows.
///
/// So a dead-letter queue that hangs holds up one message and not the whole consumer.
pub(super) struct CopyGate {
    first_delay: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    failures: u32,
    probing: bool,
    next_probe: Option<Instant>,
}

/// The right to try one copy.
pub(super) struct Pass<'g> {
    gate: &'g CopyGate,
    probe: bool,
}

impl CopyGate {
    pub(super) fn new(first_delay: Duration) -> Self {
        Self { first_delay, state: Mutex::default() }
    }

    /// Lets a copy through, or says how long to wait.
    pub(super) fn enter(&self) -> Result<Pass<'_>, Duration> {
        let mut state = self.lock();
        let Some(next_probe) = state.next_probe else { return Ok(Pass { gate: self, probe: false }) };
        let left = next_probe.saturating_duration_since(Instant::now());
        if state.probing {
            return Err(left.max(self.first_delay));
        }
        if !left.is_zero() {
            return Err(left);
        }
        state.probing = true;
        Ok(Pass { gate: self, probe: true })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pass<'_> {
    /// The copy is confirmed: the gate is open.
    pub(super) fn succeeded(self) {
        let mut state = self.gate.lock();
        state.failures = 0;
        state.next_probe = None;
    }

    /// The copy failed: how long until the next try.
    pub(super) fn failed(self) -> Duration {
        let mut state = self.gate.lock();
        let now = Instant::now();
        if let Some(next_probe) = state.next_probe.filter(|_| !self.probe) {
            // Others that were under way at the same time have failed before: it is one failure, not many.
            return next_probe.saturating_duration_since(now);
        }
        let first = self.gate.first_delay;
        let delay = first.saturating_mul(1 << state.failures.min(16)).min(LONGEST.max(first));
        state.failures = state.failures.saturating_add(1);
        state.next_probe = Some(DelayHeap::<()>::due(now, delay));
        delay
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.probe {
            self.gate.lock().probing = false;
        }
    }
}
