use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;
use syn::Type;
use syn::ext::IdentExt;

use super::{methods, site};
use crate::model::{Backoff, Block, Handler, OnErrorMethod, Retry};

/// The implementation of `Handlers`; of a block that was refused one with an empty table.
pub(crate) fn handlers(block: &Block, is_valid: bool) -> TokenStream {
    let ty = &block.ty;
    let (generics, _, clause) = block.generics.split_for_impl();
    let (mut entries, mut on_errors) = (Vec::new(), Vec::new());
    if is_valid {
        entries.extend(block.handlers.iter().map(entry));
        on_errors.extend(block.on_errors.iter().map(on_error));
    }
    quote_spanned! {Span::mixed_site()=>
        #[automatically_derived]
        impl #generics ::messaging::__private::Handlers for #ty #clause {
            fn table() -> ::messaging::__private::HandlerTable<Self> {
                let table = ::messaging::__private::HandlerTable::new();
                #(#entries)*
                #(#on_errors)*
                table
            }
        }
    }
}

fn entry(handler: &Handler) -> TokenStream {
    let cfgs = &handler.method.cfgs;
    let name = handler.method.name().unraw().to_string();
    let (requires, run) = (methods::requires(&handler.method), methods::run(&handler.method));
    let pattern = handler.pattern.as_ref().map(|pattern| quote_spanned!(site(pattern)=> .pattern(#pattern)));
    let retry = handler.retry.as_ref().map(retry);
    let timeout = handler.timeout.as_ref().map(|timeout| quote_spanned!(site(timeout)=> .timeout(#timeout)));
    quote_spanned! {Span::mixed_site()=>
        #(#cfgs)*
        let table = table.handler(
            ::messaging::__private::HandlerEntry::new(#name, #requires, #run) #pattern #retry #timeout
        );
    }
}

fn on_error(on_error: &OnErrorMethod) -> TokenStream {
    let cfgs = &on_error.method.cfgs;
    let (requires, run) = (methods::requires(&on_error.method), methods::run_on_error(&on_error.method));
    quote_spanned! {Span::mixed_site()=>
        #(#cfgs)*
        let table = table.on_error(#requires, #run);
    }
}

fn retry(retry: &Retry) -> TokenStream {
    let policy = match &retry.attempts {
        Some(attempts) => quote_spanned!(site(attempts)=> ::messaging::__private::RetryPolicy::new(#attempts)),
        None => quote_spanned!(Span::mixed_site()=> ::messaging::__private::RetryPolicy::none()),
    };
    let backoff = retry.backoff.map(|backoff| match backoff {
        Backoff::Exponential => {
            quote_spanned!(Span::mixed_site()=> .backoff(::messaging::__private::Backoff::Exponential))
        }
        Backoff::Fixed => quote_spanned!(Span::mixed_site()=> .backoff(::messaging::__private::Backoff::Fixed)),
    });
    let delay = retry.delay.as_ref().map(|delay| quote_spanned!(site(delay)=> .delay(#delay)));
    let max_delay = retry.max_delay.as_ref().map(|delay| quote_spanned!(site(delay)=> .max_delay(#delay)));
    let jitter = retry.jitter.as_ref().map(|jitter| quote_spanned!(site(jitter)=> .jitter(#jitter)));
    let filter = filter(retry);
    quote_spanned!(Span::mixed_site()=> .retry(#policy #backoff #delay #max_delay #jitter) #filter)
}

fn filter(retry: &Retry) -> Option<TokenStream> {
    if retry.on.is_empty() && retry.never.is_empty() {
        return None;
    }
    let (on, never) = (predicate(&retry.on), predicate(&retry.never));
    Some(quote_spanned! {Span::mixed_site()=>
        .filter(::messaging::__private::RetryFilter { on: #on, never: #never })
    })
}

/// Whether a failure is of one of some types.
fn predicate(types: &[Type]) -> TokenStream {
    if types.is_empty() {
        return quote_spanned!(Span::mixed_site()=> ::core::option::Option::None);
    }
    let checks = types.iter().map(|ty| quote_spanned!(site(ty)=> ::messaging::__private::Failure::is::<#ty>(failure)));
    quote_spanned!(Span::mixed_site()=> ::core::option::Option::Some(|failure| #(#checks)||*))
}
