//! The macros of the `messaging` crate; use them through it.
//!
//! An attribute is read (`args`, `model`), checked (`check`) and written out (`expand`). Every mistake is reported at
//! once, at the narrowest place, and the user's item is kept whatever is wrong with it.

mod args;
mod check;
mod errors;
mod expand;
mod macros;
mod model;
mod pattern;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// Lets the container build a struct: each field is injected, in the order they are written.
///
/// A field is an `Arc<T>`, an `Arc<dyn Trait>` or a `MessageBroker`; with `#[inject(default)]` it is anything that has a
/// default. The struct has named fields or none, and may be generic. It lives as long as the application;
/// `#[injectable(scope = "request")]` makes one for each delivery.
///
/// ```
/// use std::sync::Arc;
/// use messaging::prelude::*;
/// use messaging::Lifetime;
///
/// #[derive(Injectable)]
/// struct Clock;
///
/// #[derive(Injectable)]
/// #[injectable(scope = "request")]
/// struct Audit {
///     clock: Arc<Clock>,
///     #[inject(default)]
///     entries: Vec<String>,
/// }
///
/// assert_eq!(Clock::LIFETIME, Lifetime::Singleton);
/// assert_eq!(Audit::LIFETIME, Lifetime::Request);
/// assert_eq!(Audit::dependencies().len(), 1);
/// ```
#[proc_macro_derive(Injectable, attributes(injectable, inject))]
pub fn injectable(item: TokenStream) -> TokenStream {
    macros::injectable(item.into()).into()
}

/// Declares a struct as the consumer of a queue; its fields are injected, as with `#[derive(Injectable)]`.
///
/// | option | is | where it is left out |
/// |---|---|---|
/// | `"orders"` or `queue = …` | the queue: a string, or an expression of a `&str` | refused |
/// | `concurrency = 10` | how many messages are handled at once: a number from 1, or a `usize` constant | the application's default |
/// | `scope = "request"` | one consumer for each delivery, instead of one for all | `"singleton"` |
/// | `dead_letter = "orders.dead"` | where dead letters go; `false` is nowhere | the application's default, else the driver's |
/// | `options(A, B)` | options that only one driver understands, by their types | none |
///
/// The struct has named fields or none. `.discover()` finds it, unless it is generic: that one is named with
/// `.consumer::<C<X>>()`. Its handlers are written with [`macro@handlers`].
///
/// ```
/// use messaging::prelude::*;
/// use messaging::{Consumer, DeadLetter};
///
/// #[consumer("orders", concurrency = 10, dead_letter = "orders.parked")]
/// struct OrderConsumer { broker: MessageBroker }
///
/// #[handlers]
/// impl OrderConsumer {
///     #[on_message]
///     async fn on_any(&self) {}
/// }
///
/// let declaration = OrderConsumer::declaration();
/// assert_eq!(declaration.queue, "orders");
/// assert_eq!(declaration.dead_letter, DeadLetter::Queue("orders.parked".into()));
/// ```
#[proc_macro_attribute]
pub fn consumer(args: TokenStream, item: TokenStream) -> TokenStream {
    macros::consumer(args.into(), item.into()).into()
}

/// Makes handlers of the methods of an impl block: those with [`macro@on_message`], and one with [`macro@on_error`].
///
/// A handler takes `&self` and what the message gives, by type: `Message<T>`, `Unvalidated<T>`, `Option` of either,
/// `&InboundMessage`, `Bytes`, `Headers`, `Attempt`, `CancellationToken`, `Inject<T>`, or any `FromMessage`; and headers,
/// with `#[header("name")]` before the parameter. It returns `()`, or `Result<(), E>` of anything that becomes a
/// `Failure`. It may be `async`. Other methods stay as they are.
///
/// Two handlers that could match the same type with equal right are refused: here where both types are literals, at boot
/// where one is a constant or has a `#[cfg]`. A consumer has one such block.
///
/// ```
/// use messaging::prelude::*;
///
/// #[derive(Deserialize, Validate)]
/// struct OrderCreated {
///     #[validate(length(min = 1))]
///     order_id: String,
/// }
///
/// #[consumer("orders")]
/// struct OrderConsumer;
///
/// #[handlers]
/// impl OrderConsumer {
///     #[on_message("order.created")]
///     #[retry(attempts = 5, delay = 1s, max_delay = 1min)]
///     async fn on_created(&self, event: Message<OrderCreated>) -> Result<(), Failure> {
///         self.bill(&event.order_id)
///     }
///
///     #[on_message]
///     async fn on_other(&self, message: &InboundMessage, #[header("tenant")] tenant: Option<String>) {}
///
///     #[on_error]
///     async fn on_failure(&self, failure: &Failure) -> OnError {
///         OnError::DeadLetter
///     }
/// }
///
/// impl OrderConsumer {
///     fn bill(&self, order_id: &str) -> Result<(), Failure> {
///         Ok(())
///     }
/// }
/// ```
#[proc_macro_attribute]
pub fn handlers(args: TokenStream, item: TokenStream) -> TokenStream {
    macros::handlers(args.into(), item.into()).into()
}

