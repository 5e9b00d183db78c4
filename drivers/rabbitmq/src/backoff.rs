use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);

/// Waits that double from 100 ms to 30 s; each is between half and all of that, so that processes do not come together.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The next wait.
    pub(crate) fn next(&mut self) -> Duration {
        let whole = FIRST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        whole.mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    /// Starts again at the shortest wait.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_stay_below_the_longest() {
        let mut backoff = Backoff::default();
        assert!(backoff.next() <= FIRST);
        let last = (0..100).map(|_| backoff.next()).last();
        assert!(last.is_some_and(|wait| wait <= LONGEST && wait >= LONGEST / 2));
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }
}
