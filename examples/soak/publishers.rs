use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use messaging::MessageBroker;
use tokio::task::JoinSet;

use crate::consumers::Number;
use crate::ledger::Ledger;

/// How many tasks publish at the same time.
const PUBLISHERS: usize = 8;

/// The longest wait before a failed publish is tried again.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

pub(crate) struct Publishing(JoinSet<()>);

impl Publishing {
    pub(crate) fn stop(mut self) {
        self.0.abort_all();
    }
}

/// Publishes every number that is not confirmed yet.
pub(crate) fn start(broker: &MessageBroker, ledger: &Arc<Ledger>, messages: u64) -> Publishing {
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..PUBLISHERS {
        let (broker, ledger, next) = (broker.clone(), Arc::clone(ledger), Arc::clone(&next));
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= messages {
                    return;
                }
                if !ledger.is_confirmed(number) {
                    publish(&broker, &ledger, number).await;
                }
            }
        });
    }
    Publishing(tasks)
}

/// Publishes one number until it is confirmed, under the same id each time.
async fn publish(broker: &MessageBroker, ledger: &Ledger, number: u64) {
    let payload = Number { run: ledger.run().to_owned(), number };
    let id = format!("{}-{number}", ledger.run());
    let mut wait = Duration::from_millis(50);
    loop {
        let published = broker.publish("soak", &payload).message_type("number").id(id.as_str()).key(&id).await;
        match published {
            Ok(_) => match ledger.confirmed(number) {
                Ok(()) => return,
                Err(error) => eprintln!("cannot write to the ledger: {error}"),
            },
            Err(error) => {
                ledger.publish_failed();
                eprintln!("{number} not confirmed: {}", error.chain());
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}
