use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Engine;
use crate::delivery::Delivery;
use crate::driver::{Ended, Lane};
use crate::error::{Error, ErrorKind};
use crate::guard::guard;

/// How many deliveries a lone worker takes at once. With more than one, each takes one: what a worker holds, no other can run.
const BATCH: usize = 64;

/// Between two failures of a worker that is not the user's doing: this long at first, doubled each time, and at most so long.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A worker: takes deliveries from its lane and runs them one after the other, until the lane ends.
///
/// The worker is the permit: `concurrency` of them are the most that run at once.
pub(crate) async fn work<C: Send + Sync + 'static>(engine: Arc<Engine<C>>, mut lane: Box<dyn Lane>, workers: usize) {
    let max = if workers == 1 { BATCH } else { 1 };
    let mut taken = VecDeque::with_capacity(max);
    // User code is behind a wall of its own. What still panics is our own fault, or the driver's: the message in hand is
    // given back by its settler's drop, and the worker goes on.
    let mut pause = SHORTEST_PAUSE;
    loop {
        let started = Instant::now();
        match guard(drain(&engine, &mut *lane, max, &mut taken)).await {
            Ok(Ended::Stopped) if engine.is_stopping() => return,
            Ok(Ended::Stopped) => return engine.events.ended(closed()),
            Ok(Ended::Fatal(error)) => return engine.events.ended(error),
            Err(panic) => engine.events.worker_failed(&panic),
        }
        // What always fails must not fail without a pause.
        pause = if started.elapsed() > LONGEST_PAUSE { SHORTEST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        sleep(pause).await;
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the driver was closed while the application ran")
}

async fn drain<C: Send + Sync + 'static>(
    engine: &Engine<C>,
    lane: &mut dyn Lane,
    max: usize,
    taken: &mut VecDeque<Delivery>,
) -> Ended {
    loop {
        while let Some(delivery) = taken.pop_front() {
            if engine.is_stopping() {
                // Given back from the last to the first, so that the queue's order is as it was.
                taken.push_front(delivery);
                while taken.pop_back().is_some() {}
                break;
            }
            engine.deliver(delivery).await;
            tokio::task::coop::consume_budget().await;
        }
        if let Err(ended) = poll_fn(|cx| lane.poll_next(cx, max, taken)).await {
            return ended;
        }
        engine.events.received(taken.len());
    }
}
