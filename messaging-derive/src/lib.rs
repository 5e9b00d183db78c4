//! The macros of the `messaging` crate; use them through it.
