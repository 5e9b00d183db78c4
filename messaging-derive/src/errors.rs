use std::fmt::Display;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// Every mistake that was found, so that all of them are reported at once.
#[derive(Debug, Default)]
pub(crate) struct Errors(Option<syn::Error>);

impl Errors {
    /// Reports a mistake at one token.
    pub(crate) fn at(&mut self, span: Span, message: impl Display) {
        self.push(syn::Error::new(span, message));
    }

    /// Reports a mistake on the whole of some tokens.
    pub(crate) fn on(&mut self, tokens: impl ToTokens, message: impl Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    /// Reports that one token does not go with an earlier one, and marks both.
    pub(crate) fn conflict(&mut self, span: Span, message: impl Display, other: Span, other_message: impl Display) {
        self.at(span, message);
        self.at(other, other_message);
    }

    pub(crate) fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The mistakes as `compile_error!` calls.
    pub(crate) fn into_tokens(self) -> TokenStream {
        self.0.map(syn::Error::into_compile_error).unwrap_or_default()
    }
}
