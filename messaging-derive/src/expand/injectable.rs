use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;

use super::{argument, site};
use crate::model::{Field, Injectable, Scope};

/// The implementation of `Injectable`; of a struct that was refused one that cannot be built.
pub(crate) fn injectable(injectable: &Injectable, is_valid: bool) -> TokenStream {
    let name = &injectable.name;
    let (generics, arguments, clause) = injectable.generics.split_for_impl();
    let lifetime = lifetime(injectable.scope);
    let keys =
        if is_valid { keys(&injectable.fields) } else { quote_spanned!(Span::mixed_site()=> ::std::vec::Vec::new()) };
    let resolver = argument("resolver", is_valid && injectable.fields.iter().any(|field| !field.default));
    let value =
        if is_valid { value(&injectable.fields) } else { quote_spanned!(Span::mixed_site()=> ::core::unreachable!()) };
    quote_spanned! {Span::mixed_site()=>
        #[automatically_derived]
        impl #generics ::messaging::__private::Injectable for #name #arguments #clause {
            const LIFETIME: ::messaging::__private::Lifetime = #lifetime;

            fn dependencies() -> ::std::vec::Vec<::messaging::__private::Key> {
                #keys
            }

            fn construct(
                #resolver: &mut ::messaging::__private::Resolver<'_>,
            ) -> ::core::result::Result<Self, ::messaging::__private::BoxError> {
                #value
            }
        }
    }
}

fn lifetime(scope: Scope) -> TokenStream {
    match scope {
        Scope::Singleton => quote_spanned!(Span::mixed_site()=> ::messaging::__private::Lifetime::Singleton),
        Scope::Request => quote_spanned!(Span::mixed_site()=> ::messaging::__private::Lifetime::Request),
    }
}

fn keys(fields: &[Field]) -> TokenStream {
    let pushes = fields.iter().filter(|field| !field.default).map(|field| {
        let (cfgs, ty) = (&field.cfgs, &field.ty);
        let dependency = quote_spanned!(site(ty)=> <#ty as ::messaging::__private::Dependency>::key());
        quote_spanned!(Span::mixed_site()=> #(#cfgs)* keys.push(#dependency);)
    });
    let pushes: Vec<_> = pushes.collect();
    if pushes.is_empty() {
        return quote_spanned!(Span::mixed_site()=> ::std::vec::Vec::new());
    }
    let count = pushes.len();
    quote_spanned! {Span::mixed_site()=>
        let mut keys = ::std::vec::Vec::with_capacity(#count);
        #(#pushes)*
        keys
    }
}

fn value(fields: &[Field]) -> TokenStream {
    let fields = fields.iter().map(|field| {
        let (cfgs, name, ty) = (&field.cfgs, &field.name, &field.ty);
        let value = if field.default {
            quote_spanned!(site(ty)=> <#ty as ::core::default::Default>::default())
        } else {
            let resolver = argument("resolver", true);
            quote_spanned!(site(ty)=> <#ty as ::messaging::__private::Dependency>::resolve(#resolver)?)
        };
        quote_spanned!(Span::mixed_site()=> #(#cfgs)* #name: #value)
    });
    quote_spanned!(Span::mixed_site()=> ::core::result::Result::Ok(Self { #(#fields),* }))
}
