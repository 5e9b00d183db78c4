use std::fmt;

use crate::violation::Violation;

/// Everything that refuses the boot, at once.
///
/// `Debug` is the report too: it is what a `main` that returns it prints.
pub struct BootError {
    violations: Vec<Violation>,
}

impl BootError {
    /// What refuses the boot.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }
}

impl From<Vec<Violation>> for BootError {
    fn from(violations: Vec<Violation>) -> Self {
        Self { violations }
    }
}

impl fmt::Display for BootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.violations.len();
        write!(f, "the application cannot boot: {number} {}", if number == 1 { "problem" } else { "problems" })?;
        for (index, violation) in self.violations.iter().enumerate() {
            write!(f, "\n{:>3}. {violation}", index + 1)?;
        }
        Ok(())
    }
}

impl fmt::Debug for BootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for BootError {}
