use std::fmt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;

use libtest_mimic::{Arguments, Completion, Trial};
use messaging::Capabilities;

use super::broker::TestBroker;
use super::case::Case;
use super::cases;
use super::need::Facts;
use super::report::{Outcome, Report};
use super::runner;
use super::stage::lock;

/// Every promise, to be shown on one or more drivers.
///
/// A driver's `tests/conformance.rs` has it as its `main`, with `harness = false` in Cargo.toml:
///
/// ```no_run
/// # use messaging_testkit::conformance::{Client, TestBroker};
/// # use messaging_memory::MemoryDriver;
/// # struct Memory;
/// # impl TestBroker for Memory { fn client(&self) -> Client { Client::new(MemoryDriver::new()) } }
/// use messaging_testkit::conformance::Suite;
///
/// fn main() -> std::process::ExitCode {
///     Suite::new("memory", Memory).run()
/// }
/// ```
#[must_use]
pub struct Suite {
    drivers: Vec<DriverUnderTest>,
    filter: String,
    /// Held by every case that runs; in full by one that runs alone.
    stage_door: Arc<RwLock<()>>,
}

#[derive(Clone)]
struct DriverUnderTest {
    name: String,
    broker: Arc<dyn TestBroker>,
}

/// A case on a driver.
struct Planned {
    name: String,
    driver: DriverUnderTest,
    case: &'static Case,
    prefix: String,
    /// Why it cannot be shown, or what the driver can do.
    capabilities: Result<Capabilities, String>,
    stage_door: Arc<RwLock<()>>,
}

impl Suite {
    /// All cases, on that broker; the driver's name stands before the names of the cases.
    pub fn new(driver: impl Into<String>, broker: impl TestBroker) -> Self {
        Self { drivers: Vec::new(), filter: String::new(), stage_door: Arc::default() }.and(driver, broker)
    }

    /// And on another one.
    pub fn and(mut self, driver: impl Into<String>, broker: impl TestBroker) -> Self {
        self.drivers.push(DriverUnderTest { name: driver.into(), broker: Arc::new(broker) });
        self
    }

    /// Only the cases whose name has that in it.
    pub fn only(mut self, filter: impl Into<String>) -> Self {
        self.filter = filter.into();
        self
    }

    /// Runs as a test binary does, with its arguments; what cannot be shown is ignored, with the reason.
    pub fn run(self) -> ExitCode {
        let trials = self.plan().into_iter().map(Planned::into_trial).collect();
        libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
    }

    /// Runs within another test.
    #[must_use]
    pub fn check(&self) -> Report {
        let planned = self.plan();
        let outcomes = Mutex::new(vec![None; planned.len()]);
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(planned) = planned.get(index) else { return };
                let outcome = planned.outcome();
                lock(&outcomes)[index] = Some(outcome);
            }
        };
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(work);
            }
        });
        let outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten();
        Report(planned.into_iter().map(|planned| planned.name).zip(outcomes).collect())
    }

    fn plan(&self) -> Vec<Planned> {
        let run = format!("conf-{:08x}", fastrand::u32(..));
        let mut plans = Vec::new();
        for (driver, under_test) in self.drivers.iter().enumerate() {
            let broker = &under_test.broker;
            let known = match broker.missing() {
                Some(reason) => Err(reason),
                None => Ok(facts(under_test)),
            };
            for (index, case) in cases::all().enumerate() {
                let name = format!("{}::{}", under_test.name, case.name());
                if !name.contains(&self.filter) {
                    continue;
                }
                let unmet = |facts: Facts| match case.needs.iter().find_map(|need| need.unmet(&facts)) {
                    None => Ok(facts.capabilities),
                    Some(reason) => Err(reason.to_owned()),
                };
                plans.push(Planned {
                    name,
                    driver: under_test.clone(),
                    case,
                    prefix: format!("{run}-{driver}-{index}"),
                    capabilities: known.clone().and_then(unmet),
                    stage_door: Arc::clone(&self.stage_door),
                });
            }
        }
        plans
    }
}

/// What has to be known before any case can be chosen.
fn facts(DriverUnderTest { name, broker }: &DriverUnderTest) -> Facts {
    let asked = Arc::clone(broker);
    let facts = runner::apart(broker.timing().limit, move || Facts::of(&*asked));
    facts.unwrap_or_else(|why| panic!("the driver `{name}` cannot be asked what it can do: {why}"))
}

impl Planned {
    fn outcome(&self) -> Outcome {
        let capabilities = match &self.capabilities {
            Ok(capabilities) => *capabilities,
            Err(reason) => return Outcome::Ignored(reason.clone()),
        };
        let run = || runner::run(self.case, &self.driver.broker, capabilities, self.prefix.clone());
        let result = if self.case.runs_alone() {
            let _alone = self.stage_door.write().unwrap_or_else(PoisonError::into_inner);
            run()
        } else {
            let _among_others = self.stage_door.read().unwrap_or_else(PoisonError::into_inner);
            run()
        };
        result.map_or_else(Outcome::Failed, |()| Outcome::Passed)
    }

    fn into_trial(self) -> Trial {
        Trial::ignorable_test(self.name.clone(), move || match self.outcome() {
            Outcome::Passed => Ok(Completion::Completed),
            Outcome::Failed(what) => Err(what.into()),
            Outcome::Ignored(reason) => Ok(Completion::ignored_with(reason)),
        })
    }
}

impl fmt::Debug for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let drivers: Vec<_> = self.drivers.iter().map(|driver| &driver.name).collect();
        f.debug_struct("Suite").field("drivers", &drivers).field("filter", &self.filter).finish_non_exhaustive()
    }
}
