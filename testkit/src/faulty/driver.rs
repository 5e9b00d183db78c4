use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use messaging::driver::{DriverEvents, Lane, MessagingDriver, SubscribeOptions, Subscription};
use messaging::{Capabilities, Error, ErrorKind, MessageId, OutboundMessage};
use tokio::time::sleep;

use super::fault::{Effect, Fault, Faults};
use super::gate::Gate;
use super::intake::{FaultyControl, FaultyLane, Intake, injected};
use super::settler::Tap;

/// A driver around any driver, that goes wrong when asked to; a cheap handle, clones share everything.
///
/// It works by the driver contract alone, so the real broker is behind it, and an application on it does not notice.
///
/// ```
/// use messaging::{ErrorKind, MessagingDriver, OutboundMessage};
/// use messaging_memory::MemoryDriver;
/// use messaging_testkit::{Fault, FaultyDriver};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), messaging::Error> {
/// let driver = FaultyDriver::new(MemoryDriver::new());
/// driver.connect().await?;
/// driver.fail(Fault::publish("orders").after(1).error(ErrorKind::Rejected));
///
/// assert!(driver.publish(OutboundMessage::raw("orders", "1")).await.is_ok());
/// let refused = driver.publish(OutboundMessage::raw("orders", "2")).await;
/// assert_eq!(refused.unwrap_err().kind(), ErrorKind::Rejected);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct FaultyDriver {
    inner: Arc<dyn MessagingDriver>,
    shared: Arc<Shared>,
}

/// What a driver's handles and its subscriptions share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) faults: Faults,
    gate: Gate,
    intakes: Mutex<Vec<Weak<Intake>>>,
}

impl FaultyDriver {
    /// Around that driver, with nothing going wrong yet.
    #[must_use]
    pub fn new(driver: impl MessagingDriver) -> Self {
        Self::over(Arc::new(driver))
    }

    /// The same around a driver that is shared.
    #[must_use]
    pub fn over(driver: Arc<dyn MessagingDriver>) -> Self {
        Self { inner: driver, shared: Arc::default() }
    }

    /// Lets something go wrong from now on; faults are met in the order they were given.
    pub fn fail(&self, fault: Fault) {
        self.shared.faults.add(fault);
    }

    /// Forgets every fault that has not happened yet; what hangs goes on hanging.
    pub fn heal(&self) {
        self.shared.faults.clear();
    }

    /// Lets go on what hangs because of [`Fault::hang`].
    pub fn release_hung(&self) {
        self.shared.gate.open();
        self.shared.intakes().iter().for_each(|intake| intake.carry_on());
    }

    /// Loses the connection, and has it again at once.
    ///
    /// Every delivery that is not settled goes back to the broker: its signal fires, it is no longer ours, and a settlement
    /// of it is told as failed. The consumers are told of a fault, and that it healed.
    pub fn lose_connection(&self) {
        self.shared.lose_connection();
    }

    async fn wait_or_fail(&self, effect: Effect, what: &str) -> Result<(), Error> {
        match effect {
            Effect::Error(kind) => Err(injected(kind, what)),
            Effect::Delay(delay) => {
                sleep(delay).await;
                Ok(())
            }
            Effect::Hang => self.shared.gate.wait().await,
            Effect::ErrorAfter(_) | Effect::Crash | Effect::Duplicate => Ok(()),
        }
    }
}

impl Shared {
    pub(super) fn lose_connection(&self) {
        let intakes = self.intakes();
        intakes.iter().for_each(|intake| intake.tell_of_loss());
        intakes.iter().for_each(|intake| intake.lose(ErrorKind::Connection));
        intakes.iter().for_each(|intake| intake.events.healed());
    }

    fn intakes(&self) -> Vec<Arc<Intake>> {
        let mut intakes = self.intakes.lock().unwrap_or_else(PoisonError::into_inner);
        intakes.retain(|intake| intake.strong_count() > 0);
        intakes.iter().filter_map(Weak::upgrade).collect()
    }
}

#[async_trait]
impl MessagingDriver for FaultyDriver {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn connect(&self) -> Result<(), Error> {
        let Some(effect) = self.shared.faults.of_connect() else { return self.inner.connect().await };
        self.wait_or_fail(effect, "connecting").await?;
        match effect {
            Effect::Crash => Err(injected(ErrorKind::Connection, "connecting")),
            Effect::ErrorAfter(kind) => self.inner.connect().await.and_then(|()| Err(injected(kind, "connecting"))),
            Effect::Error(_) | Effect::Delay(_) | Effect::Hang | Effect::Duplicate => self.inner.connect().await,
        }
    }

    async fn subscribe(&self, mut options: SubscribeOptions) -> Result<Subscription, Error> {
        let queue = Arc::clone(&options.queue);
        let effect = self.shared.faults.of_subscribe(&queue);
        let what = format!("subscribing to `{queue}`");
        if let Some(effect) = effect {
            self.wait_or_fail(effect, &what).await?;
        }
        if effect == Some(Effect::Crash) {
            return Err(injected(ErrorKind::Connection, &what));
        }
        let (events, stopping) = (Arc::clone(&options.events), Arc::clone(&options.stopping));
        let tap = Arc::new(Tap::new(Arc::clone(&events)));
        options.events = Arc::clone(&tap) as Arc<dyn DriverEvents>;
        let Subscription { lanes, control } = self.inner.subscribe(options).await?;
        if let Some(Effect::ErrorAfter(kind)) = effect {
            control.stop_receiving();
            return Err(injected(kind, &what));
        }
        let intake = Arc::new(Intake::new(Arc::clone(&self.shared), queue, events, tap, stopping));
        self.shared.intakes.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&intake));
        let lane = |inner| {
            let (intake, doubles, fresh) = (Arc::clone(&intake), VecDeque::new(), VecDeque::new());
            Box::new(FaultyLane { intake, inner, doubles, fresh }) as Box<dyn Lane>
        };
        Ok(Subscription {
            lanes: lanes.into_iter().map(lane).collect(),
            control: Arc::new(FaultyControl { intake, inner: control }),
        })
    }

    async fn publish(&self, message: OutboundMessage) -> Result<MessageId, Error> {
        let Some(effect) = self.shared.faults.of_publish(message.queue()) else {
            return self.inner.publish(message).await;
        };
        let what = format!("publishing to `{}`", message.queue());
        self.wait_or_fail(effect, &what).await?;
        if effect == Effect::Duplicate {
            self.inner.publish(message.clone()).await?;
        }
        let id = self.inner.publish(message).await?;
        match effect {
            Effect::ErrorAfter(kind) => Err(injected(kind, &what)),
            Effect::Crash => {
                self.shared.lose_connection();
                Err(injected(ErrorKind::Unconfirmed, &what))
            }
            Effect::Error(_) | Effect::Delay(_) | Effect::Hang | Effect::Duplicate => Ok(id),
        }
    }

    async fn close(&self) -> Result<(), Error> {
        self.shared.gate.close();
        self.shared.intakes().iter().for_each(|intake| intake.lose(ErrorKind::Closed));
        self.inner.close().await
    }

    fn dead_letter_name(&self, queue: &str) -> String {
        self.inner.dead_letter_name(queue)
    }
}
