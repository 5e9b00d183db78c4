use std::sync::Arc;

use messaging::driver::{DriverFactory, MessagingDriver};
use messaging::{Error, ErrorKind};

use crate::MemoryDriver;

inventory::submit! {
    DriverFactory { schemes: &["memory"], create: from_url }
}

/// `memory:` or `memory://`; a new driver each time, and nothing can be configured.
fn from_url(url: &str) -> Result<Arc<dyn MessagingDriver>, Error> {
    match url.split_once(':') {
        Some((_, "" | "//")) => Ok(Arc::new(MemoryDriver::new())),
        _ => Err(Error::new(
            ErrorKind::Config,
            "the URL of the memory driver is `memory:`, with nothing behind it; it has no options",
        )),
    }
}
