//! Writes the implementations; everything is named through `::messaging::__private`.

mod consumer;
mod handlers;
mod injectable;
mod methods;

pub(crate) use consumer::consumer;
pub(crate) use handlers::handlers;
pub(crate) use injectable::injectable;

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::Attribute;
use syn::spanned::Spanned;

/// Generated code at the place of the user's tokens, so that the compiler's errors are shown there.
fn site(tokens: &impl Spanned) -> Span {
    Span::mixed_site().located_at(tokens.span())
}

/// Puts implementations where their names bother nobody.
pub(crate) fn hidden(inherited: &[Attribute], items: &TokenStream) -> TokenStream {
    quote! {
        #(#inherited)*
        const _: () = { #items };
    }
}

/// `|keys| { … }` or `|_| {}`: a body that may not need its argument.
fn argument(name: &str, used: bool) -> TokenStream {
    let site = Span::mixed_site();
    if used {
        let name = proc_macro2::Ident::new(name, site);
        quote!(#name)
    } else {
        quote_spanned!(site=> _)
    }
}
