use proc_macro2::{Ident, Span};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Fields, Generics, Type};

use crate::args::{self, Arg, Operand, Options};
use crate::errors::Errors;

/// How long an instance lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    #[default]
    Singleton,
    Request,
}

impl Scope {
    pub(crate) fn read(operand: Operand, errors: &mut Errors) -> Option<Self> {
        match args::word(operand, "`scope`", &["request", "singleton"], errors)? {
            0 => Some(Self::Request),
            _ => Some(Self::Singleton),
        }
    }
}

/// A struct that the container builds.
pub(crate) struct Injectable {
    pub(crate) inherited: Vec<Attribute>,
    pub(crate) name: Ident,
    pub(crate) generics: Generics,
    pub(crate) scope: Scope,
    pub(crate) fields: Vec<Field>,
}

/// One of its fields.
pub(crate) struct Field {
    pub(crate) cfgs: Vec<Attribute>,
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    /// Set to its default, not injected.
    pub(crate) default: bool,
}

impl Injectable {
    /// Reads the input of `#[derive(Injectable)]`.
    pub(crate) fn derive(input: &DeriveInput, errors: &mut Errors) -> Self {
        let fields = match &input.data {
            Data::Struct(data) => Self::fields(&input.ident, &data.fields, errors),
            Data::Enum(data) => {
                errors.at(
                    data.enum_token.span,
                    "`Injectable` is for structs; provide an enum with `.value(…)` or `.factory(…)`",
                );
                Vec::new()
            }
            Data::Union(data) => {
                errors.at(
                    data.union_token.span,
                    "`Injectable` is for structs; provide a union with `.value(…)` or `.factory(…)`",
                );
                Vec::new()
            }
        };
        let mut scope = None;
        let mut options = Options::new("injectable", &["scope = \"request\" | \"singleton\""]);
        for attribute in input.attrs.iter().filter(|attribute| args::is(attribute, "injectable")) {
            let Some(args) = args::of(attribute, errors) else { continue };
            if args.is_empty() {
                errors.on(attribute, "say the scope: `#[injectable(scope = \"request\")]`, or leave the attribute out");
            }
            for arg in args {
                match arg {
                    Arg::Value(key, operand) if key == "scope" => {
                        if options.first(&key, errors) {
                            scope = Scope::read(operand, errors);
                        }
                    }
                    arg @ (Arg::Bare(_) | Arg::Value(..) | Arg::List(..)) => options.refuse(arg, errors),
                }
            }
        }
        Self {
            inherited: super::inherited(&input.attrs),
            name: input.ident.clone(),
            generics: input.generics.clone(),
            scope: scope.unwrap_or_default(),
            fields,
        }
    }

    /// Reads the fields of a struct.
    pub(crate) fn fields(name: &Ident, fields: &Fields, errors: &mut Errors) -> Vec<Field> {
        if let Fields::Unnamed(unnamed) = fields {
            errors.on(
                unnamed,
                format!("name the fields: `struct {name} {{ … }}`; a tuple struct does not say what is injected"),
            );
            return Vec::new();
        }
        fields.iter().filter_map(|field| Field::read(field, errors)).collect()
    }
}

impl Field {
    fn read(field: &syn::Field, errors: &mut Errors) -> Option<Self> {
        let mut default: Option<Span> = None;
        let options = Options::new("inject", &["default"]);
        for attribute in field.attrs.iter().filter(|attribute| args::is(attribute, "inject")) {
            let Some(args) = args::of(attribute, errors) else { continue };
            if args.is_empty() {
                errors.on(attribute, "write `#[inject(default)]`; a field is injected without an attribute");
            }
            for arg in args {
                match arg {
                    Arg::Bare(word) if options.has(&word) => {
                        let span = word.span();
                        if let Some(other) = default.replace(span) {
                            errors.conflict(span, "`default` is given twice", other, "it is given here already");
                        }
                    }
                    arg @ (Arg::Bare(_) | Arg::Value(..) | Arg::List(..)) => options.refuse(arg, errors),
                }
            }
        }
        Some(Self {
            cfgs: super::cfgs(&field.attrs),
            name: field.ident.clone()?,
            ty: field.ty.clone(),
            default: default.is_some(),
        })
    }
}
