// The enums of syn are open, and only a few of their many variants can be a value.
#![allow(clippy::wildcard_enum_match_arm)]

use std::time::Duration;

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Expr, ExprUnary, Lit};

use crate::errors::Errors;

/// What an option is set to.
pub(crate) enum Value<T> {
    /// A literal, known while the macro runs.
    Literal(T, Span),
    /// The path of a constant, or an expression: only the compiler knows it.
    Constant(Box<Expr>),
}

impl<T> Value<T> {
    /// The literal and its place.
    pub(crate) fn literal(&self) -> Option<(&T, Span)> {
        match self {
            Self::Literal(value, span) => Some((value, *span)),
            Self::Constant(_) => None,
        }
    }
}

/// A value that can be written as tokens.
pub(crate) trait Tokens {
    fn tokens(&self, span: Span) -> TokenStream;
}

impl<T: Tokens> ToTokens for Value<T> {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Literal(value, span) => tokens.extend(value.tokens(*span)),
            Self::Constant(expr) => expr.to_tokens(tokens),
        }
    }
}

fn spanned(mut literal: Literal, span: Span) -> TokenStream {
    literal.set_span(span);
    quote!(#literal)
}

impl Tokens for String {
    fn tokens(&self, span: Span) -> TokenStream {
        spanned(Literal::string(self), span)
    }
}

impl Tokens for u32 {
    fn tokens(&self, span: Span) -> TokenStream {
        spanned(Literal::u32_unsuffixed(*self), span)
    }
}

impl Tokens for f64 {
    fn tokens(&self, span: Span) -> TokenStream {
        spanned(Literal::f64_unsuffixed(*self), span)
    }
}

impl Tokens for Duration {
    fn tokens(&self, span: Span) -> TokenStream {
        let (secs, nanos) = (self.as_secs(), self.subsec_nanos());
        let site = Span::mixed_site().located_at(span);
        quote_spanned!(site=> ::core::time::Duration::new(#secs, #nanos))
    }
}

/// An expression, by what an option can do with it.
pub(crate) enum Operand {
    Literal(Lit),
    /// `-1`, `!true`
    Unary(ExprUnary),
    /// The path of a constant, or a real expression.
    Other(Box<Expr>),
}

impl Operand {
    /// Looks through the invisible groups that `macro_rules!` puts around an expression, and through parentheses.
    pub(crate) fn of(mut expr: Expr) -> Self {
        loop {
            expr = match expr {
                Expr::Group(group) => *group.expr,
                Expr::Paren(paren) => *paren.expr,
                Expr::Lit(literal) => return Self::Literal(literal.lit),
                Expr::Unary(unary) => return Self::Unary(unary),
                other => return Self::Other(Box::new(other)),
            }
        }
    }

    /// The word that it is.
    pub(crate) fn word(&self) -> Option<&Ident> {
        match self {
            Self::Literal(_) | Self::Unary(_) => None,
            Self::Other(expr) => match &**expr {
                Expr::Path(path) => path.path.get_ident(),
                _ => None,
            },
        }
    }
}

impl ToTokens for Operand {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        match self {
            Self::Literal(literal) => literal.to_tokens(tokens),
            Self::Unary(unary) => unary.to_tokens(tokens),
            Self::Other(expr) => expr.to_tokens(tokens),
        }
    }
}

/// Text: a string, or a constant. `empty` says what is wrong with an empty one.
pub(crate) fn text(operand: Operand, what: &str, empty: &str, errors: &mut Errors) -> Option<Value<String>> {
    let message = format!("{what} is text: a string, or the path of a `&str` constant");
    match operand {
        Operand::Literal(Lit::Str(text)) if text.value().is_empty() => errors.at(text.span(), empty),
        Operand::Literal(Lit::Str(text)) => return Some(Value::Literal(text.value(), text.span())),
        Operand::Literal(other) => errors.on(other, message),
        Operand::Unary(other) => errors.on(other, message),
        Operand::Other(expr) => return Some(Value::Constant(expr)),
    }
    None
}

/// A number from 1, or a constant. `zero` says what is wrong with 0.
pub(crate) fn count(operand: Operand, what: &str, zero: &str, errors: &mut Errors) -> Option<Value<u32>> {
    let message = format!("{what} is a whole number from 1, or the path of a constant");
    match operand {
        Operand::Literal(Lit::Int(number)) if number.suffix().is_empty() => match number.base10_parse() {
            Ok(0) => errors.at(number.span(), zero),
            Ok(value) => return Some(Value::Literal(value, number.span())),
            Err(_) => errors.at(number.span(), format!("{what} is at most {}", u32::MAX)),
        },
        Operand::Literal(other) => errors.on(other, message),
        Operand::Unary(other) => errors.on(other, message),
        Operand::Other(expr) => return Some(Value::Constant(expr)),
    }
    None
}

/// A number from 0 to 1, or a constant.
pub(crate) fn ratio(operand: Operand, what: &str, errors: &mut Errors) -> Option<Value<f64>> {
    let message = format!("{what} is a number from 0 to 1, the part of a delay that may be added to it");
    let literal = match operand {
        Operand::Literal(literal) => literal,
        Operand::Unary(other) => {
            errors.on(other, message);
            return None;
        }
        Operand::Other(expr) => return Some(Value::Constant(expr)),
    };
    let number: Option<f64> = match &literal {
        Lit::Float(number) if number.suffix().is_empty() => number.base10_parse().ok(),
        Lit::Int(number) if number.suffix().is_empty() => number.base10_parse().ok(),
        _ => None,
    };
    match number {
        Some(value) if (0.0..=1.0).contains(&value) => Some(Value::Literal(value, literal.span())),
        Some(_) | None => {
            errors.on(literal, message);
            None
        }
    }
}

/// One of some words, with or without quotes: its index.
pub(crate) fn word(operand: Operand, what: &str, words: &[&str], errors: &mut Errors) -> Option<usize> {
    let word = match &operand {
        Operand::Literal(Lit::Str(text)) => Some(text.value()),
        Operand::Literal(_) | Operand::Unary(_) => None,
        Operand::Other(_) => operand.word().map(ToString::to_string),
    };
    let found = words.iter().position(|known| Some(*known) == word.as_deref());
    if found.is_none() {
        errors.on(operand, format!("{what} is one of `{}`", words.join("`, `")));
    }
    found
}
