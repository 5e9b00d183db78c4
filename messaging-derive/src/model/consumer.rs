use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Attribute, Expr, ItemStruct, Lit, Meta, Path, Token};

use super::injectable::{Injectable, Scope};
use crate::args::{self, Arg, Operand, Options, Value};
use crate::errors::Errors;

/// A struct with `#[consumer]`.
pub(crate) struct Consumer {
    pub(crate) injectable: Injectable,
    pub(crate) queue: Option<Value<String>>,
    pub(crate) concurrency: Option<Value<u32>>,
    pub(crate) dead_letter: Option<DeadLetter>,
    pub(crate) driver: Vec<Expr>,
}

/// Where its dead letters go.
pub(crate) enum DeadLetter {
    None,
    Queue(Value<String>),
}

impl Consumer {
    /// Reads the arguments of `#[consumer]` and the struct, and takes the attributes of fields out of it.
    pub(crate) fn read(args: TokenStream, item: &mut ItemStruct, errors: &mut Errors) -> Self {
        let mut consumer = Self {
            injectable: Injectable {
                inherited: super::inherited(&item.attrs),
                name: item.ident.clone(),
                generics: item.generics.clone(),
                scope: Scope::default(),
                fields: Injectable::fields(&item.ident, &item.fields, errors),
            },
            queue: None,
            concurrency: None,
            dead_letter: None,
            driver: Vec::new(),
        };
        consumer.options(args, errors);
        for field in &mut item.fields {
            field.attrs.retain(|attribute| !args::is(attribute, "inject"));
        }
        for attribute in item.attrs.extract_if(.., |attribute| args::is(attribute, "injectable")) {
            errors.on(attribute, "a consumer says its scope in `#[consumer(…, scope = \"request\")]`");
        }
        for attribute in item.attrs.iter_mut().filter(|attribute| attribute.path().is_ident("derive")) {
            refuse_derive(attribute, errors);
        }
        consumer
    }

    fn options(&mut self, args: TokenStream, errors: &mut Errors) {
        let mut options = Options::new(
            "consumer",
            &["queue = …", "concurrency = …", "scope = \"request\" | \"singleton\"", "dead_letter = …", "options(…)"],
        );
        // Where the queue is named, also when the name is refused.
        let mut queue: Option<Span> = None;
        for arg in args::read(args, errors) {
            match arg {
                Arg::Bare(name) if queue.is_none() && is_queue(&name) && !options.has(&name) => {
                    self.queue(name.span(), name, &mut queue, errors)
                }
                Arg::Value(key, operand) if key == "queue" => self.queue(key.span(), operand, &mut queue, errors),
                Arg::Value(key, operand) if key == "concurrency" => {
                    if options.first(&key, errors) {
                        let zero = "concurrency is 0, so nothing would be consumed; say 1 or more, or leave it out";
                        self.concurrency = args::count(operand, "`concurrency`", zero, errors);
                    }
                }
                Arg::Value(key, operand) if key == "scope" => {
                    if options.first(&key, errors) {
                        self.injectable.scope = Scope::read(operand, errors).unwrap_or_default();
                    }
                }
                Arg::Value(key, operand) if key == "dead_letter" => {
                    if options.first(&key, errors) {
                        self.dead_letter = DeadLetter::read(operand, errors);
                    }
                }
                Arg::List(key, tokens) if key == "options" => {
                    if options.first(&key, errors) {
                        self.driver(key.span(), tokens, errors);
                    }
                }
                arg @ (Arg::Bare(_) | Arg::Value(..) | Arg::List(..)) => options.refuse(arg, errors),
            }
        }
        if queue.is_none() {
            errors.at(Span::call_site(), "which queue? write `#[consumer(\"orders\")]`");
        }
    }

    fn queue(&mut self, span: Span, name: Operand, seen: &mut Option<Span>, errors: &mut Errors) {
        if let Some(other) = *seen {
            errors.conflict(span, "the queue is named twice", other, "it is named here already");
            return;
        }
        *seen = Some(span);
        self.queue =
            args::text(name, "the queue", "the queue's name is empty; name one: `#[consumer(\"orders\")]`", errors);
    }

    fn driver(&mut self, span: Span, tokens: TokenStream, errors: &mut Errors) {
        match Punctuated::<Expr, Token![,]>::parse_terminated.parse2(tokens) {
            Ok(list) if list.is_empty() => {
                errors.at(span, "`options` is empty: put the drivers' options into it, or leave it out")
            }
            Ok(list) => self.driver = list.into_iter().collect(),
            Err(error) => errors.push(error),
        }
    }
}

/// Reports a second `Injectable`, and takes it out.
fn refuse_derive(attribute: &mut Attribute, errors: &mut Errors) {
    let Meta::List(list) = &mut attribute.meta else { return };
    // What is no list of paths is for the compiler to report.
    let Ok(derives) = Punctuated::<Path, Token![,]>::parse_terminated.parse2(list.tokens.clone()) else { return };
    let is_ours = |path: &Path| path.segments.last().is_some_and(|segment| segment.ident == "Injectable");
    let (ours, others): (Vec<_>, Vec<_>) = derives.into_iter().partition(is_ours);
    for path in ours {
        errors.on(path, "`#[consumer]` derives it already: remove it");
        list.tokens = quote!(#(#others),*);
    }
}

/// Whether an argument without a key can be the queue's name: a literal, or the path of a constant.
fn is_queue(operand: &Operand) -> bool {
    match operand {
        Operand::Literal(_) => true,
        Operand::Unary(_) => false,
        Operand::Other(expr) => matches!(**expr, Expr::Path(_)),
    }
}

impl DeadLetter {
    fn read(operand: Operand, errors: &mut Errors) -> Option<Self> {
        match operand {
            Operand::Literal(Lit::Bool(bool)) if !bool.value => Some(Self::None),
            Operand::Literal(Lit::Bool(bool)) => {
                errors.at(bool.span, "dead letters are on where nothing is said: leave it out, or name the queue");
                None
            }
            name @ (Operand::Literal(_) | Operand::Unary(_) | Operand::Other(_)) => {
                let empty = "the queue's name is empty; `dead_letter = false` is for none";
                args::text(name, "`dead_letter`", empty, errors).map(Self::Queue)
            }
        }
    }
}
