use super::injectable::{Dependency, Key};
use super::scope::Resolver;
use crate::error::BoxError;

/// A function whose parameters the container can give: up to eight, each a [`Dependency`].
pub trait Factory<Args>: Send + Sync + 'static {
    /// What it returns.
    type Output;

    /// What it takes.
    fn dependencies() -> Vec<Key>;

    /// Calls it.
    ///
    /// # Errors
    /// A dependency that is not there, which the check at boot rules out.
    fn call(&self, resolver: &mut Resolver<'_>) -> Result<Self::Output, BoxError>;
}

macro_rules! factory {
    ($($argument:ident)*) => {
        impl<F, Output, $($argument: Dependency),*> Factory<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Output + Send + Sync + 'static,
        {
            type Output = Output;

            fn dependencies() -> Vec<Key> {
                vec![$($argument::key()),*]
            }

            #[allow(unused_variables)]
            fn call(&self, resolver: &mut Resolver<'_>) -> Result<Output, BoxError> {
                Ok(self($($argument::resolve(resolver)?),*))
            }
        }
    };
}

factory!();
factory!(A);
factory!(A B);
factory!(A B C);
factory!(A B C D);
factory!(A B C D E);
factory!(A B C D E G);
factory!(A B C D E G H);
factory!(A B C D E G H I);
