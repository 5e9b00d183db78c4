//! A consumer that speaks to the driver by its contract alone.
#![allow(dead_code, unreachable_pub, clippy::expect_used)]

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use messaging::driver::{
    DriverEvents, Ended, Fault, Lane, MessagingDriver, SubscribeOptions, Subscription, SubscriptionControl,
};
use messaging::{Delivery, Error, ErrorKind, InboundMessage, OutboundMessage, Settlement};
use messaging_memory::MemoryDriver;
use tokio_util::sync::CancellationToken;

/// What the driver told, in that order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    Settled(String, Settlement, Result<(), ErrorKind>),
    Fault(ErrorKind, bool),
    Healed,
}

#[derive(Default)]
pub struct Events(Mutex<Vec<Told>>);

impl Events {
    /// What was told since the last time.
    pub fn take(&self) -> Vec<Told> {
        std::mem::take(&mut self.0.lock().expect("not poisoned"))
    }

    fn note(&self, told: Told) {
        self.0.lock().expect("not poisoned").push(told);
    }
}

impl DriverEvents for Events {
    fn settled(&self, message: &Arc<InboundMessage>, settlement: &Settlement, result: Result<(), Error>) {
        let id = message.id.as_str().to_owned();
        self.note(Told::Settled(id, *settlement, result.map_err(|error| error.kind())));
    }

    fn fault(&self, fault: Fault) {
        self.note(Told::Fault(fault.error.kind(), fault.consuming_stopped));
    }

    fn healed(&self) {
        self.note(Told::Healed);
    }
}

/// A subscription with one or more lanes.
pub struct Consumer {
    pub queue: &'static str,
    pub lanes: Vec<Box<dyn Lane>>,
    pub control: Arc<dyn SubscriptionControl>,
    pub events: Arc<Events>,
    pub stopping: Arc<CancellationToken>,
}

impl Consumer {
    pub async fn new(driver: &MemoryDriver, queue: &'static str) -> Self {
        Self::with(driver, queue, |_| ()).await
    }

    pub async fn with(driver: &MemoryDriver, queue: &'static str, set: impl FnOnce(&mut SubscribeOptions)) -> Self {
        let events = Arc::new(Events::default());
        let mut options = SubscribeOptions::new(queue, Arc::clone(&events) as Arc<dyn DriverEvents>);
        set(&mut options);
        let stopping = options.stopping.clone();
        let Subscription { lanes, control } = driver.subscribe(options).await.expect("subscribed");
        Self { queue, lanes, control, events, stopping }
    }

    /// Waits for the next delivery of the first lane.
    pub async fn next(&mut self) -> Delivery {
        let mut out = VecDeque::new();
        next(&mut *self.lanes[0], 1, &mut out).await.expect("not ended");
        assert_eq!(out.len(), 1);
        out.pop_front().expect("one delivery")
    }

    /// Waits for the next delivery, and starts it as a worker does.
    pub async fn start(&mut self) -> Delivery {
        let delivery = self.next().await;
        delivery.message.start();
        delivery
    }

    /// Sends a message, starts it and lets it be retried after `delay`.
    pub async fn start_and_retry(&mut self, driver: &MemoryDriver, id: &str, delay: Duration) {
        send(driver, self.queue, &[id]);
        self.start().await.settler.settle(Settlement::retry(delay, 2));
    }

    /// What there is right now, up to `max`.
    pub fn take(&mut self, max: usize) -> Vec<Delivery> {
        let mut out = VecDeque::new();
        match self.poll(max, &mut out) {
            Poll::Ready(Ok(())) => out.into(),
            Poll::Ready(Err(ended)) => panic!("ended: {ended:?}"),
            Poll::Pending => Vec::new(),
        }
    }

    /// Whether there is nothing right now.
    pub fn is_waiting(&mut self) -> bool {
        self.take(1).is_empty()
    }

    pub fn poll(&mut self, max: usize, out: &mut VecDeque<Delivery>) -> Poll<Result<(), Ended>> {
        self.lanes[0].poll_next(&mut Context::from_waker(Waker::noop()), max, out)
    }
}

pub async fn next(lane: &mut dyn Lane, max: usize, out: &mut VecDeque<Delivery>) -> Result<(), Ended> {
    poll_fn(|cx| lane.poll_next(cx, max, out)).await
}

/// A connected driver.
pub async fn connected() -> MemoryDriver {
    let driver = MemoryDriver::new();
    driver.connect().await.expect("connects");
    driver
}

/// A message whose id is its body.
pub fn message(queue: &str, id: &str) -> OutboundMessage {
    OutboundMessage::raw(queue, id.to_owned()).id(id)
}

pub fn send(driver: &MemoryDriver, queue: &str, ids: &[&str]) {
    ids.iter().for_each(|id| driver.send(message(queue, id)));
}

pub fn ids(deliveries: &[Delivery]) -> Vec<String> {
    deliveries.iter().map(|delivery| delivery.message.id.as_str().to_owned()).collect()
}

/// A lane's waker that tells whether it was woken.
#[derive(Default)]
pub struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Polls a lane that has nothing, and gives the flag that its waker raises.
pub fn wait(lane: &mut dyn Lane) -> Arc<Flag> {
    let flag = Arc::new(Flag::default());
    let waker = Waker::from(Arc::clone(&flag));
    let mut out = VecDeque::new();
    assert!(lane.poll_next(&mut Context::from_waker(&waker), 1, &mut out).is_pending());
    flag
}

impl Flag {
    /// Whether it was woken since the last time.
    pub fn was_woken(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

/// Takes one delivery from a lane that has one.
pub fn take(lane: &mut dyn Lane) -> Delivery {
    let mut out = VecDeque::new();
    assert!(lane.poll_next(&mut Context::from_waker(Waker::noop()), 1, &mut out).is_ready());
    out.pop_front().expect("one delivery")
}

pub fn attempt(delivery: &Delivery) -> u32 {
    delivery.message.attempt().get()
}
