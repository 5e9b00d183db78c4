use std::time::Duration;

use proc_macro2::{Ident, Span};
use quote::ToTokens;
use syn::{Attribute, FnArg, Generics, ImplItem, ImplItemFn, ItemImpl, ReturnType, Signature, Type};

use super::retry::Retry;
use crate::args::{self, Arg, Options, Value};
use crate::errors::Errors;

/// The attributes of methods that `#[handlers]` takes.
const ON_METHODS: [&str; 3] = ["on_message", "retry", "on_error"];

/// An impl block with `#[handlers]`.
pub(crate) struct Block {
    pub(crate) cfgs: Vec<Attribute>,
    pub(crate) generics: Generics,
    pub(crate) ty: Type,
    pub(crate) handlers: Vec<Handler>,
    pub(crate) on_errors: Vec<OnErrorMethod>,
}

/// A method with `#[on_message]`.
pub(crate) struct Handler {
    /// Where the attribute stands.
    pub(crate) span: Span,
    pub(crate) method: Method,
    /// `None` is the default handler, and a type that was refused is none either.
    pub(crate) pattern: Option<Value<String>>,
    pub(crate) is_default: bool,
    pub(crate) timeout: Option<Value<Duration>>,
    pub(crate) retry: Option<Retry>,
}

/// A method with `#[on_error]`.
pub(crate) struct OnErrorMethod {
    /// Where the attribute stands.
    pub(crate) span: Span,
    pub(crate) method: Method,
}

/// How a method is called.
pub(crate) struct Method {
    pub(crate) cfgs: Vec<Attribute>,
    pub(crate) signature: Signature,
    pub(crate) params: Vec<Param>,
}

/// A parameter after `&self`.
pub(crate) struct Param {
    pub(crate) ty: Type,
    pub(crate) kind: ParamKind,
}

/// Where a parameter comes from.
pub(crate) enum ParamKind {
    /// The message, by its type.
    Message,
    /// The header of that name.
    Header(Value<String>),
    /// The failure that `#[on_error]` is told.
    Failure,
}

impl Block {
    /// Reads an impl block, and takes our attributes out of it.
    pub(crate) fn read(item: &mut ItemImpl, errors: &mut Errors) -> Self {
        let mut block = Self {
            cfgs: super::cfgs(&item.attrs),
            generics: item.generics.clone(),
            ty: (*item.self_ty).clone(),
            handlers: Vec::new(),
            on_errors: Vec::new(),
        };
        for item in &mut item.items {
            if let ImplItem::Fn(method) = item {
                block.method(method, errors);
                strip(method);
            }
        }
        block
    }

    fn method(&mut self, item: &ImplItemFn, errors: &mut Errors) {
        let of = |name| item.attrs.iter().filter(move |attribute| args::is(attribute, name));
        let on_message = only(of("on_message"), "a method handles one type or pattern", errors);
        let retry = only(of("retry"), "a handler has one retry policy", errors);
        let on_error = only(of("on_error"), "once is enough", errors);
        match (on_message, on_error) {
            (Some(attribute), on_error) => {
                if let Some(on_error) = on_error {
                    errors.conflict(
                        args::span(on_error),
                        "a method is `#[on_message]` or `#[on_error]`, not both",
                        args::span(attribute),
                        "it handles messages already",
                    );
                }
                let retry = retry.map(|attribute| Retry::read(attribute, errors));
                self.handlers.push(Handler::read(attribute, item, retry, errors));
                return;
            }
            (None, Some(attribute)) => {
                args::refuse_any(attribute, errors);
                let method = Method::read(item, true, errors);
                self.on_errors.push(OnErrorMethod { span: args::span(attribute), method });
            }
            (None, None) => refuse_headers(item, errors),
        }
        if let Some(retry) = retry {
            errors.at(args::span(retry), "`#[retry]` is for handlers: add `#[on_message]` to the method, or remove it");
        }
    }
}

/// The attribute, where there is one; a second one is reported.
fn only<'a>(
    mut attributes: impl Iterator<Item = &'a Attribute>,
    why: &str,
    errors: &mut Errors,
) -> Option<&'a Attribute> {
    let first = attributes.next()?;
    for second in attributes {
        errors.conflict(args::span(second), format!("a second one: {why}"), args::span(first), "the first one is here");
    }
    Some(first)
}

