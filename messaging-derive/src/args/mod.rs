//! Reads the arguments of an attribute: `"orders", concurrency = 10, options(A, B)`.

mod duration;
mod value;

pub(crate) use duration::time;
pub(crate) use value::{Operand, Value, count, ratio, text, word};

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Expr, Meta, Token};

use crate::errors::Errors;

/// One argument of an attribute.
pub(crate) enum Arg {
    /// `"orders"`
    Bare(Operand),
    /// `concurrency = 10`
    Value(Ident, Operand),
    /// `options(A, B)`
    List(Ident, TokenStream),
}

/// Reads arguments; one that cannot be read is reported and passed over.
pub(crate) fn read(tokens: TokenStream, errors: &mut Errors) -> Vec<Arg> {
    let mut args = Vec::new();
    let all = |input: ParseStream<'_>| {
        while !input.is_empty() {
            match arg(input) {
                Ok(arg) => args.push(arg),
                Err(error) => errors.push(error),
            }
            if !input.is_empty() && !input.peek(Token![,]) {
                errors.at(input.span(), "expected `,` before the next argument");
                while !input.is_empty() && !input.peek(Token![,]) {
                    input.parse::<TokenTree>()?;
                }
            }
            input.parse::<Option<Token![,]>>()?;
        }
        Ok(())
    };
    if let Err(error) = all.parse2(tokens) {
        errors.push(error);
    }
    args
}

fn arg(input: ParseStream<'_>) -> syn::Result<Arg> {
    if input.peek(syn::Ident::peek_any) && input.peek2(Token![=]) {
        let key = input.call(Ident::parse_any)?;
        input.parse::<Token![=]>()?;
        if input.is_empty() || input.peek(Token![,]) {
            return Err(syn::Error::new(key.span(), format!("`{key}` has no value")));
        }
        return Ok(Arg::Value(key, value(input)?));
    }
    if input.peek(syn::Ident::peek_any) && input.peek2(syn::token::Paren) {
        let key = input.call(Ident::parse_any)?;
        let content;
        syn::parenthesized!(content in input);
        return Ok(Arg::List(key, content.parse()?));
    }
    Ok(Arg::Bare(value(input)?))
}

/// An expression; what cannot be read is passed over, so that it is reported once.
fn value(input: ParseStream<'_>) -> syn::Result<Operand> {
    input.parse::<Expr>().map(Operand::of).inspect_err(|_| {
        while !input.is_empty() && !input.peek(Token![,]) {
            if input.parse::<TokenTree>().is_err() {
                break;
            }
        }
    })
}

/// Reads the arguments of an attribute; `None` where it is written with `=`, which is reported.
pub(crate) fn of(attribute: &Attribute, errors: &mut Errors) -> Option<Vec<Arg>> {
    match &attribute.meta {
        Meta::Path(_) => Some(Vec::new()),
        Meta::List(list) => Some(read(list.tokens.clone(), errors)),
        Meta::NameValue(pair) => {
            errors.on(pair, format!("write `#[{}(…)]`", name(attribute)));
            None
        }
    }
}

/// Whether it is one of our attributes, also with the path of the crate.
pub(crate) fn is(attribute: &Attribute, name: &str) -> bool {
    let segments = &attribute.path().segments;
    match segments.len() {
        1 => segments[0].ident == name,
        2 => segments[0].ident == "messaging" && segments[1].ident == name,
        _ => false,
    }
}

/// Where the name of an attribute stands.
pub(crate) fn span(attribute: &Attribute) -> Span {
    attribute.path().segments.last().map_or_else(Span::call_site, |segment| segment.ident.span())
}

/// The name of an attribute.
pub(crate) fn name(attribute: &Attribute) -> String {
    attribute.path().segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
}

/// Reports an attribute that has arguments and takes none.
pub(crate) fn refuse_any(attribute: &Attribute, errors: &mut Errors) {
    let message = format!("`#[{}]` takes no options", name(attribute));
    match &attribute.meta {
        Meta::Path(_) => {}
        Meta::List(list) if list.tokens.is_empty() => {}
        Meta::List(list) => errors.on(&list.tokens, message),
        Meta::NameValue(pair) => errors.on(pair, message),
    }
}

/// The options that an attribute takes, by their shapes (`delay = …`, `on(…)`), and those that were given.
pub(crate) struct Options {
    attribute: &'static str,
    shapes: &'static [&'static str],
    seen: Vec<Ident>,
}

impl Options {
    pub(crate) fn new(attribute: &'static str, shapes: &'static [&'static str]) -> Self {
        Self { attribute, shapes, seen: Vec::new() }
    }

    /// Whether an option is given for the first time; a second time is reported.
    pub(crate) fn first(&mut self, key: &Ident, errors: &mut Errors) -> bool {
        if let Some(earlier) = self.seen.iter().find(|earlier| *earlier == key) {
            let other = earlier.span();
            errors.conflict(key.span(), format!("`{key}` is given twice"), other, "it is given here already");
            return false;
        }
        self.seen.push(key.clone());
        true
    }

    /// Reports an argument that means nothing, and says what is possible.
    pub(crate) fn refuse(&self, arg: Arg, errors: &mut Errors) {
        let (attribute, possible) = (self.attribute, self.shapes.join("`, `"));
        match arg {
            Arg::Bare(operand) => {
                let message = match operand.word().and_then(|word| self.shape(word)) {
                    Some(shape) => format!("write `{shape}`"),
                    None => format!("`#[{attribute}]` has no place for this; possible: `{possible}`"),
                };
                errors.on(operand, message);
            }
            Arg::Value(key, _) | Arg::List(key, _) => {
                let message = match self.shape(&key) {
                    Some(shape) => format!("write `{shape}`"),
                    None => format!("`#[{attribute}]` has no option `{key}`; possible: `{possible}`"),
                };
                errors.at(key.span(), message);
            }
        }
    }

    /// Whether it is the name of an option.
    pub(crate) fn has(&self, operand: &Operand) -> bool {
        operand.word().is_some_and(|word| self.shape(word).is_some())
    }

    fn shape(&self, key: &Ident) -> Option<&str> {
        let mut shapes = self.shapes.iter().copied();
        shapes.find(|shape| shape.split([' ', '(']).next() == Some(&key.to_string()))
    }
}
