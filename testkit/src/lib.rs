//! What messaging applications and drivers are tested with.
//!
//! | for | there is |
//! |---|---|
//! | the real graph of an application, in a test | [`TestApp`] |
//! | what goes wrong between an application and its broker | [`FaultyDriver`], around any driver |
//! | a network that can be cut and stalled | [`Relay`] |
//! | every promise of the library, on a driver of your own | [`conformance`] |
//!
//! ```
//! use std::time::Duration;
//! use messaging::prelude::*;
//! use messaging::{Reason, Settlement};
//! use messaging_memory::MemoryDriver;
//! use messaging_testkit::TestApp;
//!
//! #[consumer("orders")]
//! struct OrderConsumer;
//!
//! #[handlers]
//! impl OrderConsumer {
//!     #[on_message]
//!     #[retry(attempts = 3, delay = 1h)]
//!     async fn on_order(&self, _order: Bytes) -> Result<(), Failure> {
//!         Err("the database is down".into())
//!     }
//! }
//!
//! // The real graph of the application, for `main` and for tests.
//! fn app(driver: MemoryDriver) -> messaging::ApplicationBuilder {
//!     Application::builder().plugin(MessagingPlugin::configure(driver).consumer::<OrderConsumer>())
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
//! let driver = MemoryDriver::new();
//! let app = TestApp::start(app(driver.clone())).await;
//! driver.send(messaging::OutboundMessage::raw("orders", "{}"));
//! driver.idle().await; // three hours of retries, in no time
//! assert_eq!(driver.settlements("orders"), [
//!     Settlement::retry(Duration::from_secs(3600), 2),
//!     Settlement::retry(Duration::from_secs(7200), 3),
//!     Settlement::DeadLetter(Reason::Exhausted),
//! ]);
//! app.stop().await;
//! # }
//! ```

pub mod conformance;
mod faulty;
mod relay;
mod test_app;

pub use faulty::{Fault, FaultyDriver};
pub use relay::Relay;
pub use test_app::TestApp;
