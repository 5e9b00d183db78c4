//! The macros of the `messaging` crate; use them through it.

mod args;
mod check;
mod errors;
mod expand;
mod macros;
mod model;
mod pattern;

use proc_macro::TokenStream;

/// Lets the container build a struct from its fields.
#[proc_macro_derive(Injectable, attributes(injectable, inject))]
pub fn injectable(item: TokenStream) -> TokenStream {
    macros::injectable(item.into()).into()
}

/// Declares a struct as the consumer of a queue.
#[proc_macro_attribute]
pub fn consumer(args: TokenStream, item: TokenStream) -> TokenStream {
    macros::consumer(args.into(), item.into()).into()
}

/// Makes handlers of the methods of an impl block.
#[proc_macro_attribute]
pub fn handlers(args: TokenStream, item: TokenStream) -> TokenStream {
    macros::handlers(args.into(), item.into()).into()
}

/// Handles messages of a type.
#[proc_macro_attribute]
pub fn on_message(_args: TokenStream, item: TokenStream) -> TokenStream {
    macros::misplaced("on_message", item.into()).into()
}

/// Says how a handler is retried.
#[proc_macro_attribute]
pub fn retry(_args: TokenStream, item: TokenStream) -> TokenStream {
    macros::misplaced("retry", item.into()).into()
}

/// Is called when a message will not be retried any more.
#[proc_macro_attribute]
pub fn on_error(_args: TokenStream, item: TokenStream) -> TokenStream {
    macros::misplaced("on_error", item.into()).into()
}
