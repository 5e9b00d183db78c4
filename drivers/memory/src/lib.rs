//! The in-memory driver of `messaging`: queues in this process, for tests and for trying things out.
//!
//! It is a real driver, not a mock: messages are ready, in flight or delayed, come back when they are not settled, and are
//! counted. It waits on tokio's clock alone, so that under a paused clock a retry in 30 days takes no time. It is not
//! durable: what is in it ends with the process.

pub mod capabilities;

mod after;
mod config;
mod connection;
mod counting;
mod desk;
mod driver;
mod faults;
mod gate;
mod held;
mod idle;
mod inspect;
mod limits;
mod queue;
mod recorder;
mod settle;
mod slots;
mod state;
mod store;
mod subscriber;
mod waiting;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use driver::MemoryDriver;
pub use faults::Fault;
pub use recorder::Entry;

/// Locks, also after a panic: every change under a lock of this crate is whole or harmless.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
