use proc_macro2::{Span, TokenStream};
use quote::quote_spanned;

use super::{injectable, site};
use crate::model::{Consumer, DeadLetter};

/// The implementations of a consumer; one that was refused is never registered.
pub(crate) fn consumer(consumer: &Consumer, is_valid: bool) -> TokenStream {
    let injectable = injectable(&consumer.injectable, is_valid);
    let implementation = implementation(consumer, is_valid);
    let is_generic = !consumer.injectable.generics.params.is_empty();
    let registration = (is_valid && !is_generic).then(|| registration(consumer));
    quote_spanned! {Span::mixed_site()=>
        #injectable
        #implementation
        #registration
    }
}

fn implementation(consumer: &Consumer, is_valid: bool) -> TokenStream {
    let name = &consumer.injectable.name;
    let (generics, arguments, clause) = consumer.injectable.generics.split_for_impl();
    let declaration =
        if is_valid { declaration(consumer) } else { quote_spanned!(Span::mixed_site()=> ::core::unreachable!()) };
    quote_spanned! {Span::mixed_site()=>
        #[automatically_derived]
        impl #generics ::messaging::__private::Consumer for #name #arguments #clause {
            fn declaration() -> ::messaging::__private::Declaration {
                #declaration
            }
        }
    }
}

fn declaration(consumer: &Consumer) -> TokenStream {
    let queue = consumer.queue.as_ref().map(|queue| {
        // Bound to its type first: an error then points at the expression.
        quote_spanned!(site(queue)=> { let queue: &str = #queue; queue })
    });
    let concurrency = consumer.concurrency.as_ref().map(|count| quote_spanned!(site(count)=> .concurrency(#count)));
    let dead_letter = consumer.dead_letter.as_ref().map(|dead_letter| match dead_letter {
        DeadLetter::None => {
            quote_spanned!(Span::mixed_site()=> .dead_letter(::messaging::__private::DeadLetter::None))
        }
        DeadLetter::Queue(queue) => quote_spanned! {site(queue)=>
            .dead_letter(::messaging::__private::DeadLetter::Queue(
                <::std::string::String as ::core::convert::From<&str>>::from(#queue)
            ))
        },
    });
    let driver = consumer.driver.iter().map(|options| quote_spanned!(site(options)=> .driver(#options)));
    quote_spanned! {Span::mixed_site()=>
        ::messaging::__private::Declaration::new(#queue) #concurrency #dead_letter #(#driver)*
    }
}

/// Where `.discover()` finds it.
fn registration(consumer: &Consumer) -> TokenStream {
    let name = &consumer.injectable.name;
    quote_spanned! {Span::mixed_site()=>
        #[::messaging::__private::linkme::distributed_slice(::messaging::__private::CONSUMERS)]
        #[linkme(crate = ::messaging::__private::linkme)]
        static CONSUMER: fn() -> ::messaging::__private::Registration = ::messaging::__private::registration::<#name>;
    }
}
