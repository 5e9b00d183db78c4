//! One thing that refuses the boot.

use std::fmt;

/// What a violation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ViolationKind {
    /// The graph of providers: something is missing, circular, captive or given twice.
    Graph,
    /// A constructor failed.
    Constructor,
    /// A retry policy that is wrong in itself, or that the driver cannot honour.
    Retry,
    /// The handlers of a consumer.
    Handlers,
    /// Two consumers of one queue.
    Queue,
    /// An option.
    Options,
    /// What the broker said when the application connected or subscribed.
    Broker,
}

/// One thing that refuses the boot: where it is, what is wrong, and what to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    kind: ViolationKind,
    subject: String,
    problem: String,
    fix: String,
}

impl Violation {
    /// A violation whose subject is not known yet.
    #[must_use]
    pub fn new(kind: ViolationKind, problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { kind, subject: String::new(), problem: problem.into(), fix: fix.into() }
    }

    /// Says whose it is: a consumer, a handler, a provider, an option.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = subject.into();
        self
    }

    /// What it is about.
    #[must_use]
    pub fn kind(&self) -> ViolationKind {
        self.kind
    }

    /// What is wrong.
    #[must_use]
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// What to change.
    #[must_use]
    pub fn fix(&self) -> &str {
        &self.fix
    }

    /// Whose it is.
    #[must_use]
    pub fn concerns(&self) -> &str {
        &self.subject
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.subject.is_empty() {
            write!(f, "{}: ", self.subject)?;
        }
        f.write_str(&self.problem)?;
        if !self.fix.is_empty() {
            write!(f, "\n     {}", self.fix)?;
        }
        Ok(())
    }
}
