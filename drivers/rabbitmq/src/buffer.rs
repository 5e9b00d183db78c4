use std::collections::VecDeque;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use messaging::Delivery;
use messaging::driver::Ended;

use crate::lock;

/// What is ready for the lanes of one subscription, and the lanes that wait for it.
pub(crate) struct Buffer {
    inner: Mutex<Inner>,
}

struct Inner {
    /// Each with the number of the channel that delivered it.
    ready: VecDeque<(u64, Delivery)>,
    lanes: Vec<Option<Waker>>,
    stopped: bool,
}

impl Inner {
    fn wake_one(&mut self) -> Option<Waker> {
        self.lanes.iter_mut().find_map(Option::take)
    }
}

impl Buffer {
    pub(crate) fn new(lanes: usize) -> Self {
        Self { inner: Mutex::new(Inner { ready: VecDeque::new(), lanes: vec![None; lanes], stopped: false }) }
    }

    /// Hands a delivery over; one that comes after the stop is dropped, which gives it back.
    pub(crate) fn push(&self, channel: u64, delivery: Delivery) {
        let mut inner = lock(&self.inner);
        if inner.stopped {
            drop(inner);
            return drop(delivery);
        }
        inner.ready.push_back((channel, delivery));
        let waker = inner.wake_one();
        drop(inner);
        waker.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn poll(
        &self,
        lane: usize,
        cx: &Context<'_>,
        max: usize,
        out: &mut VecDeque<Delivery>,
    ) -> Poll<Result<(), Ended>> {
        let mut inner = lock(&self.inner);
        if inner.stopped {
            return Poll::Ready(Err(Ended::Stopped));
        }
        if inner.ready.is_empty() {
            let previous = inner.lanes[lane].replace(cx.waker().clone());
            drop(inner);
            drop(previous);
            return Poll::Pending;
        }
        let previous = inner.lanes[lane].take();
        let take = max.max(1).min(inner.ready.len());
        out.extend(inner.ready.drain(..take).map(|(_, delivery)| delivery));
        let next = if inner.ready.is_empty() { None } else { inner.wake_one() };
        drop(inner);
        drop(previous);
        next.into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(()))
    }

    /// A lane that will not come back: what it was woken for goes to another.
    pub(crate) fn leave(&self, lane: usize) {
        let mut inner = lock(&self.inner);
        let own = inner.lanes[lane].take();
        let next = if inner.ready.is_empty() { None } else { inner.wake_one() };
        drop(inner);
        drop(own);
        next.into_iter().for_each(Waker::wake);
    }

    /// Ends all lanes, and gives back what was ready.
    pub(crate) fn stop(&self) {
        let mut inner = lock(&self.inner);
        inner.stopped = true;
        let ready = std::mem::take(&mut inner.ready);
        let wakers: Vec<_> = inner.lanes.iter_mut().filter_map(Option::take).collect();
        drop(inner);
        drop(ready);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Forgets what a channel delivered that is gone.
    pub(crate) fn forget(&self, channel: u64) {
        let mut inner = lock(&self.inner);
        let (gone, kept) = std::mem::take(&mut inner.ready).into_iter().partition(|(of, _)| *of == channel);
        inner.ready = kept;
        drop(inner);
        let gone: VecDeque<(u64, Delivery)> = gone;
        drop(gone);
    }
}
