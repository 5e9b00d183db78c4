use std::future::Future;
use std::pin::Pin;

use super::breach::Verdict;
use super::need::Need;
use super::promise::Promise;
use super::stage::Stage;

/// One piece of a promise, and how it is shown.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) promise: Promise,
    name: &'static str,
    pub(crate) needs: &'static [Need],
    pub(crate) run: fn(Stage) -> Pin<Box<dyn Future<Output = Verdict>>>,
}

impl Case {
    pub(crate) const fn new(
        promise: Promise,
        name: &'static str,
        needs: &'static [Need],
        run: fn(Stage) -> Pin<Box<dyn Future<Output = Verdict>>>,
    ) -> Self {
        Self { promise, name, needs, run }
    }

    /// `p1_no_loss::a_released_message_comes_back`
    pub(crate) fn name(&self) -> String {
        format!("{}::{}", self.promise.module(), self.name)
    }

    /// Whether it ends or starts the broker, and so must run alone.
    pub(crate) fn runs_alone(&self) -> bool {
        self.needs.contains(&Need::Process)
    }
}

/// The cases of a promise, in the order they are shown.
macro_rules! cases {
    ($promise:ident; $($name:ident $([$($need:ident),+])?,)+) => {
        pub(in crate::conformance::cases) const CASES: &[$crate::conformance::case::Case] = &[$(
            $crate::conformance::case::Case::new(
                $crate::conformance::promise::Promise::$promise,
                stringify!($name),
                &[$($($crate::conformance::need::Need::$need),+)?],
                |stage| Box::pin($name(stage)),
            )
        ),+];
    };
}

pub(crate) use cases;
