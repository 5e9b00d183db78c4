use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::Type;

use super::{argument, site};
use crate::model::{Method, Param, ParamKind};

/// What the parameters take from the scope: a `fn(&mut Vec<Key>)`.
pub(crate) fn requires(method: &Method) -> TokenStream {
    let takes = method.params.iter().filter(|param| matches!(param.kind, ParamKind::Message)).map(|param| {
        let (ty, keys) = (&param.ty, argument("keys", true));
        quote_spanned!(site(ty)=> <#ty as ::messaging::__private::FromMessage<'_>>::requires(#keys);)
    });
    let takes: Vec<_> = takes.collect();
    let keys = argument("keys", !takes.is_empty());
    quote_spanned!(Span::mixed_site()=> |#keys| { #(#takes)* })
}

/// What a method with `#[on_message]` does: a `Run`.
pub(crate) fn run(method: &Method) -> TokenStream {
    let call = call(method, "HandlerResult", "into_outcome");
    let context = argument("context", needs_context(method));
    quote_spanned!(site(method.name())=> |consumer, #context| ::std::boxed::Box::pin(async move { #call }))
}

/// What a method with `#[on_error]` does: a `RunOnError`.
pub(crate) fn run_on_error(method: &Method) -> TokenStream {
    let call = call(method, "OnErrorResult", "into_answer");
    let needs_failure = method.params.iter().any(|param| matches!(param.kind, ParamKind::Failure));
    let (failure, context) = (argument("failure", needs_failure), argument("context", needs_context(method)));
    quote_spanned!(site(method.name())=> |consumer, #failure, #context| ::std::boxed::Box::pin(async move { #call }))
}

fn needs_context(method: &Method) -> bool {
    method.params.iter().any(|param| !matches!(param.kind, ParamKind::Failure))
}

/// Takes the parameters from the message, calls the method, and converts what it returns.
fn call(method: &Method, conversion: &str, convert: &str) -> TokenStream {
    let names: Vec<_> =
        (0..method.params.len()).map(|index| format_ident!("parameter_{index}", span = Span::mixed_site())).collect();
    let takes = method.params.iter().zip(&names).map(|(param, name)| take(param, name));
    let name = method.name();
    let wait = method.signature.asyncness.map(|_| quote_spanned!(Span::mixed_site()=> .await));
    let run = quote_spanned!(Span::mixed_site()=> Self::#name(consumer, #(#names),*) #wait);
    let conversion = Ident::new(conversion, Span::mixed_site());
    let convert = Ident::new(convert, Span::mixed_site());
    let output = match method.output() {
        Some(ty) => ty.to_token_stream(),
        None => quote_spanned!(Span::mixed_site()=> ()),
    };
    let result = quote_spanned! {site(&output)=>
        <#output as ::messaging::__private::#conversion>::#convert(#run)
    };
    quote_spanned!(Span::mixed_site()=> #(#takes)* #result)
}

fn take(param: &Param, name: &Ident) -> TokenStream {
    let ty = &param.ty;
    let context = argument("context", true);
    let value = match &param.kind {
        ParamKind::Message => from_message(ty, &context),
        ParamKind::Header(header) => quote_spanned! {site(ty)=> {
            let name: &str = #header;
            <#ty as ::messaging::__private::FromHeader<'_>>::from_header(name, #context.message().headers.get(name))?
        }},
        ParamKind::Failure => quote_spanned!(site(ty)=> failure),
    };
    quote_spanned!(Span::mixed_site()=> let #name = #value;)
}

/// Takes a parameter by its type.
///
/// The whole expression stands where the type stands, so that the compiler reports a missing `FromMessage` once: there.
fn from_message(ty: &Type, context: &TokenStream) -> TokenStream {
    let mut spans = ty.to_token_stream().into_iter().map(|token| token.span());
    let start = spans.next().unwrap_or_else(Span::mixed_site);
    let end = spans.last().unwrap_or(start);
    let function = quote_spanned!(start=> <#ty as ::messaging::__private::FromMessage<'_>>::from_message);
    let arguments = quote_spanned!(end=> (#context));
    let wait = quote_spanned!(start=> .await);
    quote_spanned!(site(ty)=> #function #arguments #wait?)
}
