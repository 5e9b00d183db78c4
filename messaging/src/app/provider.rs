use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::factory::Factory;
use super::injectable::{Injectable, Key, Lifetime};
use super::scope::{BuildError, Instance, Resolver};
use crate::error::BoxError;

/// How one type is provided.
///
/// The builder's methods make the common ones; `add` takes any.
///
/// ```
/// use std::sync::Arc;
/// use messaging::app::Provider;
/// use messaging::{Application, InboundMessage};
///
/// struct Tenant(String);
///
/// let builder = Application::builder().add(
///     Provider::factory(|message: Arc<InboundMessage>| Tenant(message.headers.text("tenant").unwrap_or("none").into()))
///         .per_request(),
/// );
/// ```
pub struct Provider {
    pub(crate) key: Key,
    pub(crate) lifetime: Lifetime,
    pub(crate) dependencies: Vec<Key>,
    pub(crate) make: Make,
    pub(crate) reader: Arc<dyn Any + Send + Sync>,
    pub(crate) export: Export,
    /// Only there as long as nothing else provides the type.
    pub(crate) fallback: bool,
}

/// A constructor, with what it was given.
type Construct<T> = Arc<dyn Fn(&mut Resolver<'_>) -> Result<T, BoxError> + Send + Sync>;

type Building = Pin<Box<dyn Future<Output = Result<Instance, BoxError>> + Send>>;

/// Makes an alias's reader and export of its source's reader.
pub(crate) type Compose =
    Arc<dyn Fn(&Arc<dyn Any + Send + Sync>) -> Option<(Arc<dyn Any + Send + Sync>, Export)> + Send + Sync>;

/// Turns an instance into an `Arc<T>` behind `Any`, for those who hold singletons.
pub(crate) type Export = Arc<dyn Fn(&Instance) -> Option<Arc<dyn Any + Send + Sync>> + Send + Sync>;

/// How an instance comes about.
#[derive(Clone)]
pub(crate) enum Make {
    /// It is there.
    Value(Instance),
    /// A constructor that returns at once.
    Now(Construct<Instance>),
    /// A constructor that waits.
    Later(Construct<Building>),
    /// Another view of its only dependency: makes a reader of that one's reader.
    Alias(Compose),
    /// Given by whoever opens the scope.
    External,
}

/// An instance, or the wait for one.
pub(crate) enum Built {
    Now(Instance),
    Later(Key, Building),
}

impl Make {
    pub(crate) fn build(&self, key: Key, resolver: &mut Resolver<'_>) -> Result<Built, BuildError> {
        let failed = |source| BuildError { key, source };
        match self {
            Self::Value(instance) => Ok(Built::Now(Arc::clone(instance))),
            Self::Now(make) => make(resolver).map(Built::Now).map_err(failed),
            Self::Later(make) => Ok(Built::Later(key, make(resolver).map_err(failed)?)),
            Self::Alias(_) | Self::External => Err(failed("whoever opened the scope gave none".into())),
        }
    }
}

impl IntoFuture for Built {
    type Output = Result<Instance, BuildError>;
    type IntoFuture = BuiltFuture;

    fn into_future(self) -> BuiltFuture {
        BuiltFuture(Some(self))
    }
}

/// Ready at once where nothing has to be waited for; no allocation then.
pub(crate) struct BuiltFuture(Option<Built>);

impl Future for BuiltFuture {
    type Output = Result<Instance, BuildError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Self::Output> {
        use std::task::Poll;
        match self.0.take() {
            Some(Built::Now(instance)) => Poll::Ready(Ok(instance)),
            Some(Built::Later(key, mut building)) => match building.as_mut().poll(cx) {
                Poll::Ready(built) => Poll::Ready(built.map_err(|source| BuildError { key, source })),
                Poll::Pending => {
                    self.0 = Some(Built::Later(key, building));
                    Poll::Pending
                }
            },
            None => Poll::Pending,
        }
    }
}

/// Makes an `Arc<T>` of an instance.
pub(crate) struct Reader<T: ?Sized>(ReadFn<T>);

/// Reads an instance as another type than its own.
type View<T> = Arc<dyn Fn(&Instance) -> Option<Arc<T>> + Send + Sync>;

enum ReadFn<T: ?Sized> {
    /// The instance itself.
    Plain(fn(&Instance) -> Option<Arc<T>>),
    /// Another view of the instance.
    View(View<T>),
}

impl<T: ?Sized + Send + Sync + 'static> Reader<T> {
    pub(crate) fn read(&self, instance: &Instance) -> Option<Arc<T>> {
        match &self.0 {
            ReadFn::Plain(read) => read(instance),
            ReadFn::View(read) => read(instance),
        }
    }

    fn erase(self) -> (Arc<dyn Any + Send + Sync>, Export) {
        let reader = Arc::new(self);
        let exporter = Arc::clone(&reader);
        (reader, Arc::new(move |instance| exporter.read(instance).map(|read| Arc::new(read) as _)))
    }
}

