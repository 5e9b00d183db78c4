//! One case, once, and no report: what callgrind runs. It ends at the last message, before anything is stopped.

use benchmark_memory::cases;
use benchmark_memory::run::{Exit, Mode, Run, Runtime};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(messages)) = (arguments.next(), arguments.next()) else {
        eprintln!("once CASE MESSAGES [--publish-only]");
        std::process::exit(2)
    };
    let Some(case) = cases::all().into_iter().find(|case| case.name == name) else {
        eprintln!("there is no case `{name}`; those of peers are there with the feature `peers`");
        std::process::exit(2)
    };
    let exit = if arguments.next().as_deref() == Some("--publish-only") { Exit::Published } else { Exit::Drained };
    let run = Run { messages: messages.parse().unwrap(), concurrency: 1, mode: Mode::Prefill, exit: Some(exit) };
    Runtime::CurrentThread.run(&case, run);
}