/// Handles the messages of a type; inside an impl block with [`macro@handlers`].
///
/// The type is exact, or a pattern in which `*` matches any run of characters, or a constant of either. Without one it is
/// the default handler, for messages that no other matches. An exact type is chosen before a pattern, a narrower pattern
/// before a wider one.
///
/// `timeout = 30s` limits a run. A duration is a number with a unit (`250ms`, `1.5s`, `1min`, `2h`, `1d`) or an
/// expression of a `Duration`.
///
/// ```
/// # use messaging::prelude::*;
/// # #[consumer("orders")] struct OrderConsumer;
/// const CANCELLED: &str = "order.cancelled";
///
/// #[handlers]
/// impl OrderConsumer {
///     #[on_message("order.created", timeout = 30s)]
///     async fn on_created(&self) {}
///
///     #[on_message(CANCELLED)]
///     async fn on_cancelled(&self) {}
///
///     #[on_message("order.*")]
///     async fn on_order(&self) {}
///
///     #[on_message]
///     async fn on_other(&self) {}
/// }
/// ```
#[proc_macro_attribute]
pub fn on_message(_args: TokenStream, item: TokenStream) -> TokenStream {
    macros::misplaced("on_message", item.into()).into()
}

/// Says how a handler is retried, instead of as the application's default says; beside [`macro@on_message`].
///
/// | option | is | where it is left out |
/// |---|---|---|
/// | `attempts = 5` | how many attempts, the first delivery counted | refused |
/// | `backoff = fixed` | `fixed` or `exponential`: the same delay each time, or twice the last one | `exponential` |
/// | `delay = 1s` | the delay after the first failed attempt | `1s` |
/// | `max_delay = 1min` | the longest delay, before jitter | no limit |
/// | `jitter = 0.2` | by how much of itself a delay may be extended, from 0 to 1 | `0` |
/// | `on(A, B)` | only these errors are retried | every error |
/// | `never(C)` | these errors are not retried, also where `on` has them | none |
///
/// Each may be a constant. `#[retry(false)]` is a single attempt. Boot proves the policy against the driver.
///
/// ```
/// # use messaging::prelude::*;
/// # #[consumer("orders")] struct OrderConsumer;
/// #[handlers]
/// impl OrderConsumer {
///     #[on_message("order.created")]
///     #[retry(attempts = 5, delay = 250ms, max_delay = 1min, jitter = 0.2, on(std::io::Error))]
///     async fn on_created(&self) -> Result<(), std::io::Error> {
///         Ok(())
///     }
///
///     #[on_message("order.audited")]
///     #[retry(false)]
///     async fn on_audited(&self) {}
/// }
/// ```
#[proc_macro_attribute]
pub fn retry(_args: TokenStream, item: TokenStream) -> TokenStream {
    macros::misplaced("retry", item.into()).into()
}

/// Is called when a message will not be retried any more; inside an impl block with [`macro@handlers`].
///
/// The method takes `&self`, the `&Failure`, and whatever a handler takes. It returns `()`, `OnError`, or a `Result` of
/// either; where it fails, the message is dead-lettered.
///
/// ```
/// # use messaging::prelude::*;
/// # #[consumer("orders")] struct OrderConsumer;
/// #[handlers]
/// impl OrderConsumer {
///     #[on_message]
///     async fn on_any(&self) {}
///
///     #[on_error]
///     async fn on_failure(&self, failure: &Failure, message: &InboundMessage) -> OnError {
///         if failure.is_final() { OnError::Discard } else { OnError::DeadLetter }
///     }
/// }
/// ```
#[proc_macro_attribute]
pub fn on_error(_args: TokenStream, item: TokenStream) -> TokenStream {
    macros::misplaced("on_error", item.into()).into()
}
