use std::time::Duration;

use proc_macro2::{Ident, Span, TokenStream};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::{Attribute, Lit, Token, Type};

use crate::args::{self, Arg, Operand, Options, Value};
use crate::errors::Errors;

/// `#[retry(…)]`.
pub(crate) struct Retry {
    /// Where the attribute stands.
    pub(crate) span: Span,
    /// `None` is a single attempt.
    pub(crate) attempts: Option<Value<u32>>,
    pub(crate) backoff: Option<Backoff>,
    pub(crate) delay: Option<Value<Duration>>,
    pub(crate) max_delay: Option<Value<Duration>>,
    pub(crate) jitter: Option<Value<f64>>,
    pub(crate) on: Vec<Type>,
    pub(crate) never: Vec<Type>,
}

/// How the delay grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backoff {
    Exponential,
    Fixed,
}

impl Retry {
    pub(crate) fn read(attribute: &Attribute, errors: &mut Errors) -> Self {
        let span = args::span(attribute);
        let mut retry = Self {
            span,
            attempts: None,
            backoff: None,
            delay: None,
            max_delay: None,
            jitter: None,
            on: Vec::new(),
            never: Vec::new(),
        };
        let Some(args) = args::of(attribute, errors) else { return retry };
        if let [Arg::Bare(Operand::Literal(Lit::Bool(bool)))] = &args[..] {
            if bool.value {
                errors.at(bool.span, "how many attempts? write `#[retry(attempts = 5)]`; the first delivery counts");
            }
            return retry;
        }
        retry.options(args, errors);
        retry
    }

    fn options(&mut self, args: Vec<Arg>, errors: &mut Errors) {
        let mut options = Options::new(
            "retry",
            &[
                "attempts = …",
                "backoff = exponential | fixed",
                "delay = …",
                "max_delay = …",
                "jitter = …",
                "on(…)",
                "never(…)",
            ],
        );
        // Also when it is refused for another reason.
        let mut has_attempts = false;
        for arg in args {
            has_attempts |= match &arg {
                Arg::Value(key, _) | Arg::List(key, _) => key == "attempts",
                Arg::Bare(_) => true,
            };
            let known = match &arg {
                Arg::Value(key, _) => {
                    ["attempts", "backoff", "delay", "max_delay", "jitter"].iter().any(|known| key == known)
                }
                Arg::List(key, _) => ["on", "never"].iter().any(|known| key == known),
                Arg::Bare(_) => false,
            };
            match arg {
                Arg::Value(key, operand) if known => {
                    if options.first(&key, errors) {
                        self.set(&key.to_string(), operand, errors);
                    }
                }
                Arg::List(key, tokens) if known => {
                    if options.first(&key, errors) {
                        let types = types(&key, tokens, errors);
                        if key == "on" { self.on = types } else { self.never = types }
                    }
                }
                arg @ (Arg::Bare(_) | Arg::Value(..) | Arg::List(..)) => options.refuse(arg, errors),
            }
        }
        if !has_attempts {
            errors.at(
                self.span,
                "how many attempts? write `#[retry(attempts = 5, …)]`, the first delivery counts; `#[retry(false)]` is a single one",
            );
        }
    }

    fn set(&mut self, key: &str, operand: Operand, errors: &mut Errors) {
        match key {
            "attempts" => {
                let zero = "attempts is 0, and the first delivery counts; `attempts = 1` or `#[retry(false)]` is a single attempt";
                self.attempts = args::count(operand, "`attempts`", zero, errors);
            }
            "backoff" => {
                self.backoff = args::word(operand, "`backoff`", &["exponential", "fixed"], errors)
                    .map(|index| if index == 0 { Backoff::Exponential } else { Backoff::Fixed });
            }
            "delay" => self.delay = args::time(operand, errors),
            "max_delay" => self.max_delay = args::time(operand, errors),
            _ => self.jitter = args::ratio(operand, "`jitter`", errors),
        }
    }
}

fn types(key: &Ident, tokens: TokenStream, errors: &mut Errors) -> Vec<Type> {
    match Punctuated::<Type, Token![,]>::parse_terminated.parse2(tokens) {
        Ok(types) if types.is_empty() => errors.at(key.span(), "name at least one error type, or leave it out"),
        Ok(types) => return types.into_iter().collect(),
        Err(error) => errors.at(error.span(), format!("`{key}` takes error types: `{key}(std::io::Error)`")),
    }
    Vec::new()
}
