//! The cases, a file for each promise and level.

mod no_loss;

use super::case::Case;

/// Every case, by promise.
pub(super) fn all() -> impl Iterator<Item = &'static Case> {
    [no_loss::CASES].into_iter().flatten()
}
