//! What each driver can do by default, for [`MemoryDriver::emulating`](crate::MemoryDriver::emulating) and for proving
//! policies in tests.
//!
//! Each driver reports its own capabilities, as configured; these are the defaults of this version, kept here so that a
//! test needs no other driver's crate.
//!
//! ```
//! use std::time::Duration;
//! use messaging::{RetryPlan, RetryPolicy};
//! use messaging_memory::capabilities;
//!
//! let weekly = RetryPolicy::new(2).delay(Duration::from_secs(7 * 86_400));
//! assert!(RetryPlan::prove(&weekly, &capabilities::RABBITMQ).is_ok());
//! assert!(RetryPlan::prove(&weekly, &capabilities::KAFKA).is_err());
//! ```

use std::time::Duration;

use messaging::{Capabilities, DeliveryCount, Order};

/// 2^32 − 1 ms, 49.7 days: what 32 delay levels hold, and what a classic Erlang timer can count.
const TWO_TO_THE_32_MS: Duration = Duration::from_millis(4_294_967_295);

/// This driver: waits in process for as long as asked, counts failures, keeps the order.
pub const MEMORY: Capabilities = Capabilities {
    native_delay: false,
    max_native_delay: Duration::ZERO,
    native_delay_granularity: Duration::ZERO,
    max_in_process_delay: Duration::MAX,
    delivery_count: DeliveryCount::Failures,
    release_counts: false,
    crash_counts: true,
    max_run: None,
    max_publish_delay: Duration::MAX,
    order: Order::Queue,
    keys: false,
    max_message_size: None,
    max_headers: None,
};

/// RabbitMQ with quorum queues.
///
/// A release counts, as before 4.3; since, it does not. A run is cut off a minute before the broker's `consumer_timeout` of
/// 30 min. The largest message is the broker's default `max_message_size` since 4.0, 16 MiB.
pub const RABBITMQ: Capabilities = Capabilities {
    native_delay: true,
    max_native_delay: TWO_TO_THE_32_MS,
    native_delay_granularity: Duration::from_millis(1),
    max_in_process_delay: Duration::from_secs(5),
    delivery_count: DeliveryCount::Failures,
    release_counts: true,
    crash_counts: true,
    max_run: Some(Duration::from_secs(29 * 60)),
    max_publish_delay: TWO_TO_THE_32_MS,
    order: Order::Queue,
    keys: false,
    max_message_size: Some(16 * 1024 * 1024),
    max_headers: None,
};

/// RabbitMQ with classic queues: no delivery count, so a crash is not counted.
pub const RABBITMQ_CLASSIC: Capabilities =
    Capabilities { delivery_count: DeliveryCount::None, release_counts: false, crash_counts: false, ..RABBITMQ };

/// Amazon SQS.
///
/// Delays are whole seconds, below 12 h less a minute for the handler's own time; the rest of a second is waited in
/// process. A message can be held for 12 h from its receive, so that is the longest run. Headers are packed into one
/// attribute, so their number is not limited.
pub const SQS: Capabilities = Capabilities {
    native_delay: true,
    max_native_delay: Duration::from_secs(12 * 3_600 - 60),
    native_delay_granularity: Duration::from_secs(1),
    max_in_process_delay: Duration::from_millis(999),
    delivery_count: DeliveryCount::HandOuts,
    release_counts: true,
    crash_counts: true,
    max_run: Some(Duration::from_secs(12 * 3_600 - 60)),
    max_publish_delay: Duration::from_secs(15 * 60),
    order: Order::None,
    keys: false,
    max_message_size: Some(1024 * 1024),
    max_headers: None,
};

/// Kafka with retry topics: nothing waits in process, since a record that waits holds up the commits behind it.
///
/// The longest delay stays below the retry topic's retention of 7 days. The largest message is about the default
/// `message.max.bytes`, which counts a batch with its overhead.
pub const KAFKA: Capabilities = Capabilities {
    native_delay: true,
    max_native_delay: Duration::from_secs(6 * 86_400),
    native_delay_granularity: Duration::from_millis(1),
    max_in_process_delay: Duration::ZERO,
    delivery_count: DeliveryCount::None,
    release_counts: false,
    crash_counts: false,
    max_run: None,
    max_publish_delay: Duration::ZERO,
    order: Order::Key,
    keys: true,
    max_message_size: Some(1_048_576),
    max_headers: None,
};

/// Kafka without retry topics: a retry can only wait in process, a minute at most.
pub const KAFKA_WITHOUT_RETRY_TOPICS: Capabilities = Capabilities {
    native_delay: false,
    max_native_delay: Duration::ZERO,
    native_delay_granularity: Duration::ZERO,
    max_in_process_delay: Duration::from_secs(60),
    ..KAFKA
};
