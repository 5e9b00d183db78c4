use std::fmt;
use std::sync::Arc;

use super::MessagingDriver;
use crate::error::{Error, ErrorKind};

/// How a driver is made from a URL; drivers submit one with `inventory`.
pub struct DriverFactory {
    /// The URL schemes it answers to, without `:`.
    pub schemes: &'static [&'static str],
    /// Makes the driver; it connects to nothing yet.
    pub create: fn(url: &str) -> Result<Arc<dyn MessagingDriver>, Error>,
}

impl fmt::Debug for DriverFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverFactory").field("schemes", &self.schemes).finish_non_exhaustive()
    }
}

inventory::collect!(DriverFactory);

/// Makes the driver that a URL's scheme names: `memory:`, `amqp://…`, `sqs://…`, `kafka://…`.
///
/// A driver that is only named in Cargo.toml is not linked: write `use messaging_rabbitmq as _;` somewhere.
///
/// # Errors
/// `Config`, when no linked driver answers to the scheme, or when the driver finds the URL wrong. The message never
/// repeats the URL, which may hold a password.
pub fn driver_from_url(url: &str) -> Result<Arc<dyn MessagingDriver>, Error> {
    let Some((scheme, _)) = url.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) else {
        return Err(Error::new(
            ErrorKind::Config,
            "a driver URL starts with a scheme, as in `memory:` or `amqp://host`",
        ));
    };
    let mut known = Vec::new();
    for factory in inventory::iter::<DriverFactory> {
        if factory.schemes.iter().any(|candidate| candidate.eq_ignore_ascii_case(scheme)) {
            return (factory.create)(url);
        }
        known.extend_from_slice(factory.schemes);
    }
    known.sort_unstable();
    Err(Error::new(
        ErrorKind::Config,
        format!(
            "no driver for `{scheme}:` is linked into this program (linked: {}); name its crate in Cargo.toml and write `use <crate> as _;`",
            if known.is_empty() { "none".into() } else { known.join(", ") }
        ),
    ))
}

/// What stands before the first colon may also be a user, or a password: it is repeated only where it can be a scheme.
fn is_scheme(text: &str) -> bool {
    let allowed = |character: char| character.is_ascii_alphanumeric() || "+-.".contains(character);
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.chars().all(allowed)
}
