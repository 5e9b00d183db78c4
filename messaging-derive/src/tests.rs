//! The macros on token streams: what they write, and that they report everything and keep the user's item.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{ImplItem, Item};

use crate::macros;

fn items(tokens: TokenStream) -> Vec<Item> {
    syn::parse2::<syn::File>(tokens).expect("the macros write items").items
}

/// The texts of the `compile_error!` calls.
fn mistakes(tokens: &TokenStream) -> Vec<String> {
    let mut mistakes = Vec::new();
    for item in items(tokens.clone()) {
        if let Item::Macro(call) = item {
            assert!(call.mac.path.segments.last().is_some_and(|last| last.ident == "compile_error"));
            mistakes.push(syn::parse2::<syn::LitStr>(call.mac.tokens).expect("a text").value());
        }
    }
    mistakes
}

fn handlers(methods: TokenStream) -> TokenStream {
    macros::handlers(TokenStream::new(), quote! { impl Orders { #methods } })
}

#[test]
fn a_consumer_keeps_its_struct_and_loses_our_attributes() {
    let written = macros::consumer(
        quote!("orders"),
        quote! {
            /// Documented.
            #[derive(Debug)]
            pub struct Orders {
                #[inject(default)]
                #[doc = "kept"]
                count: u64,
            }
        },
    );
    let expected: Item = syn::parse_quote! {
        /// Documented.
        #[derive(Debug)]
        pub struct Orders {
            #[doc = "kept"]
            count: u64,
        }
    };
    let items = items(written);
    assert_eq!(quote!(#expected).to_string(), {
        let item = &items[0];
        quote!(#item).to_string()
    });
    assert!(matches!(items[1..], [Item::Const(_)]));
}

#[test]
fn a_refused_consumer_is_still_there_and_implements_the_traits() {
    let written = macros::consumer(
        quote!(concurrency = 0),
        quote!(
            struct Orders(u32);
        ),
    );
    assert_eq!(mistakes(&written).len(), 3);
    let text = written.to_string();
    assert!(text.starts_with("struct Orders (u32) ;"), "{text}");
    for name in ["Injectable for Orders", "Consumer for Orders"] {
        assert!(text.contains(name), "{name} is not in {text}");
    }
    assert!(!text.contains("distributed_slice"));
}

#[test]
fn only_a_consumer_without_parameters_is_registered() {
    let registers = |item| macros::consumer(quote!("orders"), item).to_string().contains("distributed_slice");
    assert!(registers(quote!(
        struct Orders;
    )));
    assert!(!registers(quote!(
        struct Orders<T> {
            value: Arc<T>,
        }
    )));
    assert!(!registers(quote!(
        struct Orders<const N: usize>;
    )));
}

#[test]
fn handlers_keep_their_impl_block_and_lose_our_attributes() {
    let written = handlers(quote! {
        #[inline]
        #[on_message("a")]
        #[messaging::retry(attempts = 2)]
        async fn on_a(&self, #[header("x")] x: u32) {}

        #[other::retry]
        fn helper(&self) {}
    });
    let items = items(written);
    let Item::Impl(block) = &items[0] else { panic!("the impl block comes first") };
    let mut attributes = Vec::new();
    for item in &block.items {
        let ImplItem::Fn(method) = item else { panic!("only methods were there") };
        attributes.extend(method.attrs.iter().map(|attribute| quote!(#attribute).to_string()));
    }
    assert_eq!(attributes, ["# [inline]", "# [other :: retry]"]);
    assert!(!quote!(#block).to_string().contains("header"));
}

#[test]
fn the_cfg_of_a_method_is_copied_to_its_entry() {
    let written = handlers(quote! {
        #[cfg(feature = "audit")]
        #[on_message]
        async fn on_any(&self) {}
    });
    assert_eq!(mistakes(&written), [""; 0]);
    assert!(written.to_string().contains("# [cfg (feature = \"audit\")] let table"), "{written}");
}

#[test]
fn handlers_with_a_cfg_are_not_compared() {
    let cases = [
        quote! { #[cfg(a)] #[on_message] fn one(&self) {} #[cfg(b)] #[on_message] fn other(&self) {} },
        quote! { #[on_message("a")] fn one(&self) {} #[cfg(b)] #[on_message("a")] fn other(&self) {} },
        quote! { #[on_message("a*")] fn one(&self) {} #[cfg(b)] #[on_message("*a")] fn other(&self) {} },
        quote! { #[on_message] fn one(&self) {} #[on_error] fn a(&self) {} #[cfg(b)] #[on_error] fn b(&self) {} },
    ];
    for case in cases {
        assert_eq!(mistakes(&handlers(case.clone())), [""; 0], "{case}");
    }
}

#[test]
fn constants_are_not_compared() {
    let written = handlers(quote! {
        #[on_message(A)]
        #[retry(attempts = MANY, delay = LONG, max_delay = 1ms)]
        fn one(&self) {}

        #[on_message(A)]
        fn other(&self) {}
    });
    assert_eq!(mistakes(&written), [""; 0]);
}

#[test]
fn a_literal_duration_becomes_seconds_and_nanoseconds() {
    let written = handlers(quote! { #[on_message("a", timeout = 1.5s)] fn on_a(&self) {} }).to_string();
    assert!(written.contains("Duration :: new (1u64 , 500000000u32)"), "{written}");
}

#[test]
fn a_single_attempt_has_a_short_form() {
    let written = handlers(quote! { #[on_message("a")] #[retry(false)] fn on_a(&self) {} }).to_string();
    assert!(written.contains("RetryPolicy :: none ()"), "{written}");
}

#[test]
fn a_parameter_is_told_from_the_failure_by_its_last_name() {
    let written = handlers(quote! {
        #[on_message]
        fn on_any(&self) {}

        #[on_error]
        fn on_failure(&self, first: &messaging::Failure, second: Failure) {}
    });
    let written = written.to_string();
    assert!(!written.contains("< & messaging :: Failure as"), "{written}");
    assert!(written.contains("< Failure as :: messaging :: __private :: FromMessage"), "{written}");
}

#[test]
fn refused_handlers_leave_an_empty_table() {
    let written = handlers(quote! { #[on_message] #[retry] fn on_any(self) {} });
    assert_eq!(mistakes(&written).len(), 2);
    assert!(written.to_string().contains("Handlers for Orders"));
    assert!(!written.to_string().contains("HandlerEntry"));
}

#[test]
fn a_misplaced_attribute_keeps_the_method_and_takes_the_others_along() {
    let method = quote! {
        #[inline]
        #[retry(attempts = 5)]
        fn on_any(&self, #[header("a")] a: u32) {}
    };
    let written = macros::misplaced("on_message", method).to_string();
    assert!(written.starts_with("# [inline] fn on_any (& self , a : u32) { }"), "{written}");
    assert_eq!(written.matches("compile_error").count(), 1);
}

#[test]
fn what_is_no_item_of_the_right_kind_is_kept_as_it_is() {
    let item = quote!(
        enum Orders {
            One,
        }
    );
    for written in [
        macros::consumer(quote!("orders"), item.clone()),
        macros::handlers(TokenStream::new(), item.clone()),
        macros::misplaced("retry", item.clone()),
    ] {
        assert!(written.to_string().starts_with(&item.to_string()));
        assert_eq!(mistakes(&written).len(), 1);
    }
}
