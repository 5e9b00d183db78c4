//! What the user wrote, read: the items, and the attributes in them.

mod consumer;
mod handlers;
mod injectable;
mod retry;

pub(crate) use consumer::{Consumer, DeadLetter};
pub(crate) use handlers::{Block, Handler, Method, OnErrorMethod, Param, ParamKind, strip};
pub(crate) use injectable::{Field, Injectable, Scope};
pub(crate) use retry::{Backoff, Retry};

use syn::Attribute;

/// The `#[cfg]` attributes among some, to be copied to what is generated for the item.
pub(crate) fn cfgs(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect()
}