impl Provider {
    fn new<T: Send + Sync + 'static>(dependencies: Vec<Key>, make: Make) -> Self {
        Self::read_by(dependencies, make, Reader::<T>(ReadFn::Plain(|instance| Arc::clone(instance).downcast().ok())))
    }

    fn read_by<T: ?Sized + Send + Sync + 'static>(dependencies: Vec<Key>, make: Make, reader: Reader<T>) -> Self {
        let (reader, export) = reader.erase();
        Self { key: Key::of::<T>(), lifetime: Lifetime::Singleton, dependencies, make, reader, export, fallback: false }
    }

    /// A type that says itself what it is built from, with the lifetime it declares.
    #[must_use]
    pub fn of<T: Injectable>() -> Self {
        let make = |resolver: &mut Resolver<'_>| T::construct(resolver).map(|built| Arc::new(built) as Instance);
        Self { lifetime: T::LIFETIME, ..Self::new::<T>(T::dependencies(), Make::Now(Arc::new(make))) }
    }

    /// A value that exists.
    #[must_use]
    pub fn value<T: Send + Sync + 'static>(value: T) -> Self {
        Self::new::<T>(Vec::new(), Make::Value(Arc::new(value)))
    }

    /// A value that exists and is shared, `Arc<dyn Trait>` included.
    #[must_use]
    pub fn shared<T: ?Sized + Send + Sync + 'static>(value: Arc<T>) -> Self {
        let reader = Reader::<T>(ReadFn::Plain(|instance| instance.downcast_ref::<Arc<T>>().cloned()));
        Self::read_by(Vec::new(), Make::Value(Arc::new(value)), reader)
    }

    /// What a function makes of its parameters, each of them a [`Dependency`](super::Dependency).
    #[must_use]
    pub fn factory<F, Args>(factory: F) -> Self
    where
        F: Factory<Args>,
        F::Output: Send + Sync + 'static,
    {
        let make = move |resolver: &mut Resolver<'_>| Ok(Arc::new(factory.call(resolver)?) as Instance);
        Self::new::<F::Output>(F::dependencies(), Make::Now(Arc::new(make)))
    }

    /// The same with a function that can fail.
    #[must_use]
    pub fn try_factory<F, Args, T, E>(factory: F) -> Self
    where
        F: Factory<Args, Output = Result<T, E>>,
        T: Send + Sync + 'static,
        E: Into<BoxError>,
    {
        let make = move |resolver: &mut Resolver<'_>| {
            factory.call(resolver)?.map(|built| Arc::new(built) as Instance).map_err(Into::into)
        };
        Self::new::<T>(F::dependencies(), Make::Now(Arc::new(make)))
    }

    /// The same with a function that waits.
    #[must_use]
    pub fn factory_async<F, Args>(factory: F) -> Self
    where
        F: Factory<Args>,
        F::Output: Future<Output: Send + Sync + 'static> + Send + 'static,
    {
        let make = move |resolver: &mut Resolver<'_>| {
            let building = factory.call(resolver)?;
            Ok(Box::pin(async move { Ok(Arc::new(building.await) as Instance) }) as Building)
        };
        Self::new::<<F::Output as Future>::Output>(F::dependencies(), Make::Later(Arc::new(make)))
    }

    /// The same with a function that waits and can fail.
    #[must_use]
    pub fn try_factory_async<F, Args, T, E>(factory: F) -> Self
    where
        F: Factory<Args>,
        F::Output: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + Sync + 'static,
        E: Into<BoxError>,
    {
        let make = move |resolver: &mut Resolver<'_>| {
            let building = factory.call(resolver)?;
            Ok(Box::pin(async move { building.await.map(|built| Arc::new(built) as Instance).map_err(Into::into) })
                as Building)
        };
        Self::new::<T>(F::dependencies(), Make::Later(Arc::new(make)))
    }

    /// Another view of something provided, such as a trait object; it lives as long as that does.
    #[must_use]
    pub fn alias<T, U>(view: impl Fn(Arc<T>) -> Arc<U> + Send + Sync + 'static) -> Self
    where
        T: ?Sized + Send + Sync + 'static,
        U: ?Sized + Send + Sync + 'static,
    {
        let view = Arc::new(view);
        let compose = move |source: &Arc<dyn Any + Send + Sync>| {
            let source = Arc::clone(source).downcast::<Reader<T>>().ok()?;
            let view = Arc::clone(&view);
            let read = move |instance: &Instance| source.read(instance).map(|value| view(value));
            Some(Reader::<U>(ReadFn::View(Arc::new(read))).erase())
        };
        // Only the composed reader is ever asked; this one stands in until the graph is known.
        Self::read_by(vec![Key::of::<T>()], Make::Alias(Arc::new(compose)), Reader::<U>(ReadFn::Plain(|_| None)))
    }

    /// Something that whoever opens a scope gives, such as the message of a delivery.
    #[must_use]
    pub fn external<T: Send + Sync + 'static>() -> Self {
        Self::new::<T>(Vec::new(), Make::External).per_request()
    }

    /// One for each delivery.
    #[must_use]
    pub fn per_request(self) -> Self {
        self.lifetime(Lifetime::Request)
    }

    /// That lifetime.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Lifetime) -> Self {
        self.lifetime = lifetime;
        self
    }

    pub(crate) fn fallback(mut self) -> Self {
        self.fallback = true;
        self
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("key", &self.key)
            .field("lifetime", &self.lifetime)
            .field("dependencies", &self.dependencies)
            .finish_non_exhaustive()
    }
}
