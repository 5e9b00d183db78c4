use super::handlers::Handlers;
use crate::app::Injectable;
use crate::driver::DriverOptions;

/// A struct that consumes a queue; `#[consumer("orders")]` writes it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a consumer",
    label = "not declared with `#[consumer(\"queue\")]`",
    note = "put `#[consumer(\"queue\")]` on the struct, and `#[handlers]` on its impl block"
)]
pub trait Consumer: Injectable + Handlers {
    /// What it consumes, and how.
    fn declaration() -> Declaration;
}

/// What a consumer consumes, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Declaration {
    /// The queue.
    pub queue: String,
    /// How many messages it handles at once; the application's default where it says nothing.
    pub concurrency: Option<usize>,
    /// Where its dead letters go.
    pub dead_letter: DeadLetter,
    /// Options that only one driver understands.
    pub driver: DriverOptions,
}

/// Where dead letters go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DeadLetter {
    /// Where the application's default says, else where the driver says.
    #[default]
    Default,
    /// To that queue.
    Queue(String),
    /// Nowhere: what cannot be handled is discarded, with an error event each.
    None,
}

impl Declaration {
    /// Consumes that queue, with the application's defaults.
    #[must_use]
    pub fn new(queue: impl Into<String>) -> Self {
        Self {
            queue: queue.into(),
            concurrency: None,
            dead_letter: DeadLetter::Default,
            driver: DriverOptions::default(),
        }
    }

    /// Handles that many messages at once; 0 is refused at boot.
    #[must_use]
    pub fn concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = Some(concurrency);
        self
    }

    /// Where its dead letters go.
    #[must_use]
    pub fn dead_letter(mut self, dead_letter: DeadLetter) -> Self {
        self.dead_letter = dead_letter;
        self
    }

    /// Adds options that only one driver understands.
    #[must_use]
    pub fn driver<T: std::any::Any + Send + Sync>(mut self, options: T) -> Self {
        self.driver = self.driver.with(options);
        self
    }
}
