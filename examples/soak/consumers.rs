use std::sync::Arc;

use messaging::prelude::*;

use crate::ledger::Ledger;

/// A numbered message of one run.
#[derive(Deserialize, Serialize)]
pub(crate) struct Number {
    pub(crate) run: String,
    pub(crate) number: u64,
}

pub(crate) struct Run {
    pub(crate) ledger: Arc<Ledger>,
}

#[consumer("soak", concurrency = 16, dead_letter = "soak.dead-letter")]
pub(crate) struct Numbers {
    run: Arc<Run>,
}

#[handlers]
impl Numbers {
    #[on_message("number")]
    #[retry(attempts = 3, delay = 100ms)]
    async fn on_number(&self, message: Unvalidated<Number>, attempt: Attempt) -> Result<(), Failure> {
        let ledger = &self.run.ledger;
        if message.run != ledger.run() {
            return Ok(()); // left behind by another run
        }
        match message.number.wrapping_add(ledger.seed()) % 100 {
            0 => Err(format!("{} fails always", message.number).into()),
            1..=5 if attempt == Attempt::FIRST => Err(format!("{} fails once", message.number).into()),
            // In the ledger first, then acked: a crash between the two makes a duplicate and no gap.
            _ => Ok(ledger.handled(message.number)?),
        }
    }
}

#[consumer("soak.dead-letter", concurrency = 4, dead_letter = false)]
pub(crate) struct DeadLetters {
    run: Arc<Run>,
}

#[handlers]
impl DeadLetters {
    #[on_message("number")]
    #[retry(attempts = 10, delay = 100ms, max_delay = 1s)]
    async fn on_dead_letter(&self, message: Unvalidated<Number>) -> Result<(), Failure> {
        if message.run == self.run.ledger.run() {
            self.run.ledger.dead_lettered(message.number)?;
        }
        Ok(())
    }
}
