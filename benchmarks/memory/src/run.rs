//! One run of one case, measured.

use std::pin::Pin;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::{allocations, work};

/// How publishing and consuming lie in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All is published while the handlers wait at the gate, then drained: two clean figures.
    Prefill,
    /// Both at once: one figure, from the first publish to the last message handled.
    Pipe,
}

/// The runtime that a case runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    CurrentThread,
    /// With two workers.
    MultiThread,
}

/// When a process ends that shall do no more than is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Published,
    Drained,
}

#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub messages: usize,
    pub concurrency: usize,
    pub mode: Mode,
    /// Where the process ends, if it does: for callgrind, which counts what a whole process does.
    pub exit: Option<Exit>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// As [`Clock`] takes it.
    pub publish: Duration,
    pub drain: Duration,
    /// For each message, where they were counted.
    pub allocations_publish: f64,
    pub allocations_drain: f64,
}

impl Sample {
    pub fn total(&self) -> Duration {
        self.publish + self.drain
    }
}

/// What time is taken with.
///
/// One thread that never waits takes as long as it computes; and while others compute on the machine, its computing time
/// says more than the clock on the wall. Where two threads share the work, only that clock can tell.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    Computing,
    Wall(Instant),
}

impl Clock {
    fn new() -> Self {
        let single = tokio::runtime::Handle::current().runtime_flavor() == tokio::runtime::RuntimeFlavor::CurrentThread;
        if single { Self::Computing } else { Self::Wall(Instant::now()) }
    }

    fn now(self) -> Duration {
        match self {
            Self::Computing => {
                let spent = clock_gettime(ClockId::ProcessCPUTime);
                Duration::new(spent.tv_sec as u64, spent.tv_nsec as u32)
            }
            Self::Wall(since) => since.elapsed(),
        }
    }
}

/// A case with its types gone.
#[derive(Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    pub modes: &'static [Mode],
    pub run: fn(Run) -> Pin<Box<dyn Future<Output = Sample> + Send>>,
}

impl Run {
    /// With the consumer attached already; `publish` sends one message a call.
    pub async fn measure<R: Future<Output = ()>>(self, mut publish: impl FnMut() -> R) -> Sample {
        let publish_all = async || {
            for _ in 0..self.messages {
                publish().await;
            }
        };
        self.measure_then(publish_all, async || {}).await
    }

    /// `publish_all` sends every message, `start` starts a consumer that could not be attached before.
    pub async fn measure_then(self, publish_all: impl AsyncFnOnce(), start: impl AsyncFnOnce()) -> Sample {
        let clock = Clock::new();
        let (began, allocated) = (clock.now(), allocations::counted());
        publish_all().await;
        let (published, allocated_by_publish) = (clock.now(), allocations::counted());
        self.exit_at(Exit::Published);
        work::open_gate();
        start().await;
        work::drained().await;
        let (drained, allocated_by_all) = (clock.now(), allocations::counted());
        self.exit_at(Exit::Drained);
        let each = |before: u64, after: u64| (after - before) as f64 / self.messages as f64;
        Sample {
            publish: published - began,
            drain: drained - published,
            allocations_publish: each(allocated, allocated_by_publish),
            allocations_drain: each(allocated_by_publish, allocated_by_all),
        }
    }

    fn exit_at(&self, exit: Exit) {
        if self.exit == Some(exit) {
            std::process::exit(0);
        }
    }
}

impl Runtime {
    pub fn build(self) -> tokio::runtime::Runtime {
        let mut builder = match self {
            Self::CurrentThread => tokio::runtime::Builder::new_current_thread(),
            Self::MultiThread => tokio::runtime::Builder::new_multi_thread(),
        };
        builder.worker_threads(2).enable_all().build().unwrap()
    }

    /// Runs a case on a runtime of its own.
    pub fn run(self, case: &Case, run: Run) -> Sample {
        work::expect(run.messages, run.mode == Mode::Pipe);
        let runtime = self.build();
        let running = (case.run)(run);
        // Spawned, so that no case runs on the thread of `block_on` where there are workers.
        let sample = runtime.block_on(async { tokio::spawn(running).await.unwrap() });
        runtime.shutdown_timeout(Duration::from_secs(2));
        sample
    }
}

/// Runs every case once a round; every other round goes backwards, so that what disturbs the machine hits no case alone.
///
/// The samples of each case, in the order of the rounds.
pub fn interleaved(cases: &[Case], rounds: usize, run: impl Fn(&Case) -> Sample) -> Vec<Vec<Sample>> {
    let mut samples = vec![Vec::new(); cases.len()];
    for round in 0..rounds {
        let mut both: Vec<_> = cases.iter().zip(&mut samples).collect();
        if round % 2 == 1 {
            both.reverse();
        }
        both.into_iter().for_each(|(case, samples)| samples.push(run(case)));
    }
    samples
}
