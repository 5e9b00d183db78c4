use std::time::Duration;

/// How the delay grows from one failed attempt to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backoff {
    /// The same delay each time.
    Fixed,
    /// Twice the delay each time.
    #[default]
    Exponential,
}

impl Backoff {
    /// The delay after failed attempt `attempt` (from 1), where `first` is the one after the first; saturates.
    #[must_use]
    pub fn delay_after(self, attempt: u32, first: Duration) -> Duration {
        match self {
            Self::Fixed => first,
            Self::Exponential => 1u32
                .checked_shl(attempt.saturating_sub(1))
                .and_then(|factor| first.checked_mul(factor))
                .unwrap_or(if first.is_zero() { Duration::ZERO } else { Duration::MAX }),
        }
    }
}
