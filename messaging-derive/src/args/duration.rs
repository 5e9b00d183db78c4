use std::time::Duration;

use proc_macro2::Span;
use syn::Lit;

use super::value::{Operand, Value};
use crate::errors::Errors;

/// The units of a duration, in nanoseconds.
const UNITS: [(&str, u128); 5] = [
    ("ms", 1_000_000),
    ("s", NANOS_PER_SECOND),
    ("min", 60 * NANOS_PER_SECOND),
    ("h", 3_600 * NANOS_PER_SECOND),
    ("d", 86_400 * NANOS_PER_SECOND),
];

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// A duration with its unit (`250ms`, `1.5s`, `1min`, `2h`, `1d`), or a constant.
pub(crate) fn time(operand: Operand, errors: &mut Errors) -> Option<Value<Duration>> {
    match operand {
        Operand::Literal(Lit::Int(number)) => read(&number.token().to_string(), number.span(), errors),
        Operand::Literal(Lit::Float(number)) => read(&number.token().to_string(), number.span(), errors),
        Operand::Literal(Lit::Str(text)) => {
            errors.at(text.span(), "a duration stands without quotes: `250ms`, `1.5s`, `1min`, `2h`, `1d`");
            None
        }
        Operand::Literal(other) => {
            errors.on(other, "not a duration: write `250ms`, `1.5s`, `1min`, `2h` or `1d`, or the path of a constant");
            None
        }
        Operand::Unary(negative) => {
            errors.on(negative, "a duration cannot be negative");
            None
        }
        Operand::Other(expr) => Some(Value::Constant(expr)),
    }
}

fn read(text: &str, span: Span, errors: &mut Errors) -> Option<Value<Duration>> {
    match parse(text) {
        Ok(duration) => Some(Value::Literal(duration, span)),
        Err(message) => {
            errors.at(span, message);
            None
        }
    }
}

/// Reads the text of a number literal with a unit as its suffix.
fn parse(text: &str) -> Result<Duration, String> {
    let text = text.replace('_', "");
    if ["0x", "0o", "0b"].iter().any(|prefix| text.starts_with(prefix)) {
        return Err("a duration is a decimal number with a unit: `30s`".into());
    }
    let end = text.find(|character: char| !(character.is_ascii_digit() || character == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let mut after = unit.chars();
    if matches!(after.next(), Some('e' | 'E')) && after.next().is_some_and(|next| "+-0123456789".contains(next)) {
        return Err("a duration has no exponent: write the number out, with a unit".into());
    }
    let nanos = match UNITS.iter().find(|(known, _)| *known == unit) {
        Some((_, nanos)) => *nanos,
        None if unit.is_empty() => {
            return Err(format!("say the unit: `{number}ms`, `{number}s`, `{number}min`, `{number}h` or `{number}d`"));
        }
        None if unit == "m" => return Err(format!("`m`: min or ms? write `{number}min` or `{number}ms`")),
        None => return Err(format!("no unit `{unit}`; possible: `ms`, `s`, `min`, `h`, `d`")),
    };
    scale(number, nanos)
}

/// A decimal number of a unit.
fn scale(number: &str, unit: u128) -> Result<Duration, String> {
    let long = || "a duration that long does not fit".to_owned();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u128 = whole.parse().map_err(|_| long())?;
    let mut nanos = whole.checked_mul(unit).ok_or_else(long)?;
    let mut digit_unit = unit;
    for digit in fraction.trim_end_matches('0').bytes() {
        if !digit_unit.is_multiple_of(10) {
            return Err("a duration is in whole nanoseconds".into());
        }
        digit_unit /= 10;
        nanos = nanos.checked_add(u128::from(digit - b'0') * digit_unit).ok_or_else(long)?;
    }
    let seconds = u64::try_from(nanos / NANOS_PER_SECOND).map_err(|_| long())?;
    let rest = u32::try_from(nanos % NANOS_PER_SECOND).map_err(|_| long())?;
    Ok(Duration::new(seconds, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_with_a_unit_are_read() {
        for (text, millis) in [
            ("250ms", 250),
            ("1s", 1_000),
            ("1.5s", 1_500),
            ("1_500ms", 1_500),
            ("1min", 60_000),
            ("0.5min", 30_000),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
            ("0s", 0),
            ("007s", 7_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(parse("0.000001ms"), Ok(Duration::from_nanos(1)));
    }

    #[test]
    fn what_is_no_duration_is_refused_and_says_why() {
        for (text, part) in [
            ("1m", "`m`: min or ms? write `1min` or `1ms`"),
            ("30", "say the unit: `30ms`, `30s`"),
            ("1.5", "say the unit"),
            ("1sec", "no unit `sec`; possible: `ms`"),
            ("1us", "no unit `us`"),
            ("1S", "no unit `S`"),
            ("1e3s", "no exponent"),
            ("1E3s", "no exponent"),
            ("1e-3s", "no exponent"),
            ("1.5e3s", "no exponent"),
            ("0x1s", "decimal"),
            ("0b1s", "decimal"),
            ("0o1s", "decimal"),
            ("0x1d", "decimal"),
            ("18446744073709551616s", "does not fit"),
            ("99999999999999999999999999999999999999999d", "does not fit"),
            ("0.0000000001s", "whole nanoseconds"),
        ] {
            let message = parse(text).expect_err(text);
            assert!(message.contains(part), "{text}: {message}");
        }
    }
}
