//! Runs one case on a thread of its own, so that no driver can hold up the suite.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use messaging::Capabilities;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::breach::{Breach, Verdict};
use super::broker::{TestBroker, Timing};
use super::case::Case;
use super::stage::{Stage, lock};

/// How long a case may take on a paused clock, where waits take no time: one that hangs there waits for nothing.
const LONGEST_PAUSED: Duration = Duration::from_secs(30 * 86_400);

/// How long a case may take, after it has ended, to close what it opened.
const CLEARING: Duration = Duration::from_secs(10);

/// Does something on a thread of its own; why it came to no end, in words.
pub(crate) fn apart<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let (done, ended) = channel();
    let spawned = thread::Builder::new().spawn(move || {
        // Nobody listens any more where it took too long.
        let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
    });
    spawned.map_err(|error| format!("no thread to run on: {error}"))?;
    match ended.recv_timeout(limit) {
        Ok(result) => result.map_err(|payload| format!("it panicked: {}", text_of(&*payload))),
        Err(_) => Err(format!("it did not end within {limit:?}")),
    }
}

/// Runs a case; what is wrong, in words.
pub(crate) fn run(
    case: &Case,
    broker: &Arc<dyn TestBroker>,
    capabilities: Capabilities,
    prefix: String,
) -> Result<(), String> {
    let timing = broker.timing();
    let step = Arc::new(Mutex::new("it begins".to_owned()));
    let (done, ended) = channel();
    let (play, broker, steps) = (case.run, Arc::clone(broker), Arc::clone(&step));
    let spawned = thread::Builder::new().name(case.name()).spawn(move || {
        // Nobody listens any more where it took too long.
        let tell = |verdict| _ = done.send(verdict);
        let stage = || Stage::new(broker, capabilities, prefix, steps);
        let played = catch_unwind(AssertUnwindSafe(|| play_out(play, stage(), timing, &tell)));
        if let Err(payload) = played {
            tell(Err(format!("it panicked: {}", text_of(&*payload))));
        }
    });
    if let Err(error) = spawned {
        return Err(format!("no thread to run on: {error}"));
    }
    let verdict = match ended.recv_timeout(timing.limit) {
        Ok(verdict) => {
            // The next case finds what this one opened closed, unless the driver does not close: not this case's breach.
            let _ = ended.recv_timeout(CLEARING);
            verdict
        }
        Err(RecvTimeoutError::Timeout) => {
            Err(format!("it did not end within {:?} and is left behind; it waited until {}", timing.limit, lock(&step)))
        }
        Err(RecvTimeoutError::Disconnected) => Err("its thread ended without a word".into()),
    };
    verdict.map_err(|what| format!("this breaks {}\n  {what}", case.promise))
}

/// Plays, tells the verdict, and clears away.
fn play_out(play: fn(Stage) -> Play, stage: Stage, timing: Timing, tell: &dyn Fn(Result<(), String>)) {
    let runtime = match runtime(timing) {
        Ok(runtime) => runtime,
        Err(error) => return tell(Err(format!("no runtime to run on: {error}"))),
    };
    runtime.block_on(async {
        let limit = if timing.paused { LONGEST_PAUSED } else { timing.limit };
        let verdict = match timeout(limit, play(stage.clone())).await {
            Ok(verdict) => verdict,
            Err(_) => Err(Breach::new("it waits for something that never comes")),
        };
        tell(verdict.map_err(|breach| breach.to_string()));
        stage.clear().await;
    });
    // A driver's thread that hangs is left behind.
    runtime.shutdown_background();
}

type Play = std::pin::Pin<Box<dyn Future<Output = Verdict>>>;

fn runtime(timing: Timing) -> std::io::Result<Runtime> {
    if timing.paused {
        return Builder::new_current_thread().enable_all().start_paused(true).build();
    }
    Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("unknown panic")
}
