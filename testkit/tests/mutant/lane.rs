use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use async_trait::async_trait;
use messaging::driver::{Ended, Lane, SubscriptionControl};
use messaging::{Attempt, Delivery, Error, InboundMessage, Settlement};

use super::settler::{MutantSettler, Tap};
use super::{Mutation, Stoppable};

pub(super) struct MutantLane {
    mutation: Mutation,
    tap: Arc<Tap>,
    cut: Arc<AtomicBool>,
    stopped: Arc<AtomicBool>,
    source: Source,
    /// Handed out before what comes next.
    kept: VecDeque<Delivery>,
}

enum Source {
    Polled(Box<dyn Lane>),
    /// Filled whether it is polled or not.
    Unasked(Arc<Mutex<Store>>),
}

#[derive(Default)]
struct Store {
    deliveries: VecDeque<Delivery>,
    ended: bool,
    waiting: Vec<Waker>,
}

impl MutantLane {
    pub(super) fn new(
        mutation: Mutation,
        mut inner: Box<dyn Lane>,
        tap: Arc<Tap>,
        cut: Arc<AtomicBool>,
        stopped: Arc<AtomicBool>,
    ) -> Self {
        let kept = VecDeque::new();
        if mutation != Mutation::ReceivesUnasked {
            return Self { mutation, tap, cut, stopped, source: Source::Polled(inner), kept };
        }
        let store = Arc::<Mutex<Store>>::default();
        let filled = Arc::clone(&store);
        tokio::spawn(async move {
            let mut out = VecDeque::new();
            loop {
                let ended = poll_fn(|cx| inner.poll_next(cx, 8, &mut out)).await.is_err();
                let mut store = filled.lock().unwrap_or_else(PoisonError::into_inner);
                store.deliveries.append(&mut out);
                store.ended = ended;
                store.waiting.drain(..).for_each(Waker::wake);
                if ended {
                    return;
                }
            }
        });
        Self { mutation, tap, cut, stopped, source: Source::Unasked(store), kept }
    }

    fn mutate(&self, Delivery { message, settler }: Delivery) -> Delivery {
        let seen = match self.mutation {
            Mutation::ForgetsTheAttempt => {
                Arc::new(InboundMessage::new(message.shared_queue(), message.envelope().clone(), Attempt::FIRST))
            }
            _ => Arc::clone(&message),
        };
        let tap = Arc::clone(&self.tap);
        let settler = MutantSettler::new(self.mutation, message, Arc::clone(&seen), settler, tap);
        Delivery { message: seen, settler: Box::new(settler) }
    }
}

impl Lane for MutantLane {
    fn poll_next(&mut self, cx: &mut Context<'_>, max: usize, out: &mut VecDeque<Delivery>) -> Poll<Result<(), Ended>> {
        if self.mutation == Mutation::NeverHealsOnceCut && self.cut.load(Ordering::SeqCst) {
            return Poll::Pending;
        }
        if let Some(delivery) = self.kept.pop_front() {
            out.push_back(delivery);
            return Poll::Ready(Ok(()));
        }
        let mut taken = VecDeque::new();
        let inner = match &mut self.source {
            Source::Polled(inner) => inner,
            Source::Unasked(store) => {
                let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
                if store.ended {
                    return Poll::Ready(Err(Ended::Stopped));
                }
                let Some(next) = store.deliveries.pop_front() else {
                    store.waiting.push(cx.waker().clone());
                    return Poll::Pending;
                };
                drop(store);
                let next = self.mutate(next);
                out.push_back(next);
                return Poll::Ready(Ok(()));
            }
        };
        let polled = match self.mutation {
            Mutation::ForgetsItsWaker => inner.poll_next(&mut Context::from_waker(Waker::noop()), max, &mut taken),
            Mutation::GivesMoreThanAsked => inner.poll_next(cx, max + 4, &mut taken),
            Mutation::SwapsNeighbours => inner.poll_next(cx, 2, &mut taken),
            _ => inner.poll_next(cx, max, &mut taken),
        };
        let silent = self.mutation == Mutation::StopsWithoutAWord && self.stopped.load(Ordering::SeqCst);
        match polled {
            Poll::Ready(Ok(())) => (),
            Poll::Ready(Err(_)) if silent => return Poll::Pending,
            ended => return ended,
        }
        let mut taken: VecDeque<_> = taken.into_iter().map(|delivery| self.mutate(delivery)).collect();
        if self.mutation == Mutation::SwapsNeighbours
            && taken.len() == 2
            && let Some(first) = taken.pop_front()
        {
            self.kept.push_back(first);
        }
        out.append(&mut taken);
        Poll::Ready(Ok(()))
    }
}

pub(super) struct Control {
    pub(super) mutation: Mutation,
    pub(super) inner: Arc<dyn SubscriptionControl>,
    pub(super) all: Arc<Mutex<Vec<Stoppable>>>,
    pub(super) tap: Arc<Tap>,
    pub(super) stopped: Arc<AtomicBool>,
}

#[async_trait]
impl SubscriptionControl for Control {
    fn stop_receiving(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        match self.mutation {
            Mutation::HandsOutAfterStop => (),
            Mutation::OneStopStopsAll => {
                let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
                all.iter().for_each(|stoppable| stoppable.0.stop_receiving());
            }
            _ => self.inner.stop_receiving(),
        }
    }

    async fn flush(&self) -> Result<(), Error> {
        if self.mutation == Mutation::WaitsOutRetriesAtAStop
            && let Some(Settlement::Retry { step, .. }) = self.tap.last_retry()
        {
            tokio::time::sleep(step.delay() + Duration::from_millis(1)).await;
        }
        self.inner.flush().await
    }
}
