//! A driver around a driver, that goes wrong when asked to.

mod driver;
mod fault;
mod gate;
mod intake;
mod settler;

pub use driver::FaultyDriver;
pub use fault::Fault;
