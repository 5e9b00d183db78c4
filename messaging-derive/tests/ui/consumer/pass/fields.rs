#![deny(warnings)]

use messaging::prelude::*;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use messaging::Injectable;

trait Repo: Send + Sync {}

#[derive(Injectable)]
struct Clock;

#[consumer("orders")]
#[derive(Clone)]
pub struct Orders {
    clock: Arc<Clock>,
    repo: Arc<dyn Repo>,
    broker: MessageBroker,
    #[inject(default)]
    seen: Arc<AtomicU64>,
    #[cfg(any())]
    absent: NoSuchType,
}

#[handlers]
impl Orders {
    #[on_message]
    async fn on_any(&self) {
        let _ = (&self.clock, &self.repo, &self.broker, &self.seen);
    }
}

fn main() {
    let keys: Vec<_> = Orders::dependencies().iter().map(ToString::to_string).collect();
    assert_eq!(keys[..2], ["Clock", "dyn Repo"]);
    assert_eq!(keys.len(), 3);
}
