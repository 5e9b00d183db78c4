//! The rules: one function each, which reports what breaks it.

mod handlers;
mod methods;

pub(crate) use handlers::block;
