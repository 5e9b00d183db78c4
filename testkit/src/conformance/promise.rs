use std::fmt;

/// What the library promises on every driver; each case of the suite shows a piece of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Promise {
    /// P1: a delivery is acked after success or after a confirmed copy, discarded on purpose, or still with the broker.
    NoLoss,
    /// P2: duplicates happen at crashes, lost connections and failed settlements, and then of what was in flight.
    AtLeastOnce,
    /// P3: what fails in one place stops nothing in another.
    Isolation,
    /// P4: after a transient fault a consumer consumes again, and the fault was told.
    SelfHealing,
    /// P5: attempts, concurrency and waits have the bounds that were asked for.
    Bounded,
    /// P6: what cannot be honoured is refused before anything connects.
    ProvenAtBoot,
    /// P7: what is accepted can be dead-lettered.
    DeadLetters,
    /// P8: the same input has the same outcome on every driver.
    SameAnswer,
    /// P9: a stop drops nothing, and ends.
    Shutdown,
}

impl Promise {
    /// The module of its cases, which their names start with.
    #[must_use]
    pub fn module(self) -> &'static str {
        match self {
            Self::NoLoss => "p1_no_loss",
            Self::AtLeastOnce => "p2_at_least_once",
            Self::Isolation => "p3_isolation",
            Self::SelfHealing => "p4_self_healing",
            Self::Bounded => "p5_bounded",
            Self::ProvenAtBoot => "p6_proven_at_boot",
            Self::DeadLetters => "p7_dead_letters",
            Self::SameAnswer => "p8_same_answer",
            Self::Shutdown => "p9_shutdown",
        }
    }
}

/// The promise in words.
impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoLoss => "P1, no loss",
            Self::AtLeastOnce => "P2, at least once with bounded duplicates",
            Self::Isolation => "P3, isolation",
            Self::SelfHealing => "P4, self-healing",
            Self::Bounded => "P5, bounded",
            Self::ProvenAtBoot => "P6, nothing refused later that could be refused at boot",
            Self::DeadLetters => "P7, whatever is accepted can be dead-lettered",
            Self::SameAnswer => "P8, the same answer on every driver",
            Self::Shutdown => "P9, shutdown drops nothing",
        })
    }
}
