//! The table of all cases, and the budgets that are held against peers.

use benchmark_memory::allocations;
use benchmark_memory::budget::{line, median};
use benchmark_memory::cases;
use benchmark_memory::run::{Case, Mode, Run, Runtime, Sample, interleaved};

const HELP: &str = "\
throughput [--messages N] [--rounds N] [--only CASE,CASE] [--concurrency 1|10] [--mode prefill|pipe] [--runtime ct|mt]

The budgets are told where their cases are among those that run, on the current-thread runtime, prefilled, one at a time.";

/// At most so many messages are sent in the round that counts allocations.
const COUNTED: usize = 20_000;

struct Options {
    messages: usize,
    rounds: usize,
    only: Option<String>,
    concurrency: Option<usize>,
    mode: Option<Mode>,
    runtime: Option<Runtime>,
}

fn main() {
    let options = options().unwrap_or_else(|error| {
        eprintln!("{error}\n\n{HELP}");
        std::process::exit(2)
    });
    println!(
        "| runtime | mode | at once | case | publish ns | drain ns: median | best | worst | total msg/s | allocations: publish | drain |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let mut budgets = Vec::new();
    for runtime in [Runtime::CurrentThread, Runtime::MultiThread] {
        for mode in [Mode::Prefill, Mode::Pipe] {
            for concurrency in [1, 10] {
                // On one thread nothing overlaps: it would be the prefilled figure again.
                let pointless = runtime == Runtime::CurrentThread && mode == Mode::Pipe;
                let asked = options.runtime.is_none_or(|asked| asked == runtime)
                    && options.mode.is_none_or(|asked| asked == mode)
                    && options.concurrency.is_none_or(|asked| asked == concurrency);
                if asked && !pointless {
                    let measured = measure(&options, runtime, mode, concurrency);
                    measured.iter().for_each(|measured| measured.print(&options, runtime, mode, concurrency));
                    if runtime == Runtime::CurrentThread && concurrency == 1 {
                        budgets = budgets_of(&measured);
                    }
                }
            }
        }
    }
    println!();
    budgets.iter().for_each(|line| println!("{line}"));
}

fn options() -> Result<Options, lexopt::Error> {
    use lexopt::{Arg, ValueExt};

    let mut options =
        Options { messages: 200_000, rounds: 5, only: None, concurrency: None, mode: None, runtime: None };
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Long("messages") => options.messages = arguments.value()?.parse()?,
            Arg::Long("rounds") => options.rounds = arguments.value()?.parse()?,
            Arg::Long("only") => options.only = Some(arguments.value()?.string()?),
            Arg::Long("concurrency") => options.concurrency = Some(arguments.value()?.parse()?),
            Arg::Long("mode") => {
                options.mode = Some(arguments.value()?.parse_with(|mode| match mode {
                    "prefill" => Ok(Mode::Prefill),
                    "pipe" => Ok(Mode::Pipe),
                    _ => Err("no such mode"),
                })?);
            }
            Arg::Long("runtime") => {
                options.runtime = Some(arguments.value()?.parse_with(|runtime| match runtime {
                    "ct" => Ok(Runtime::CurrentThread),
                    "mt" => Ok(Runtime::MultiThread),
                    _ => Err("no such runtime"),
                })?);
            }
            other => return Err(other.unexpected()),
        }
    }
    Ok(options)
}

struct Measured {
    case: Case,
    /// One for each round.
    samples: Vec<Sample>,
    counted: Sample,
}

fn measure(options: &Options, runtime: Runtime, mode: Mode, concurrency: usize) -> Vec<Measured> {
    let wanted = |case: &Case| {
        let named = options.only.as_deref().is_none_or(|only| only.split(',').any(|name| name == case.name));
        named && case.modes.contains(&mode)
    };
    let run = |messages| Run { messages, concurrency, mode, exit: None };
    let cases: Vec<Case> = cases::all().into_iter().filter(wanted).collect();
    // The round that warms up counts allocations; its times are not looked at.
    allocations::count(true);
    let counted: Vec<Sample> = cases.iter().map(|case| runtime.run(case, run(options.messages.min(COUNTED)))).collect();
    allocations::count(false);
    let samples = interleaved(&cases, options.rounds, |case| runtime.run(case, run(options.messages)));
    let all = cases.into_iter().zip(samples).zip(counted);
    all.map(|((case, samples), counted)| Measured { case, samples, counted }).collect()
}

impl Measured {
    fn print(&self, options: &Options, runtime: Runtime, mode: Mode, concurrency: usize) {
        let each = |nanoseconds: f64| nanoseconds / options.messages as f64;
        let nanoseconds = |of: fn(&Sample) -> f64| self.samples.iter().map(of).map(each);
        let drain = |sample: &Sample| sample.drain.as_nanos() as f64;
        let total = |sample: &Sample| sample.total().as_nanos() as f64;
        let rate = 1e9 / median(nanoseconds(total));
        let name = self.case.name;
        let runtime = if runtime == Runtime::CurrentThread { "ct" } else { "mt" };
        let Sample { allocations_publish, allocations_drain, .. } = self.counted;
        match mode {
            Mode::Prefill => println!(
                "| {runtime} | prefill | {concurrency} | {name} | {:.0} | {:.0} | {:.0} | {:.0} | {rate:.0} | {allocations_publish:.2} | {allocations_drain:.2} |",
                median(nanoseconds(|sample| sample.publish.as_nanos() as f64)),
                median(nanoseconds(drain)),
                nanoseconds(drain).fold(f64::INFINITY, f64::min),
                nanoseconds(drain).fold(0.0, f64::max),
            ),
            Mode::Pipe => println!(
                "| {runtime} | pipe | {concurrency} | {name} | - | - | - | - | {rate:.0} | both: {:.2} | - |",
                allocations_publish + allocations_drain
            ),
        }
    }
}

/// One of the drained struct is the text in it, and nobody's.
const OF_THE_WORK: f64 = 1.0;

fn budgets_of(measured: &[Measured]) -> Vec<String> {
    let find = |name: &str| measured.iter().find(|measured| measured.case.name == name);
    let ratio = |name, ours, peer, limit| {
        let (ours, peer) = (find(ours)?, find(peer)?);
        // Round by round: both sides of a ratio were measured in the same half second.
        let rounds = ours.samples.iter().zip(&peer.samples);
        Some(line(name, median(rounds.map(|(ours, peer)| ours.drain.as_secs_f64() / peer.drain.as_secs_f64())), limit))
    };
    let allocations = |name, ours, limit| Some(line(name, find(ours)?.counted.allocations_drain - OF_THE_WORK, limit));
    let lines = [
        ratio("memory-singleton", "ours-singleton", "ruststream-typed-header", 1.0),
        ratio("memory-scoped", "ours-scoped", "ruststream-froodi", 0.5),
        allocations("allocations-singleton", "ours-singleton", 3.0),
        allocations("allocations-scoped", "ours-scoped", 6.0),
    ];
    lines.into_iter().flatten().collect()
}
