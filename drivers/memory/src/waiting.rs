use std::task::Waker;

/// The lanes that wait for a message, by their number.
///
/// A sorted list: nothing is allocated once it has grown, and a lane leaves without a walk.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    lanes: Vec<(u64, Waker)>,
    /// The lane after the one that was woken last, so that each has its turn.
    next: u64,
}

impl Waiting {
    /// Lets a lane wait; gives the waker that it waited with before.
    pub(crate) fn insert(&mut self, lane: u64, waker: &Waker) -> Option<Waker> {
        match self.find(lane) {
            Ok(index) if self.lanes[index].1.will_wake(waker) => None,
            Ok(index) => Some(std::mem::replace(&mut self.lanes[index].1, waker.clone())),
            Err(index) => {
                self.lanes.insert(index, (lane, waker.clone()));
                None
            }
        }
    }

    /// Ends a lane's wait.
    pub(crate) fn remove(&mut self, lane: u64) -> Option<Waker> {
        let index = self.find(lane).ok()?;
        Some(self.lanes.remove(index).1)
    }

    /// Takes one of the lanes.
    pub(crate) fn pop(&mut self) -> Option<Waker> {
        if self.lanes.is_empty() {
            return None;
        }
        let index = self.find(self.next).unwrap_or_else(|after| after);
        let (lane, waker) = self.lanes.remove(if index < self.lanes.len() { index } else { 0 });
        self.next = lane + 1;
        Some(waker)
    }

    /// Takes all of them.
    pub(crate) fn drain(&mut self) -> impl ExactSizeIterator<Item = Waker> + '_ {
        self.lanes.drain(..).map(|(_, waker)| waker)
    }

    fn find(&self, lane: u64) -> Result<usize, usize> {
        self.lanes.binary_search_by_key(&lane, |(known, _)| *known)
    }
}
