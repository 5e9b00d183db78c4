use messaging::{Capabilities, DeliveryCount, Order};

use super::broker::TestBroker;

/// What is known of a driver before any case runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) capabilities: Capabilities,
    can_be_cut: bool,
    can_be_ended: bool,
}

impl Facts {
    pub(crate) fn of(broker: &dyn TestBroker) -> Self {
        let client = broker.client();
        Self {
            capabilities: client.driver.capabilities(),
            can_be_cut: client.can_be_cut(),
            can_be_ended: broker.process().is_some(),
        }
    }
}

/// What a case needs of the driver, or of who tests it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Messages are delivered in the order they were published.
    Order,
    /// A publish can be delayed.
    PublishDelay,
    /// A publish cannot be delayed for ever.
    LongestPublishDelay,
    /// The broker itself holds retries back.
    NativeDelay,
    /// The driver holds retries back.
    InProcessDelay,
    /// There is a longest retry delay.
    LongestDelay,
    /// A run that was cut off counts.
    CrashCounts,
    /// A release does not count.
    FreeRelease,
    /// A retry that waits in process is the next attempt also for another process.
    LastingAttempt,
    /// There is a largest message.
    MessageSize,
    /// Some publish is refused for what it is.
    Refusal,
    /// The connection of one client can be cut.
    Cut,
    /// The broker can be ended and started.
    Process,
}

impl Need {
    /// Why it is not met.
    pub(crate) fn unmet(self, facts: &Facts) -> Option<&'static str> {
        let can = &facts.capabilities;
        let (met, reason) = match self {
            Self::Order => (can.order != Order::None, "the driver promises no order"),
            Self::PublishDelay => (!can.max_publish_delay.is_zero(), "the driver cannot delay a publish"),
            Self::LongestPublishDelay => {
                (can.max_publish_delay.as_secs() < u64::MAX, "the driver delays a publish as long as asked")
            }
            Self::NativeDelay => (can.native_delay, "the broker does not hold retries back"),
            Self::InProcessDelay => (!can.max_in_process_delay.is_zero(), "the driver does not wait in process"),
            Self::LongestDelay => (can.longest_delay().as_secs() < u64::MAX, "the driver delays as long as asked"),
            Self::CrashCounts => (can.crash_counts, "a run that ends in a crash does not count on this driver"),
            Self::FreeRelease => (!can.release_counts, "a release counts as an attempt on this driver"),
            Self::LastingAttempt => (
                can.native_delay || can.delivery_count != DeliveryCount::None,
                "an attempt that waits in process is not known to another process",
            ),
            Self::MessageSize => (can.max_message_size.is_some(), "the driver knows no largest message"),
            Self::Refusal => (
                can.max_message_size.is_some() || can.max_publish_delay.as_secs() < u64::MAX,
                "the driver refuses no publish for what it is",
            ),
            Self::Cut => (facts.can_be_cut, "this test cannot cut a connection: see `Client::cut_by`"),
            Self::Process => (facts.can_be_ended, "this test cannot restart the broker: see `TestBroker::process`"),
        };
        (!met).then_some(reason)
    }
}
