//! The tables of drivers in the README say what the code says; `UPDATE_README=1` writes them.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use messaging::{Capabilities, DeliveryCount, MessagingDriver, Order};
use messaging_memory::{MemoryDriver, capabilities};

/// A line of a table: what it is about, and what a driver has there.
type Row = (&'static str, fn(&Capabilities) -> String);

const ROWS: [Row; 12] = [
    ("longest retry delay", |driver| duration(driver.longest_delay())),
    ("of it waited in process", |driver| duration(driver.max_in_process_delay)),
    ("rounded up to, in the broker", |driver| duration(driver.native_delay_granularity)),
    ("longest delay of a publish", |driver| duration(driver.max_publish_delay)),
    ("longest run of a handler", |driver| duration(driver.max_run.unwrap_or(Duration::MAX))),
    ("counts", |driver| {
        let counts = [
            (DeliveryCount::None, "nothing"),
            (DeliveryCount::Failures, "failures"),
            (DeliveryCount::HandOuts, "hand-outs"),
        ];
        name(&counts, driver.delivery_count)
    }),
    ("a crash is an attempt", |driver| yes(driver.crash_counts)),
    ("a release is an attempt", |driver| yes(driver.release_counts)),
    ("keeps the order", |driver| {
        name(&[(Order::None, "no"), (Order::Queue, "of the queue"), (Order::Key, "of each key")], driver.order)
    }),
    ("a key means something", |driver| yes(driver.keys)),
    ("largest message", |driver| driver.max_message_size.map_or_else(no_limit, size)),
    ("most headers", |driver| driver.max_headers.map_or_else(no_limit, |most| most.to_string())),
];

fn yes(yes: bool) -> String {
    if yes { "yes" } else { "no" }.into()
}

fn no_limit() -> String {
    "no limit".into()
}

fn name<T: PartialEq>(names: &[(T, &str)], value: T) -> String {
    names.iter().find(|(known, _)| *known == value).map(|(_, name)| (*name).to_owned()).unwrap()
}

fn size(bytes: usize) -> String {
    assert_eq!(bytes % (1024 * 1024), 0, "say how {bytes} bytes are written");
    format!("{} MiB", bytes / (1024 * 1024))
}

fn duration(duration: Duration) -> String {
    if duration == Duration::MAX {
        return no_limit();
    }
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms")];
    let (mut left, mut text) = (duration.as_millis(), String::new());
    for (size, unit) in units.into_iter().filter(|(size, _)| duration.as_millis() >= *size) {
        if left >= size {
            write!(text, "{}{}{unit}", if text.is_empty() { "" } else { " " }, left / size).unwrap();
            left %= size;
        }
    }
    if text.is_empty() { "none".into() } else { text }
}

fn table(columns: &[(&str, Capabilities)]) -> String {
    let mut text = String::from("| |");
    columns.iter().for_each(|(name, _)| write!(text, " {name} |").unwrap());
    text.push_str("\n|---|");
    columns.iter().for_each(|_| text.push_str("---|"));
    for (what, cell) in ROWS {
        write!(text, "\n| {what} |").unwrap();
        columns.iter().for_each(|(_, driver)| write!(text, " {} |", cell(driver)).unwrap());
    }
    text
}

/// The text with that table between its two markers.
fn with_table(text: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("\n<!-- end of {name} -->"));
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("no `{begin}` in the README"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("no `{end}` in the README"));
    format!("{before}{begin}{table}{end}{after}")
}

#[test]
fn the_tables_of_drivers_are_those_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let written = std::fs::read_to_string(&path).unwrap();
    let memory = MemoryDriver::new();
    let drivers = table(&[(memory.name(), memory.capabilities())]);
    let emulated = table(&[
        ("`RABBITMQ`", capabilities::RABBITMQ),
        ("`RABBITMQ_CLASSIC`", capabilities::RABBITMQ_CLASSIC),
        ("`SQS`", capabilities::SQS),
        ("`KAFKA`", capabilities::KAFKA),
        ("`KAFKA_WITHOUT_RETRY_TOPICS`", capabilities::KAFKA_WITHOUT_RETRY_TOPICS),
    ]);
    let expected = with_table(&with_table(&written, "drivers", &drivers), "emulated", &emulated);
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(&path, &expected).unwrap();
    } else {
        assert!(
            written == expected,
            "run this test with UPDATE_README=1; the README should have\n{drivers}\n\n{emulated}"
        );
    }
}
