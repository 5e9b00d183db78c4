use proc_macro2::Ident;
use syn::{Attribute, FnArg, ImplItemFn, ReturnType, Signature, Type};

use crate::args::{self, Arg, Value};
use crate::errors::Errors;

/// How a method is called.
pub(crate) struct Method {
    pub(crate) cfgs: Vec<Attribute>,
    pub(crate) signature: Signature,
    pub(crate) params: Vec<Param>,
}

/// A parameter after `&self`.
pub(crate) struct Param {
    pub(crate) ty: Type,
    pub(crate) kind: ParamKind,
}

/// Where a parameter comes from.
pub(crate) enum ParamKind {
    /// The message, by its type.
    Message,
    /// The header of that name.
    Header(Value<String>),
    /// The failure that `#[on_error]` is told.
    Failure,
}

impl Method {
    pub(super) fn read(item: &ImplItemFn, on_error: bool, errors: &mut Errors) -> Self {
        let mut params = Vec::new();
        for input in &item.sig.inputs {
            if let FnArg::Typed(typed) = input {
                let kind = ParamKind::read(&typed.attrs, &typed.ty, on_error, errors);
                params.push(Param { ty: (*typed.ty).clone(), kind });
            }
        }
        Self { cfgs: super::cfgs(&item.attrs), signature: item.sig.clone(), params }
    }

    pub(crate) fn name(&self) -> &Ident {
        &self.signature.ident
    }

    /// What it returns, where the type is written and can be named.
    pub(crate) fn output(&self) -> Option<&Type> {
        match &self.signature.output {
            ReturnType::Default => None,
            ReturnType::Type(_, ty) => Some(ty),
        }
    }
}

impl ParamKind {
    fn read(attributes: &[Attribute], ty: &Type, on_error: bool, errors: &mut Errors) -> Self {
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")) {
            errors.on(attribute, "a parameter of a handler is there or not: put the `#[cfg]` on the whole method");
        }
        let headers = attributes.iter().filter(|attribute| args::is(attribute, "header"));
        if let Some(attribute) = only(headers, "a parameter is one header", errors) {
            return match Self::header(attribute, errors) {
                Some(name) => Self::Header(name),
                None => Self::Message,
            };
        }
        if on_error && is_failure(ty) { Self::Failure } else { Self::Message }
    }

    fn header(attribute: &Attribute, errors: &mut Errors) -> Option<Value<String>> {
        let mut args = args::of(attribute, errors)?.into_iter();
        match (args.next(), args.next()) {
            (Some(Arg::Bare(name)), None) => args::text(
                name,
                "the header's name",
                "the header's name is empty; name one: `#[header(\"tenant\")]`",
                errors,
            ),
            _ => {
                errors.on(attribute, "which header? write `#[header(\"tenant\")]`");
                None
            }
        }
    }
}

/// Whether it is `&Failure`, by the last name of its path.
fn is_failure(ty: &Type) -> bool {
    let Type::Reference(reference) = ty else { return false };
    let Type::Path(path) = &*reference.elem else { return false };
    path.path.segments.last().is_some_and(|segment| segment.ident == "Failure")
}

/// Reports `#[header]` in a method that is no handler.
pub(super) fn refuse_headers(item: &ImplItemFn, errors: &mut Errors) {
    for input in &item.sig.inputs {
        let (FnArg::Receiver(syn::Receiver { attrs, .. }) | FnArg::Typed(syn::PatType { attrs, .. })) = input;
        for attribute in attrs.iter().filter(|attribute| args::is(attribute, "header")) {
            errors.on(attribute, "`#[header]` is for parameters of `#[on_message]` and `#[on_error]` methods");
        }
    }
}

/// The attribute, where there is one; a second one is reported.
pub(super) fn only<'a>(
    mut attributes: impl Iterator<Item = &'a Attribute>,
    why: &str,
    errors: &mut Errors,
) -> Option<&'a Attribute> {
    let first = attributes.next()?;
    for second in attributes {
        let message = format!("a second `#[{}]`: {why}", args::name(second));
        errors.conflict(args::span(second), message, args::span(first), "the first one is here");
    }
    Some(first)
}
