use quote::ToTokens;
use syn::spanned::Spanned;
use syn::{FnArg, ReceiverKind, Safety, Signature, Type};

use crate::errors::Errors;
use crate::model::Method;

/// Checks the signature of a method with `#[on_message]`.
pub(crate) fn handler(method: &Method, errors: &mut Errors) {
    signature(method, "a handler", errors);
}

/// Checks the signature of a method with `#[on_error]`.
pub(crate) fn on_error(method: &Method, errors: &mut Errors) {
    signature(method, "`#[on_error]`", errors);
}

fn signature(method: &Method, what: &str, errors: &mut Errors) {
    takes_shared_self(&method.signature, what, errors);
    is_not_generic(&method.signature, what, errors);
    has_no_qualifiers(&method.signature, what, errors);
    has_no_impl_trait(method, what, errors);
}

fn takes_shared_self(signature: &Signature, what: &str, errors: &mut Errors) {
    let why = format!("{what} takes `&self`: one consumer is shared by all the messages it handles at once");
    match signature.inputs.first() {
        Some(FnArg::Receiver(receiver)) => match (&receiver.kind, &receiver.mutability) {
            (ReceiverKind::Reference(_, None, None), None) => {}
            (ReceiverKind::Reference(_, Some(lifetime), None), None) => {
                errors.on(lifetime, format!("{what} takes `&self`, without a lifetime"));
            }
            (ReceiverKind::Typed(_, ty), None) if is_shared_self(ty) => {}
            _ => errors.on(receiver, why),
        },
        Some(FnArg::Typed(_)) | None => errors.at(signature.ident.span(), why),
    }
}

/// Whether it is `&Self`.
fn is_shared_self(ty: &Type) -> bool {
    let Type::Reference(reference) = ty else { return false };
    let Type::Path(path) = &*reference.elem else { return false };
    reference.mutability.is_none() && path.path.is_ident("Self")
}

fn is_not_generic(signature: &Signature, what: &str, errors: &mut Errors) {
    if !signature.generics.params.is_empty() {
        errors.on(
            &signature.generics,
            format!("{what} cannot be generic: nothing says what to call it with; name the types"),
        );
    }
    if let Some(clause) = &signature.generics.where_clause {
        errors.on(clause, format!("{what} has no `where` clause; put it on the impl block"));
    }
}

fn has_no_qualifiers(signature: &Signature, what: &str, errors: &mut Errors) {
    if let Some(constness) = &signature.constness {
        errors.on(constness, format!("{what} cannot be `const`"));
    }
    if let Safety::Unsafe(unsafety) = &signature.safety {
        errors.on(unsafety, format!("{what} cannot be `unsafe`: the library calls it"));
    }
    if let Some(abi) = &signature.abi {
        errors.on(abi, format!("{what} cannot be `extern`"));
    }
    if let Some(variadic) = &signature.variadic {
        errors.on(variadic, format!("{what} cannot be variadic"));
    }
}

fn has_no_impl_trait(method: &Method, what: &str, errors: &mut Errors) {
    for param in &method.params {
        if has_keyword(param.ty.to_token_stream(), "impl") {
            errors.on(
                &param.ty,
                format!("{what} names the types of its parameters: `impl Trait` does not say what to make"),
            );
        }
    }
    if let Some(output) = method.output()
        && has_keyword(output.to_token_stream(), "impl")
    {
        errors.at(output.span(), format!("{what} names the type it returns; make it `async` to return a future"));
    }
}

fn has_keyword(tokens: proc_macro2::TokenStream, keyword: &str) -> bool {
    tokens.into_iter().any(|token| match token {
        proc_macro2::TokenTree::Ident(ident) => ident == keyword,
        proc_macro2::TokenTree::Group(group) => has_keyword(group.stream(), keyword),
        proc_macro2::TokenTree::Punct(_) | proc_macro2::TokenTree::Literal(_) => false,
    })
}
