//! What the user wrote, read: the items, and the attributes in them.

mod consumer;
mod handlers;
mod injectable;
mod method;
mod retry;

pub(crate) use consumer::{Consumer, DeadLetter};
pub(crate) use handlers::{Block, Handler, OnErrorMethod, strip};
pub(crate) use injectable::{Field, Injectable, Scope};
pub(crate) use method::{Method, Param, ParamKind};
pub(crate) use retry::{Backoff, Retry};

use syn::Attribute;

/// The `#[cfg]` attributes among some, to be copied to what is generated for a method or a field.
fn cfgs(attributes: &[Attribute]) -> Vec<Attribute> {
    attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).cloned().collect()
}

/// What goes for an item and for what is generated beside it: whether it is there, and what is allowed in it.
fn inherited(attributes: &[Attribute]) -> Vec<Attribute> {
    let is_inherited = |attribute: &&Attribute| ["cfg", "allow"].iter().any(|name| attribute.path().is_ident(name));
    attributes.iter().filter(is_inherited).cloned().collect()
}
