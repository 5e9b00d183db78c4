//! The lines that say whether a budget is kept.

/// Says whether `measured` is within `limit`, to two digits.
pub fn line(name: &str, measured: f64, limit: f64) -> String {
    let measured = (measured * 100.0).round() / 100.0;
    let verdict = if measured <= limit { "ok" } else { "over" };
    format!("budget {name} {measured:.2} <= {limit:.2} {verdict}")
}

/// The middle of what was measured; of an even number the mean of both in the middle.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}
