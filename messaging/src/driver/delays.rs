use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

use tokio::time::Instant;

/// About thirty years: what a due time is clamped to where the clock cannot count further.
const FAR: Duration = Duration::from_secs(30 * 365 * 86_400);

/// What waits for a time to come, in the order it is due; ties in the order they were pushed.
///
/// Pure: it reads no clock and wakes nobody. A driver keeps one beside its settlement side, sleeps until
/// [`next_due`](Self::next_due), and takes what is due.
///
/// ```
/// use std::time::Duration;
/// use messaging::driver::DelayHeap;
/// use tokio::time::Instant;
///
/// let now = Instant::now();
/// let mut heap = DelayHeap::default();
/// heap.push(now + Duration::from_secs(2), "later");
/// heap.push(now + Duration::from_secs(1), "sooner");
/// assert_eq!(heap.next_due(), Some(now + Duration::from_secs(1)));
/// assert_eq!(heap.pop_due(now + Duration::from_secs(1)), Some("sooner"));
/// assert_eq!(heap.pop_due(now + Duration::from_secs(1)), None);
/// ```
#[derive(Debug)]
pub struct DelayHeap<T> {
    heap: BinaryHeap<Reverse<Waiting<T>>>,
    pushed: u64,
}

#[derive(Debug)]
struct Waiting<T> {
    due: Instant,
    order: u64,
    item: T,
}

impl<T> DelayHeap<T> {
    /// When something that waits `delay` from `now` is due; a delay beyond what the clock can count is about 30 years.
    #[must_use]
    pub fn due(now: Instant, delay: Duration) -> Instant {
        now.checked_add(delay.min(FAR)).unwrap_or(now)
    }

    /// Lets `item` wait until `due`; tells whether it is now the first that is due.
    pub fn push(&mut self, due: Instant, item: T) -> bool {
        let first = self.next_due().is_none_or(|next| due < next);
        self.heap.push(Reverse(Waiting { due, order: self.pushed, item }));
        self.pushed += 1;
        first
    }

    /// When the next one is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(waiting)| waiting.due)
    }

    /// Takes the next one, if it is due.
    pub fn pop_due(&mut self, now: Instant) -> Option<T> {
        if self.next_due()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(waiting)| waiting.item)
    }

    /// Takes everything, due or not, in no order.
    pub fn drain(&mut self) -> impl Iterator<Item = T> + '_ {
        self.heap.drain().map(|Reverse(waiting)| waiting.item)
    }

    /// Everything that waits, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.heap.iter().map(|Reverse(waiting)| &waiting.item)
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<T> Default for DelayHeap<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), pushed: 0 }
    }
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Waiting<T> {}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Waiting<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.due, self.order).cmp(&(other.due, other.order))
    }
}
