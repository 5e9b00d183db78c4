//! Publishes orders read as JSON lines, consumes them, and tells what became of each.
//!
//! ```text
//! cargo run --example quickstart -- [--input FILE] [--driver URL]
//! ```
//!
//! `--input -` reads standard input; without it, `messages.jsonl` beside this file is read. `--driver` picks the driver by
//! URL: `memory:`, the default, is compiled in; each broker is behind a feature of this package.

mod consumer;
mod input;
mod report;

use std::io::{BufRead, BufReader, Read};
use std::process::ExitCode;
use std::sync::Arc;

use messaging::driver_from_url;
use messaging::prelude::*;
use messaging_memory as _;

use consumer::OrderConsumer;
use input::Line;
use report::Report;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

const EXAMPLE: &str = include_str!("messages.jsonl");

/// A service as an application has many: what it needs is injected.
#[derive(Injectable)]
struct Shop {
    broker: MessageBroker,
}

impl Shop {
    async fn send(&self, line: &Line) -> Result<(), messaging::Error> {
        let publish = match (&line.raw, &line.payload) {
            (Some(raw), _) => self.broker.publish_raw("orders", raw.clone()),
            (None, payload) => self.broker.publish("orders", payload),
        };
        let mut publish = publish.message_type(&line.message_type).headers(line.headers.clone());
        if let Some(key) = &line.key {
            publish = publish.key(key);
        }
        if let Some(id) = &line.id {
            publish = publish.id(id.as_str());
        }
        if let Some(delay) = line.delay {
            publish = publish.delay(delay);
        }
        publish.await.map(drop)
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("quickstart: {error}");
            ExitCode::from(2)
        }
    }
}

/// Sends every message, waits until all have ended, and tells how many were lost.
async fn run() -> Result<u64, AnyError> {
    let arguments = Arguments::parse()?;
    let report = Arc::new(Report::default());
    let listener = Arc::clone(&report);
    let options =
        MessagingOptions::from(driver_from_url(&arguments.driver)?).on_event(move |event| listener.hear(event));

    let app = Application::builder()
        .provide::<Shop>()
        .plugin(MessagingPlugin::configure(options).consumer::<OrderConsumer>())
        .create()
        .await?;
    app.start().await?;

    let shop = app.get::<Shop>().await?;
    for (number, text) in arguments.open()?.split(b'\n').enumerate() {
        let number = number + 1;
        let text = text?;
        if text.trim_ascii().is_empty() {
            continue;
        }
        match Line::parse(&text) {
            Ok(line) => {
                report.sending(line.delay.unwrap_or_default());
                if let Err(error) = shop.send(&line).await {
                    report.refused(number, &error);
                }
            }
            Err(error) => println!("line {number} skipped: {error}"),
        }
    }
    report.all_settled().await;
    app.stop().await;

    println!("{report}");
    Ok(report.lost())
}

struct Arguments {
    driver: String,
    input: Option<String>,
}

impl Arguments {
    fn parse() -> Result<Self, AnyError> {
        use lexopt::prelude::{Long, ValueExt};
        let mut arguments = Self { driver: "memory:".into(), input: None };
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            if argument == Long("driver") {
                arguments.driver = parser.value()?.string()?;
            } else if argument == Long("input") {
                arguments.input = Some(parser.value()?.string()?);
            } else if argument == Long("help") {
                println!("quickstart [--input FILE] [--driver URL]   FILE is `-` for standard input");
                std::process::exit(0);
            } else {
                return Err(argument.unexpected().into());
            }
        }
        Ok(arguments)
    }

    fn open(&self) -> Result<Box<dyn BufRead>, AnyError> {
        let read: Box<dyn Read> = match self.input.as_deref() {
            None => Box::new(EXAMPLE.as_bytes()),
            Some("-") => Box::new(std::io::stdin()),
            Some(path) => {
                Box::new(std::fs::File::open(path).map_err(|error| format!("cannot read `{path}`: {error}"))?)
            }
        };
        Ok(Box::new(BufReader::new(read)))
    }
}
