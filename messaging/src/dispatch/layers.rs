//! Middleware: tower layers around scope, decoding and handler.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::Mutex as AsyncMutex;
use tokio_util::sync::CancellationToken;
use tower::timeout::error::Elapsed;
use tower::util::BoxService;
use tower::{Layer, Service};

use super::runner::Runner;
use crate::error::BoxError;
use crate::failure::{Failure, FailureKind, Outcome};
use crate::message::InboundMessage;
use crate::scope::Scope;

/// A message on its way through the layers; cheap to clone, derefs to the message.
#[derive(Clone)]
pub struct Incoming {
    message: Arc<InboundMessage>,
    handler: usize,
    left: Arc<dyn std::any::Any + Send + Sync>,
}

impl Incoming {
    /// The message, shared.
    #[must_use]
    pub fn message(&self) -> &Arc<InboundMessage> {
        &self.message
    }
}

impl Deref for Incoming {
    type Target = InboundMessage;

    fn deref(&self) -> &InboundMessage {
        &self.message
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Incoming").field(&self.message).finish()
    }
}

/// A handler's [`Failure`] on its way out through the layers.
#[derive(Debug)]
pub struct HandlerError(Failure);

impl HandlerError {
    /// What the handler failed with.
    #[must_use]
    pub fn failure(&self) -> &Failure {
        &self.0
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for HandlerError {}

/// What a layer is put around: opens the scope, decodes, runs the handler.
///
/// A request that never reaches it was handled by a layer: `Ok` is acked, an error is a retryable failure.
pub struct HandlerService(BoxService<Incoming, (), BoxError>);

impl Service<Incoming> for HandlerService {
    type Response = ();
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, message: Incoming) -> Self::Future {
        self.0.call(message)
    }
}

impl fmt::Debug for HandlerService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HandlerService")
    }
}

/// A layer whose types are gone.
pub(crate) type ErasedLayer = Arc<dyn Fn(HandlerService) -> HandlerService + Send + Sync>;

/// Takes the types off a layer.
pub(crate) fn erase<L>(layer: L) -> ErasedLayer
where
    L: Layer<HandlerService> + Send + Sync + 'static,
    L::Service: Service<Incoming, Response = (), Error: Into<BoxError>, Future: Send> + Send + 'static,
{
    Arc::new(move |inner| {
        let service = layer.layer(inner);
        HandlerService(BoxService::new(tower::util::MapErr::new(service, Into::into)))
    })
}

/// Where the scope of a run is left for `#[on_error]`.
type Left<C> = Arc<Mutex<Option<Scope<C>>>>;

/// The innermost service.
struct Innermost<C>(Arc<Runner<C>>);

impl<C: Send + Sync + 'static> Service<Incoming> for Innermost<C> {
    type Response = ();
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, incoming: Incoming) -> Self::Future {
        let runner = Arc::clone(&self.0);
        Box::pin(async move {
            let Some(handler) = runner.handlers.get(incoming.handler) else { return Err("no such handler".into()) };
            let mut keep = KeepScope { scope: None, left: incoming.left };
            runner
                .run(handler, &incoming.message, &mut keep.scope)
                .await
                .map_err(|failure| HandlerError(failure).into())
        })
    }
}

/// Leaves a scope behind even when the run is cut off.
struct KeepScope<C: Send + Sync + 'static> {
    scope: Option<Scope<C>>,
    left: Arc<dyn std::any::Any + Send + Sync>,
}

impl<C: Send + Sync + 'static> Drop for KeepScope<C> {
    fn drop(&mut self) {
        if let Some(left) = self.left.downcast_ref::<Mutex<Option<Scope<C>>>>() {
            *left.lock().unwrap_or_else(PoisonError::into_inner) = self.scope.take();
        }
    }
}

/// A consumer's stack of layers: one for all its workers, so that a limit of it is a limit of the consumer.
pub(crate) struct Layered {
    stack: AsyncMutex<HandlerService>,
    stopping: Arc<CancellationToken>,
}

/// One message for the stack.
pub(super) struct Stack<C> {
    incoming: Incoming,
    left: Left<C>,
}

pub(super) struct LeftScope<C>(Left<C>);

impl<C> LeftScope<C> {
    pub(super) fn take(self) -> Option<Scope<C>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<C: Send + Sync + 'static> Stack<C> {
    pub(super) fn new(handler: usize, message: &Arc<InboundMessage>) -> Self {
        let left = Left::<C>::default();
        let incoming = Incoming { message: Arc::clone(message), handler, left: Arc::clone(&left) as _ };
        Self { incoming, left }
    }

    pub(super) fn left_scope(&self) -> LeftScope<C> {
        LeftScope(Arc::clone(&self.left))
    }
}

impl Layered {
    /// Builds the stack of a consumer; the first layer is the outermost.
    pub(crate) fn new<C: Send + Sync + 'static>(
        runner: Arc<Runner<C>>,
        layers: &[ErasedLayer],
        stopping: Arc<CancellationToken>,
    ) -> Option<Self> {
        if layers.is_empty() {
            return None;
        }
        let innermost = HandlerService(BoxService::new(Innermost(runner)));
        let stack = layers.iter().rev().fold(innermost, |inner, layer| layer(inner));
        Some(Self { stack: AsyncMutex::new(stack), stopping })
    }

    /// Waits until the stack takes the message, and hands it over; `None` when the application stops first.
    pub(super) async fn ready<C>(
        &self,
        message: Stack<C>,
        stopping: &AtomicBool,
    ) -> Option<impl Future<Output = Outcome> + use<C>> {
        let call = async {
            let mut stack = self.stack.lock().await;
            let ready = poll_fn(|cx| stack.poll_ready(cx)).await;
            // The lock is held until the call is made: readiness is one caller's.
            Ok::<_, Infallible>(match ready {
                Ok(()) => {
                    message.incoming.message.start();
                    Ok(stack.call(message.incoming))
                }
                Err(error) => Err(error),
            })
        };
        if stopping.load(Ordering::Relaxed) {
            return None;
        }
        let Ok(call) = tokio::select! {
            biased;
            () = self.stopping.cancelled() => return None,
            call = call => call,
        };
        Some(async move {
            match call {
                Ok(running) => running.await,
                Err(error) => Err(error),
            }
            .map_err(failure_of)
        })
    }
}

/// What came out of the stack, as a failure.
fn failure_of(error: BoxError) -> Failure {
    match error.downcast::<HandlerError>() {
        Ok(error) => error.0,
        Err(error) if error.is::<Elapsed>() => Failure::of(FailureKind::Timeout, error),
        Err(error) => {
            let mut failure = Failure::of(FailureKind::Error, error);
            // A layer may have wrapped what the handler said: it still counts.
            if let Some((kind, delay)) =
                failure.find::<HandlerError>().map(|error| (error.0.kind(), error.0.requested_delay()))
            {
                failure = failure.like(kind, delay);
            }
            if failure.is_final() {
                failure.forbid_retry();
            }
            failure
        }
    }
}
