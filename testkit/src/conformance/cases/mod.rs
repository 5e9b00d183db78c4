//! The cases, a file for each promise.

mod by_app;
mod by_hand;

use super::case::Case;

/// Every case, by promise.
pub(super) fn all() -> impl Iterator<Item = &'static Case> {
    [
        by_hand::no_loss::CASES,
        by_app::no_loss::CASES,
        by_app::soak::no_loss::CASES,
        by_hand::at_least_once::CASES,
        by_app::soak::at_least_once::CASES,
        by_hand::isolation::CASES,
        by_app::isolation::CASES,
        by_hand::self_healing::CASES,
        by_app::self_healing::CASES,
        by_hand::bounded::CASES,
        by_app::bounded::CASES,
        by_hand::proven_at_boot::CASES,
        by_app::proven_at_boot::CASES,
        by_hand::dead_letters::CASES,
        by_app::dead_letters::CASES,
        by_hand::same_message::CASES,
        by_hand::order_and_delay::CASES,
        by_app::same_answer::CASES,
        by_hand::shutdown::CASES,
        by_app::shutdown::CASES,
    ]
    .into_iter()
    .flatten()
}
