//! What users declare: consumers, their handlers, and what a handler may take.

mod declaration;
mod extract;
mod handlers;
mod pattern;
mod router;

pub use declaration::{Consumer, DeadLetter, Declaration};
pub use extract::{FromHeader, FromMessage, Inject, Message, MessageContext, Unvalidated};
pub use handlers::{
    BoxFuture, HandlerEntry, HandlerResult, HandlerTable, Handlers, OnError, OnErrorResult, RetryFilter, Run,
    RunOnError,
};
pub use pattern::Pattern;

pub(crate) use handlers::OnErrorEntry;
pub(crate) use router::Router;
