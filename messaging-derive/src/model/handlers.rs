use std::time::Duration;

use proc_macro2::Span;
use syn::{Attribute, FnArg, Generics, ImplItem, ImplItemFn, ItemImpl, Type};

use super::method::{Method, only, refuse_headers};
use super::retry::Retry;
use crate::args::{self, Arg, Options, Value};
use crate::errors::Errors;

/// The attributes of methods that `#[handlers]` takes.
const ON_METHODS: [&str; 3] = ["on_message", "retry", "on_error"];

/// An impl block with `#[handlers]`.
pub(crate) struct Block {
    pub(crate) inherited: Vec<Attribute>,
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

impl Block {
    /// Reads an impl block, and takes our attributes out of it.
    pub(crate) fn read(item: &mut ItemImpl, errors: &mut Errors) -> Self {
        let mut block = Self {
            inherited: super::inherited(&item.attrs),
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
        for arg in args::of(attribute, errors).unwrap_or_default() {
            match arg {
                Arg::Bare(pattern) if handler.is_default && !options.has(&pattern) => {
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
