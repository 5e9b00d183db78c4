//! Messages through memory: the library beside its peers.
//!
//! Every case does the same work: publish N JSON messages, take each off the queue, decode it, bump an atomic,
//! acknowledge. See `benchmarks/README.md` for what the figures mean and what they do not.

pub mod allocations;
pub mod budget;
pub mod cases;
pub mod run;
pub mod work;
