use std::time::Duration;

use crate::errors::Errors;
use crate::model::{Block, Handler, Method, Retry};
use crate::pattern::Pattern;

use super::methods;

/// The delay where `#[retry]` says none.
const DEFAULT_DELAY: Duration = Duration::from_secs(1);

/// Checks an impl block with `#[handlers]`.
pub(crate) fn block(block: &Block, errors: &mut Errors) {
    for handler in &block.handlers {
        methods::handler(&handler.method, errors);
        timeout_is_not_zero(handler, errors);
        if let Some(retry) = &handler.retry {
            max_delay_is_not_below_delay(retry, errors);
        }
    }
    for on_error in &block.on_errors {
        methods::on_error(&on_error.method, errors);
    }
    some_handler(block, errors);
    one_on_error(block, errors);
    // Which of those with a `#[cfg]` exist is not known here; boot checks them.
    let handlers: Vec<_> = block.handlers.iter().filter(|handler| handler.method.cfgs.is_empty()).collect();
    for (position, handler) in handlers.iter().enumerate() {
        for earlier in &handlers[..position] {
            one_default(earlier, handler, errors);
            equal_types(earlier, handler, errors);
            ambiguous_patterns(earlier, handler, errors);
        }
    }
}

fn some_handler(block: &Block, errors: &mut Errors) {
    if block.handlers.is_empty() {
        errors.on(&block.ty, "no handlers: put `#[on_message]` or `#[on_message(\"type\")]` on at least one method");
    }
}

fn one_on_error(block: &Block, errors: &mut Errors) {
    let mut all = block.on_errors.iter().filter(|on_error| on_error.method.cfgs.is_empty());
    let Some(first) = all.next() else { return };
    for second in all {
        errors.conflict(
            second.span,
            "a second `#[on_error]`: a consumer has one",
            first.span,
            format!("`{}` is the first one", first.method.name()),
        );
    }
}

fn one_default(earlier: &Handler, handler: &Handler, errors: &mut Errors) {
    if earlier.is_default && handler.is_default {
        errors.conflict(
            handler.span,
            "a second default handler: give one of the two a type",
            earlier.span,
            is_here(&earlier.method, "is the default handler"),
        );
    }
}

fn equal_types(earlier: &Handler, handler: &Handler, errors: &mut Errors) {
    let (Some((ours, span)), Some((theirs, other))) = (literal(handler), literal(earlier)) else { return };
    if Pattern::new(ours) == Pattern::new(theirs) {
        errors.conflict(
            span,
            format!("`{ours}` has a handler already: give one of the two a type of its own"),
            other,
            is_here(&earlier.method, &format!("handles `{theirs}`")),
        );
    }
}

fn ambiguous_patterns(earlier: &Handler, handler: &Handler, errors: &mut Errors) {
    let (Some((ours, span)), Some((theirs, other))) = (literal(handler), literal(earlier)) else { return };
    if Pattern::new(ours).is_ambiguous_with(&Pattern::new(theirs)) {
        errors.conflict(
            span,
            format!(
                "some types match both `{ours}` and `{theirs}`, and neither is the more specific: narrow one of the two"
            ),
            other,
            is_here(&earlier.method, &format!("handles `{theirs}`")),
        );
    }
}

fn literal(handler: &Handler) -> Option<(&str, proc_macro2::Span)> {
    let (text, span) = handler.pattern.as_ref()?.literal()?;
    Some((text, span))
}

fn is_here(method: &Method, what: &str) -> String {
    format!("`{}` {what}", method.name())
}

fn timeout_is_not_zero(handler: &Handler, errors: &mut Errors) {
    if let Some((timeout, span)) = handler.timeout.as_ref().and_then(|timeout| timeout.literal())
        && timeout.is_zero()
    {
        errors.at(span, "timeout is 0, so every run would fail; leave it out for none");
    }
}

fn max_delay_is_not_below_delay(retry: &Retry, errors: &mut Errors) {
    let Some((longest, span)) = retry.max_delay.as_ref().and_then(|delay| delay.literal()) else { return };
    match &retry.delay {
        None if *longest < DEFAULT_DELAY => {
            errors.at(span, "`max_delay` is below the delay, which is 1s where none is given: set `delay` as well");
        }
        None => {}
        Some(delay) => {
            if let Some((delay, other)) = delay.literal()
                && longest < delay
            {
                errors.conflict(span, "`max_delay` is below `delay`: raise it", other, "or lower `delay`");
            }
        }
    }
}