/// Takes our attributes out of a method.
pub(crate) fn strip(method: &mut ImplItemFn) {
    method.attrs.retain(|attribute| !ON_METHODS.iter().any(|name| args::is(attribute, name)));
    for input in &mut method.sig.inputs {
        attributes(input).retain(|attribute| !args::is(attribute, "header"));
    }
}

fn attributes(input: &mut FnArg) -> &mut Vec<Attribute> {
    match input {
        FnArg::Receiver(receiver) => &mut receiver.attrs,
        FnArg::Typed(typed) => &mut typed.attrs,
    }
}

fn refuse_headers(item: &ImplItemFn, errors: &mut Errors) {
    for input in &item.sig.inputs {
        let (FnArg::Receiver(syn::Receiver { attrs, .. }) | FnArg::Typed(syn::PatType { attrs, .. })) = input;
        for attribute in attrs.iter().filter(|attribute| args::is(attribute, "header")) {
            errors.on(attribute, "`#[header]` is for parameters of `#[on_message]` and `#[on_error]` methods");
        }
    }
}

impl Handler {
    fn read(attribute: &Attribute, item: &ImplItemFn, retry: Option<Retry>, errors: &mut Errors) -> Self {
        let mut handler = Self {
            span: args::span(attribute),
            method: Method::read(item, false, errors),
            pattern: None,
            is_default: true,
            timeout: None,
            retry,
        };
        let mut options = Options::new("on_message", &["\"type or pattern\"", "timeout = …"]);
        for arg in args::read(args::of(attribute, errors), errors) {
            match arg {
                Arg::Bare(pattern) if handler.is_default => {
                    handler.is_default = false;
                    let empty = "the type is empty; leave it out for the default handler";
                    handler.pattern = args::text(pattern, "the type", empty, errors);
                }
                Arg::Value(key, timeout) if key == "timeout" => {
                    if options.first(&key, errors) {
                        handler.timeout = args::time(timeout, errors);
                    }
                }
                arg @ (Arg::Bare(_) | Arg::Value(..) | Arg::List(..)) => options.refuse(arg, errors),
            }
        }
        handler
    }
}

impl Method {
    fn read(item: &ImplItemFn, on_error: bool, errors: &mut Errors) -> Self {
        let mut params = Vec::new();
        for input in &item.sig.inputs {
            if let FnArg::Typed(typed) = input {
                let kind = ParamKind::read(&typed.attrs, &typed.ty, on_error, errors);
                params.push(Param { ty: (*typed.ty).clone(), kind });
            }
        }
        Self { cfgs: super::cfgs(&item.attrs), signature: item.sig.clone(), params }
    }

    pub(crate) fn name(&self) -> &Ident {
        &self.signature.ident
    }

    /// What it returns, where the type is written and can be named.
    pub(crate) fn output(&self) -> Option<&Type> {
        match &self.signature.output {
            ReturnType::Default => None,
            ReturnType::Type(_, ty) => Some(ty),
        }
    }
}

impl ParamKind {
    fn read(attributes: &[Attribute], ty: &Type, on_error: bool, errors: &mut Errors) -> Self {
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")) {
            errors.on(attribute, "a parameter of a handler is there or not: put the `#[cfg]` on the whole method");
        }
        let headers = attributes.iter().filter(|attribute| args::is(attribute, "header"));
        if let Some(attribute) = only(headers, "a parameter is one header", errors) {
            return match Self::header(attribute, errors) {
                Some(name) => Self::Header(name),
                None => Self::Message,
            };
        }
        if on_error && is_failure(ty) { Self::Failure } else { Self::Message }
    }

    fn header(attribute: &Attribute, errors: &mut Errors) -> Option<Value<String>> {
        let tokens = args::of(attribute, errors);
        let whole = attribute.to_token_stream();
        let mut args = args::read(tokens, errors).into_iter();
        match (args.next(), args.next()) {
            (Some(Arg::Bare(name)), None) => {
                args::text(name, "the header's name", "the header's name is empty", errors)
            }
            _ => {
                errors.on(whole, "which header? write `#[header(\"tenant\")]`");
                None
            }
        }
    }
}

/// Whether it is `&Failure`, by the last name of its path.
fn is_failure(ty: &Type) -> bool {
    let Type::Reference(reference) = ty else { return false };
    let Type::Path(path) = &*reference.elem else { return false };
    path.path.segments.last().is_some_and(|segment| segment.ident == "Failure")
}
