//! The macros, on token streams that need no compiler.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote};
use syn::{DeriveInput, ImplItemFn, ItemImpl, ItemStruct};

use crate::errors::Errors;
use crate::model::{self, Block, Consumer, Injectable};
use crate::{check, expand};

pub(crate) fn injectable(item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let input: DeriveInput = match syn::parse2(item) {
        Ok(input) => input,
        Err(error) => return error.into_compile_error(),
    };
    let injectable = Injectable::derive(&input, &mut errors);
    let implementation = expand::injectable(&injectable, errors.is_empty());
    finish(&TokenStream::new(), &injectable.inherited, &implementation, errors)
}

pub(crate) fn consumer(args: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let mut input: ItemStruct = match syn::parse2(item.clone()) {
        Ok(input) => input,
        Err(_) => return refuse(&item, "`#[consumer]` belongs on a struct with named fields, or without fields"),
    };
    let consumer = Consumer::read(args, &mut input, &mut errors);
    let implementation = expand::consumer(&consumer, errors.is_empty());
    finish(&input.to_token_stream(), &consumer.injectable.inherited, &implementation, errors)
}

pub(crate) fn handlers(args: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let mut input: ItemImpl = match syn::parse2(item.clone()) {
        Ok(input) => input,
        Err(_) => return refuse(&item, "`#[handlers]` belongs on an impl block of a consumer"),
    };
    if !args.is_empty() {
        errors.on(args, "`#[handlers]` takes no options");
    }
    let block = Block::read(&mut input, &mut errors);
    if let Some((path, _)) = &input.trait_ {
        errors.on(
            path,
            "handlers are methods of the consumer itself: put `#[handlers]` on an impl block without a trait",
        );
        return finish(&input.to_token_stream(), &[], &TokenStream::new(), errors);
    }
    check::block(&block, &mut errors);
    let implementation = expand::handlers(&block, errors.is_empty());
    finish(&input.to_token_stream(), &block.inherited, &implementation, errors)
}

/// An attribute of a method outside an impl block with `#[handlers]`.
pub(crate) fn misplaced(name: &str, item: TokenStream) -> TokenStream {
    let message = format!("`#[{name}]` belongs on a method inside an impl block with `#[handlers]`");
    match syn::parse2::<ImplItemFn>(item.clone()) {
        Ok(mut method) => {
            // The others would say the same once more.
            model::strip(&mut method);
            refuse(&method.to_token_stream(), &message)
        }
        Err(_) => refuse(&item, &message),
    }
}

/// The item as it is, and a mistake at the attribute.
fn refuse(item: &TokenStream, message: &str) -> TokenStream {
    let error = syn::Error::new(Span::call_site(), message).into_compile_error();
    quote!(#item #error)
}

/// The user's item, the mistakes, and what is implemented for it.
fn finish(
    item: &TokenStream,
    inherited: &[syn::Attribute],
    implementation: &TokenStream,
    errors: Errors,
) -> TokenStream {
    let (errors, implementation) = (errors.into_tokens(), expand::hidden(inherited, implementation));
    quote!(#item #errors #implementation)
}
