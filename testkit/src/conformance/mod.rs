//! One suite for every driver: a case is a piece of a promise.
//!
//! A driver's test binary is a [`TestBroker`], which says how to get to the broker, and a [`Suite`]. The cases are chosen
//! by the capabilities that the driver declares: a case that asks for more shows as ignored, with the reason, and so do
//! all of them where the broker is not there. Each has queues of its own and a thread of its own, they run side by side,
//! and none can hang for longer than [`Timing::limit`].
//!
//! There are two kinds. Some speak to the driver by hand, through its lanes and settlers; others run an application on it.
//! A failure names the [`Promise`] that is broken and what was seen.

mod app;
mod breach;
mod broker;
mod case;
mod cases;
mod hand;
mod need;
mod process;
mod promise;
mod report;
mod runner;
mod script;
mod stage;
mod suite;
mod watched;

pub use broker::{BrokerProcess, Client, TestBroker, Timing};
pub use promise::Promise;
pub use report::{Outcome, Report};
pub use suite::Suite;
