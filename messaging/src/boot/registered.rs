use std::any::TypeId;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Proof;
use super::prepared::{Prepared, Setup, prepare};
use crate::app::{Container, Key, Lifetime, Provider, short_name};
use crate::consumer::{BoxFuture, Consumer, Declaration};
use crate::retry::RetryPolicy;
use crate::scope::{ConsumerFn, Scopes};
use crate::violation::Violation;

/// A consumer whose type is gone.
pub(crate) trait Registered: Send + Sync + fmt::Debug {
    fn id(&self) -> TypeId;
    fn full_name(&self) -> &'static str;
    fn declaration(&self) -> Declaration;
    fn handlers(&self) -> Vec<HandlerOutline>;
    fn on_error_requires(&self) -> Vec<Key>;
    /// What our container is told; `None` for a consumer that comes from another.
    fn own(&self) -> Option<Own>;
    /// Compiles the consumer's scopes and makes its engine.
    fn prepare<'p>(
        &'p self,
        container: &'p Container,
        setup: &'p Setup,
        proof: Proof,
    ) -> BoxFuture<'p, Result<Box<dyn Prepared>, Vec<Violation>>>;

    fn name(&self) -> String {
        short_name(self.full_name())
    }
}

/// What a consumer of our container is built from.
pub(crate) struct Own {
    pub(crate) key: Key,
    pub(crate) provider: Provider,
}

/// A handler, as far as boot looks at it.
pub(crate) struct HandlerOutline {
    pub(crate) name: &'static str,
    pub(crate) pattern: Option<&'static str>,
    pub(crate) retry: Option<RetryPolicy>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) requires: Vec<Key>,
}

fn outlines<C: Consumer>() -> Vec<HandlerOutline> {
    let outline = |handler: crate::HandlerEntry<C>| {
        let mut requires = Vec::new();
        (handler.requires)(&mut requires);
        let crate::HandlerEntry { name, pattern, retry, timeout, .. } = handler;
        HandlerOutline { name, pattern, retry, timeout, requires }
    };
    C::table().handlers.into_iter().map(outline).collect()
}

fn on_error_requires<C: Consumer>() -> Vec<Key> {
    let mut keys = Vec::new();
    if let Some(on_error) = C::table().on_error {
        (on_error.requires)(&mut keys);
    }
    keys
}

/// A consumer that our container builds.
struct OwnConsumer<C>(std::marker::PhantomData<fn() -> C>);

pub(crate) fn own<C: Consumer>() -> Box<dyn Registered> {
    Box::new(OwnConsumer::<C>(std::marker::PhantomData))
}

impl<C: Consumer> Registered for OwnConsumer<C> {
    fn id(&self) -> TypeId {
        TypeId::of::<C>()
    }

    fn full_name(&self) -> &'static str {
        std::any::type_name::<C>()
    }

    fn declaration(&self) -> Declaration {
        C::declaration()
    }

    fn handlers(&self) -> Vec<HandlerOutline> {
        outlines::<C>()
    }

    fn on_error_requires(&self) -> Vec<Key> {
        on_error_requires::<C>()
    }

    fn own(&self) -> Option<Own> {
        Some(Own { key: Key::of::<C>(), provider: Provider::of::<C>() })
    }

    fn prepare<'p>(
        &'p self,
        container: &'p Container,
        setup: &'p Setup,
        proof: Proof,
    ) -> BoxFuture<'p, Result<Box<dyn Prepared>, Vec<Violation>>> {
        Box::pin(async move {
            let shared = container.lifetime(Key::of::<C>()) != Some(Lifetime::Request);
            let scopes = if shared {
                Scopes::Shared(container.get::<C>().await.map_err(|error| error.violations().to_vec())?)
            } else {
                Scopes::Scoped
            };
            prepare::<C>(container, setup, proof, scopes, self.name()).await
        })
    }
}

/// A consumer that a function gives.
pub(crate) struct Foreign<C>(pub(crate) ConsumerFn<C>);

impl<C: Consumer> Registered for Foreign<C> {
    fn id(&self) -> TypeId {
        TypeId::of::<C>()
    }

    fn full_name(&self) -> &'static str {
        std::any::type_name::<C>()
    }

    fn declaration(&self) -> Declaration {
        C::declaration()
    }

    fn handlers(&self) -> Vec<HandlerOutline> {
        outlines::<C>()
    }

    fn on_error_requires(&self) -> Vec<Key> {
        on_error_requires::<C>()
    }

    fn own(&self) -> Option<Own> {
        None
    }

    fn prepare<'p>(
        &'p self,
        container: &'p Container,
        setup: &'p Setup,
        proof: Proof,
    ) -> BoxFuture<'p, Result<Box<dyn Prepared>, Vec<Violation>>> {
        Box::pin(prepare::<C>(container, setup, proof, Scopes::Foreign(Arc::clone(&self.0)), self.name()))
    }
}

impl<C> fmt::Debug for OwnConsumer<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::any::type_name::<C>())
    }
}

impl<C> fmt::Debug for Foreign<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::any::type_name::<C>())
    }
}
