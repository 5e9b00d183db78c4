#![doc = include_str!("../README.md")]

mod backoff;
mod buffer;
mod config;
mod connection;
mod convert;
mod copies;
mod driver;
mod error;
mod generation;
mod intake;
mod ledger;
mod levels;
mod publisher;
mod settle;
mod subscriber;
mod topology;
mod window;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use config::{QueueType, RabbitMqConfig};
pub use driver::RabbitMqDriver;

/// Locks, also after a panic: every change under a lock of this crate is whole or harmless.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
