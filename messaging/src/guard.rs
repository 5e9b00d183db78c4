//! The wall around user code: what panics behind it becomes a value.

use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::Poll;

/// The text of a panic.
#[derive(Debug)]
pub(crate) struct Panic(String);

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "panicked: {}", self.0)
    }
}

impl std::error::Error for Panic {}

/// Runs a future behind the wall; dropping it, and dropping what a panic carried, happens there too.
pub(crate) async fn guard<F: Future>(future: F) -> Result<F::Output, Panic> {
    let mut future = pin!(Some(future));
    guard_pinned(future.as_mut()).await
}

/// The same where the future is: a large one is not moved.
pub(crate) async fn guard_pinned<F: Future>(mut future: Pin<&mut Option<F>>) -> Result<F::Output, Panic> {
    let output = poll_fn(|cx| match future.as_mut().as_pin_mut() {
        Some(running) => match catch_unwind(AssertUnwindSafe(|| running.poll(cx))) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => Poll::Ready(Err(read(payload))),
        },
        None => Poll::Ready(Err(Panic("polled after it had ended".into()))),
    })
    .await;
    let dropped = guarded(|| future.set(None));
    output.and_then(|output| dropped.map(|()| output))
}

/// Runs a function behind the wall.
pub(crate) fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(call)).map_err(read)
}

fn read(payload: Box<dyn Any + Send>) -> Panic {
    let text = if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "unknown panic".to_owned()
    };
    // A payload whose drop panics, whose payload's drop panics, …: let it leak.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(payload);
    }
    Panic(text)
}
