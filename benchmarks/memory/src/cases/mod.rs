//! The same work, done by each.

pub mod ours;

#[cfg(feature = "peers")]
mod apalis;
#[cfg(feature = "peers")]
mod mq_bridge;
#[cfg(feature = "peers")]
mod omniqueue;
#[cfg(feature = "peers")]
mod raw;
#[cfg(feature = "peers")]
mod ruststream;

use crate::run::{Case, Mode};

const BOTH: &[Mode] = &[Mode::Prefill, Mode::Pipe];

macro_rules! cases {
    ($($name:literal $modes:expr, $run:path;)*) => {
        vec![$(Case { name: $name, modes: $modes, run: |run| Box::pin($run(run)) }),*]
    };
}

/// The library and its peers.
#[cfg(feature = "peers")]
pub fn all() -> Vec<Case> {
    // apalis takes its storage by value when it starts: it cannot be attached before.
    const PREFILL: &[Mode] = &[Mode::Prefill];
    cases! {
        "raw-mpsc" BOTH, raw::mpsc;
        "ruststream" BOTH, ruststream::one_type;
        "ruststream-typed-header" BOTH, ruststream::by_type;
        "ours-singleton" BOTH, ours::singleton;
        "ruststream-froodi" BOTH, ruststream::scoped::run;
        "ours-scoped" BOTH, ours::scoped;
        "omniqueue" BOTH, omniqueue::typed;
        "omniqueue-dyn" BOTH, omniqueue::dynamic;
        "apalis" PREFILL, apalis::limited;
        "apalis-spawn" PREFILL, apalis::spawned;
        "mq-bridge" BOTH, mq_bridge::batched;
        "mq-bridge-batch1" BOTH, mq_bridge::one_by_one;
    }
}

/// The library alone.
#[cfg(not(feature = "peers"))]
pub fn all() -> Vec<Case> {
    cases! {
        "ours-singleton" BOTH, ours::singleton;
        "ours-scoped" BOTH, ours::scoped;
    }
}
