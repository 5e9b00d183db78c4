#![doc = include_str!("../README.md")]

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
