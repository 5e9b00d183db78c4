//! Whether memory stays flat: ten million messages through one consumer, never more than a thousand of them at once.

use benchmark_memory::budget::line;
use benchmark_memory::cases::ours::Singleton;
use benchmark_memory::run::Runtime;
use benchmark_memory::work::{TYPE, drained, expect, sample};
use messaging::prelude::*;
use messaging_memory::MemoryDriver;

/// How deep the queue gets.
const DEPTH: usize = 1_000;
const MILLION: usize = 1_000_000;

fn main() {
    Runtime::CurrentThread.build().block_on(async {
        let app = Application::builder()
            .plugin(MessagingPlugin::configure(MemoryDriver::new()).consumer::<Singleton>())
            .create()
            .await
            .unwrap();
        app.start().await.unwrap();
        let broker = app.get::<MessageBroker>().await.unwrap();
        let order = sample();
        let mut resident = Vec::new();
        for million in 1..=10 {
            for _ in 0..MILLION / DEPTH {
                expect(DEPTH, true);
                for _ in 0..DEPTH {
                    broker.publish("orders", &order).message_type(TYPE).await.unwrap();
                }
                drained().await;
            }
            resident.push(resident_kib());
            println!("resident after {million} M messages: {} KiB", resident_kib());
        }
        app.stop().await;
        println!("{}", line("memory-rss-10m", resident[9] as f64 / resident[0] as f64, 1.10));
    });
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
