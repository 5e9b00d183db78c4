use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use messaging::{Event, InboundMessage, Settlement};
use tokio::sync::Notify;
use tokio::time::timeout;

/// How long nothing may happen before what is still open counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counts what becomes of the messages, and prints it.
#[derive(Default)]
pub(crate) struct Report {
    counts: Mutex<Counts>,
    progress: Notify,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    sent: u64,
    handled: u64,
    dropped: u64,
    dead_lettered: u64,
    retries: u64,
    longest_delay: Duration,
}

impl Counts {
    fn open(&self) -> u64 {
        self.sent.saturating_sub(self.handled + self.dropped + self.dead_lettered)
    }
}

impl Report {
    /// Counted before it is sent: it may be handled before the confirmation is here.
    pub(crate) fn sending(&self, delay: Duration) {
        let mut counts = self.counts();
        counts.sent += 1;
        counts.longest_delay = counts.longest_delay.max(delay);
    }

    pub(crate) fn refused(&self, line: usize, error: &messaging::Error) {
        self.counts().sent -= 1;
        println!("line {line} refused: {}", error.chain());
    }

    pub(crate) fn hear(&self, event: &Event<'_>) {
        if let Event::Settled { message, settlement } = event {
            self.settled(message, settlement);
        } else {
            println!("{event:?}");
        }
        self.progress.notify_one();
    }

    fn settled(&self, message: &InboundMessage, settlement: &Settlement) {
        let what = format!("{} {}", message.message_type().unwrap_or("(no type)"), message.id);
        let error = message.failure().unwrap_or("no error");
        let mut counts = self.counts();
        match settlement {
            Settlement::Ack => {
                counts.handled += 1;
                println!("handled       {what} (attempt {})", message.attempt());
            }
            Settlement::Retry { step, attempt } => {
                counts.retries += 1;
                println!("retried       {what} in {:?} as attempt {attempt}: {error}", step.delay());
            }
            Settlement::Discard(reason) => {
                counts.dropped += 1;
                println!("dropped       {what}, {reason}: {error}");
            }
            Settlement::DeadLetter(reason) => {
                counts.dead_lettered += 1;
                println!("dead-lettered {what}, {reason}: {error}");
            }
            Settlement::Release { delay } => println!("released      {what} for {delay:?}: {error}"),
        }
    }

    /// Waits until everything that was sent has ended, or nothing has happened for too long.
    pub(crate) async fn all_settled(&self) {
        while self.counts().open() > 0 {
            let patience = PATIENCE + self.counts().longest_delay;
            if timeout(patience, self.progress.notified()).await.is_err() {
                return;
            }
        }
    }

    pub(crate) fn lost(&self) -> u64 {
        self.counts().open()
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = *self.counts();
        let Counts { sent, handled, dropped, dead_lettered, retries, .. } = counts;
        let lost = counts.open();
        write!(
            f,
            "sent {sent}, handled {handled}, dropped {dropped}, dead-lettered {dead_lettered}, lost {lost}, retries {retries}"
        )
    }
}
