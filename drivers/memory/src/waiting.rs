use std::task::Waker;

/// The lanes that wait for a message, by their number.
///
/// A sorted list: nothing is allocated once it has grown, and a lane leaves without a walk.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Vec<(u64, Waker)>);

impl Waiting {
    /// Lets a lane wait, or replaces its waker.
    pub(crate) fn insert(&mut self, lane: u64, waker: &Waker) {
        match self.0.binary_search_by_key(&lane, |(known, _)| *known) {
            Ok(index) => self.0[index].1.clone_from(waker),
            Err(index) => self.0.insert(index, (lane, waker.clone())),
        }
    }

    /// Ends a lane's wait; what it waited with is dropped by the caller.
    pub(crate) fn remove(&mut self, lane: u64) -> Option<Waker> {
        let index = self.0.binary_search_by_key(&lane, |(known, _)| *known).ok()?;
        Some(self.0.remove(index).1)
    }

    /// Takes one of the lanes.
    pub(crate) fn pop(&mut self) -> Option<Waker> {
        self.0.pop().map(|(_, waker)| waker)
    }

    /// Takes all of them.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Waker> + '_ {
        self.0.drain(..).map(|(_, waker)| waker)
    }
}
