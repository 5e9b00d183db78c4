//! Guides: how to rely on the library, how to test with it, and how to write a driver.
//!
//! Each is a module without items, so that its examples are compiled and run like all others.

#[doc = include_str!("docs/delivery_semantics.md")]
pub mod delivery_semantics {}

#[doc = include_str!("docs/retries.md")]
pub mod retries {}

#[doc = include_str!("docs/testing.md")]
pub mod testing {}

#[doc = include_str!("docs/writing_a_driver.md")]
pub mod writing_a_driver {}
