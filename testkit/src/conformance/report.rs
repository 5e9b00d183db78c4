use std::fmt;

/// What came of a suite.
#[derive(Clone, Debug, Default)]
pub struct Report(pub(super) Vec<(String, Outcome)>);

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The promise was kept.
    Passed,
    /// The promise was broken: what was seen.
    Failed(String),
    /// It could not be shown: why.
    Ignored(String),
}

impl Report {
    /// Each case by name, and what came of it.
    pub fn outcomes(&self) -> impl Iterator<Item = (&str, &Outcome)> {
        self.0.iter().map(|(name, outcome)| (name.as_str(), outcome))
    }

    /// The cases that failed, and what was seen.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.outcomes().filter_map(|(name, outcome)| match outcome {
            Outcome::Failed(what) => Some((name, what.as_str())),
            Outcome::Passed | Outcome::Ignored(_) => None,
        })
    }
}

/// Every failure in full, and how many of each outcome there were.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, what) in self.failures() {
            writeln!(f, "{name}: {what}")?;
        }
        let failed = self.failures().count();
        let ignored = self.outcomes().filter(|(_, outcome)| matches!(outcome, Outcome::Ignored(_))).count();
        write!(f, "{} passed, {failed} failed, {ignored} ignored", self.0.len() - failed - ignored)
    }
}
