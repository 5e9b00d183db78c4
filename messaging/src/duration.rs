//! Durations as people write them.

use std::time::Duration;

const UNITS: [(u128, &str); 5] = [
    (86_400_000_000_000, "d"),
    (3_600_000_000_000, "h"),
    (60_000_000_000, "min"),
    (1_000_000_000, "s"),
    (1_000_000, "ms"),
];

/// A thousand years; whatever is longer is a number that saturated.
const ENDLESS: Duration = Duration::from_secs(1_000 * 365 * 86_400);

/// `90s` as `1min 30s`; below a millisecond nothing is shown but `0s`.
pub(crate) fn human(duration: Duration) -> String {
    if duration > ENDLESS {
        return "more than 1000 years".into();
    }
    let mut left = duration.as_nanos();
    let mut parts = Vec::new();
    for (size, unit) in UNITS {
        if left >= size {
            parts.push(format!("{}{unit}", left / size));
            left %= size;
        }
    }
    if parts.is_empty() { "0s".into() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_like_the_ones_in_an_attribute() {
        assert_eq!(human(Duration::ZERO), "0s");
        assert_eq!(human(Duration::from_millis(250)), "250ms");
        assert_eq!(human(Duration::from_millis(1_500)), "1s 500ms");
        assert_eq!(human(Duration::from_secs(43_140)), "11h 59min");
        assert_eq!(human(Duration::from_millis(u64::from(u32::MAX))), "49d 17h 2min 47s 295ms");
        assert_eq!(human(Duration::MAX), "more than 1000 years");
    }
}
