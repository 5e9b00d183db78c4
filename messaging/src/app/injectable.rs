use std::any::TypeId;
use std::fmt;
use std::sync::Arc;

use super::scope::Resolver;
use crate::error::BoxError;

/// How long an instance lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// One for the application.
    #[default]
    Singleton,
    /// One for each delivery, or each scope opened by hand.
    Request,
}

/// What something is provided and asked for by: its type.
#[derive(Clone, Copy)]
pub struct Key {
    id: TypeId,
    name: fn() -> &'static str,
}

impl Key {
    /// The key of a type, `dyn Trait` included.
    #[must_use]
    pub fn of<T: ?Sized + 'static>() -> Self {
        Self { id: TypeId::of::<T>(), name: std::any::type_name::<T> }
    }

    /// The type's id.
    #[must_use]
    pub fn id(self) -> TypeId {
        self.id
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Key {}

impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

/// The type's name without the paths of modules.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&short_name((self.name)()))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `a::b::Cache<c::Order>` as `Cache<Order>`.
pub(crate) fn short_name(path: &str) -> String {
    let mut short = String::with_capacity(path.len());
    for part in path.split_inclusive(|character: char| !(character.is_alphanumeric() || "_:{}".contains(character))) {
        short.push_str(part.rsplit("::").next().unwrap_or(part));
    }
    short
}

/// A type that the container can build from others; `#[derive(Injectable)]` writes it.
///
/// ```
/// use std::sync::Arc;
/// use messaging::prelude::*;
///
/// #[derive(Default, Injectable)]
/// struct Clock { #[inject(default)] ticks: u64 }
///
/// #[derive(Injectable)]
/// struct OrderService { clock: Arc<Clock> }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), BootError> {
/// let app = Application::builder().provide::<Clock>().provide::<OrderService>().create().await?;
/// assert_eq!(app.get::<OrderService>().await?.clock.ticks, 0);
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not injectable",
    label = "the container cannot build this",
    note = "derive `Injectable` for it, or provide it with `.value(…)` or `.factory(…)`"
)]
pub trait Injectable: Sized + Send + Sync + 'static {
    /// How long an instance lives.
    const LIFETIME: Lifetime = Lifetime::Singleton;

    /// What it is built from, in the order in which [`construct`](Self::construct) takes it.
    fn dependencies() -> Vec<Key>;

    /// Builds one.
    ///
    /// # Errors
    /// A dependency that is not there, which the check at boot rules out.
    fn construct(resolver: &mut Resolver<'_>) -> Result<Self, BoxError>;
}

/// What a field or a factory's parameter may be: `Arc<T>`, `Arc<dyn Trait>`, `MessageBroker`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be injected",
    label = "not something the container hands out",
    note = "inject `Arc<{Self}>`, or give the field its default with `#[inject(default)]`"
)]
pub trait Dependency: Sized + Send + 'static {
    /// What it is asked for by.
    fn key() -> Key;

    /// Takes it from a resolver; it MUST be the next of the dependencies.
    ///
    /// # Errors
    /// It is not there.
    fn resolve(resolver: &mut Resolver<'_>) -> Result<Self, BoxError>;
}

impl<T: ?Sized + Send + Sync + 'static> Dependency for Arc<T> {
    fn key() -> Key {
        Key::of::<T>()
    }

    fn resolve(resolver: &mut Resolver<'_>) -> Result<Self, BoxError> {
        resolver.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_modules_and_keep_their_shape() {
        assert_eq!(short_name("a::b::Cache<c::d::Order, dyn e::Repo>"), "Cache<Order, dyn Repo>");
        assert_eq!(short_name("a::b::{{closure}}::Order"), "Order");
        assert_eq!(Key::of::<dyn fmt::Debug>().to_string(), "dyn Debug");
        assert_eq!(Key::of::<Option<String>>().to_string(), "Option<String>");
    }
}
