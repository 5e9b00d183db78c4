//! Convinces you that nothing is lost: publishes numbered messages, handles them, and keeps a ledger of both.
//!
//! ```text
//! cargo run --example soak -- [--driver URL] [--messages 20000] [--ledger FILE] [--seed 0] [--resume]
//! ```
//!
//! Of a hundred messages one fails always and ends in the dead-letter queue, which is consumed too, and five fail once.
//! While it runs, stop the broker, cut its connections, or kill this process: `--resume` goes on from the ledger. It ends
//! when every message is confirmed and has ended, or 60 s after the last progress, and succeeds only if none is missing.

mod consumers;
mod ledger;
mod publishers;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use messaging::driver_from_url;
use messaging::prelude::*;
use messaging_memory as _;
use tokio::time::{Instant, sleep};

use consumers::{DeadLetters, Numbers, Run};
use ledger::Ledger;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// How long nothing may happen before what is still open counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::from(2)
        }
    }
}

async fn run() -> Result<u64, AnyError> {
    let arguments = Arguments::parse()?;
    let ledger = Arc::new(if arguments.resume {
        Ledger::resume(&arguments.ledger)?
    } else {
        Ledger::create(&arguments.ledger, arguments.seed)?
    });
    println!("soak: the ledger is {}", arguments.ledger.display());
    let options = MessagingOptions::from(driver_from_url(&arguments.driver)?);
    let app = Application::builder()
        .value(Run { ledger: Arc::clone(&ledger) })
        .plugin(MessagingPlugin::configure(options).consumer::<Numbers>().consumer::<DeadLetters>())
        .create()
        .await?;
    app.start().await?;

    let broker = app.get::<MessageBroker>().await?;
    let publishing = publishers::start(&broker, &ledger, arguments.messages);
    watch(&ledger, arguments.messages).await;
    publishing.stop();
    app.stop().await;

    let unconfirmed = ledger.unconfirmed(arguments.messages);
    if unconfirmed > 0 {
        println!("{unconfirmed} were never confirmed");
    }
    println!("{}", ledger.summary());
    Ok(ledger.lost() + unconfirmed)
}

/// Prints the progress every second, until all is done or nothing happens any more.
async fn watch(ledger: &Ledger, messages: u64) {
    let started = Instant::now();
    let mut last = (Instant::now(), ledger.progress().steps());
    while !ledger.is_done(messages) {
        sleep(Duration::from_secs(1)).await;
        let progress = ledger.progress();
        println!("{:>5} s  {progress}", started.elapsed().as_secs());
        if progress.steps() != last.1 {
            last = (Instant::now(), progress.steps());
        } else if last.0.elapsed() >= PATIENCE {
            println!("nothing has happened for {} s", PATIENCE.as_secs());
            return;
        }
    }
}

struct Arguments {
    driver: String,
    messages: u64,
    ledger: PathBuf,
    seed: u64,
    resume: bool,
}

impl Arguments {
    fn parse() -> Result<Self, AnyError> {
        use lexopt::prelude::{Long, ValueExt};
        let ledger = std::env::temp_dir().join(format!("soak-{}.ledger", std::process::id()));
        let mut arguments = Self { driver: "memory:".into(), messages: 20_000, ledger, seed: 0, resume: false };
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            if argument == Long("driver") {
                arguments.driver = parser.value()?.string()?;
            } else if argument == Long("messages") {
                arguments.messages = parser.value()?.parse()?;
            } else if argument == Long("ledger") {
                arguments.ledger = parser.value()?.into();
            } else if argument == Long("seed") {
                arguments.seed = parser.value()?.parse()?;
            } else if argument == Long("resume") {
                arguments.resume = true;
            } else {
                return Err(argument.unexpected().into());
            }
        }
        if arguments.resume && arguments.driver.to_ascii_lowercase().starts_with("memory:") {
            return Err("the memory driver forgets its messages with the process; `--resume` needs a broker".into());
        }
        Ok(arguments)
    }
}
