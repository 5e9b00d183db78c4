//! Backoff, jitter and plans.

use crate::*;

fn backoffs() -> impl Strategy<Value = Backoff> {
    prop_oneof![Just(Backoff::Fixed), Just(Backoff::Exponential)]
}

fn policies() -> impl Strategy<Value = RetryPolicy> {
    let attempts = prop_oneof![1_u32..12, Just(200), Just(u32::MAX)];
    let jitter = prop_oneof![Just(0.0), 0.0..=1.0];
    (attempts, backoffs(), durations(), proptest::option::of(durations()), jitter).prop_map(
        |(attempts, backoff, delay, max_delay, jitter)| {
            let policy = RetryPolicy::new(attempts).backoff(backoff).delay(delay).jitter(jitter);
            max_delay.map_or(policy, |max_delay| policy.max_delay(max_delay.max(delay)))
        },
    )
}

fn drivers() -> impl Strategy<Value = Capabilities> {
    use capabilities::{KAFKA, KAFKA_WITHOUT_RETRY_TOPICS, MEMORY, RABBITMQ, SQS};
    let any = (durations(), any::<bool>(), durations()).prop_map(|(in_process, native, longest)| Capabilities {
        native_delay: native,
        max_native_delay: if native { longest } else { Duration::ZERO },
        max_in_process_delay: in_process,
        ..MEMORY
    });
    prop_oneof![select(vec![MEMORY, RABBITMQ, SQS, KAFKA, KAFKA_WITHOUT_RETRY_TOPICS]), any]
}

/// The failed attempts worth a look: the first many, and the last ones.
fn attempts_of(policy: &RetryPolicy) -> impl Iterator<Item = u32> {
    let attempts = policy.attempts();
    (1..attempts.min(300)).chain(attempts.saturating_sub(2).max(300)..attempts)
}

proptest! {
    #![proptest_config(few())]

    #[test]
    fn a_backoff_starts_with_its_delay_never_shrinks_and_never_overflows(
        backoff in backoffs(), first in durations(), attempt in 1_u32..=u32::MAX, cap in durations(),
    ) {
        prop_assert_eq!(backoff.delay_after(1, first), first);
        prop_assert!(backoff.delay_after(attempt, first) <= backoff.delay_after(attempt.saturating_add(1), first));
        for attempt in 1..100 {
            let (this, next) = (backoff.delay_after(attempt, first), backoff.delay_after(attempt + 1, first));
            if backoff == Backoff::Fixed {
                prop_assert_eq!(next, first);
            } else if next < Duration::MAX {
                prop_assert_eq!(next, this * 2);
            } else {
                prop_assert!(attempt >= 32 || this.checked_mul(2).is_none_or(|doubled| doubled == next));
            }
        }
        let capped = RetryPolicy::new(2).backoff(backoff).delay(first).max_delay(cap);
        prop_assert_eq!(capped.delay_after(attempt), backoff.delay_after(attempt, first).min(cap));
    }

    #[test]
    fn jitter_only_extends_a_delay_and_by_no_more_than_its_share(policy in policies()) {
        let plan = RetryPlan::prove(&policy, &capabilities::MEMORY);
        prop_assume!(plan.is_ok());
        let plan = plan.unwrap();
        for attempt in attempts_of(&policy) {
            let base = policy.delay_after(attempt);
            let delays = Jitter::ALL.map(|jitter| plan.step(Attempt::new(attempt), jitter).unwrap().delay());
            prop_assert_eq!(delays[0], base);
            prop_assert!(delays.is_sorted());
            let most = base.as_secs_f64() * (1.0 + policy.jitter_ratio());
            prop_assert!(delays[3].as_secs_f64() <= most * (1.0 + 1e-9), "{:?} of {:?}", delays[3], base);
            if policy.jitter_ratio() == 0.0 {
                prop_assert_eq!(delays, [base; 4]);
            }
        }
    }

    #[test]
    fn a_plan_is_refused_exactly_when_a_delay_is_beyond_the_driver(policy in policies(), driver in drivers()) {
        // Jitter apart, which the next property looks at.
        let policy = policy.jitter(0.0);
        let beyond = attempts_of(&policy).find(|attempt| policy.delay_after(*attempt) > driver.longest_delay());
        let too_many = driver.native_delay
            && attempts_of(&policy)
                .map(|attempt| policy.delay_after(attempt))
                .filter(|delay| *delay > driver.max_in_process_delay)
                .collect::<std::collections::BTreeSet<_>>()
                .len() > 64;
        match (RetryPlan::prove(&policy, &driver), beyond) {
            (Ok(plan), None) => {
                prop_assert!(!too_many);
                prop_assert_eq!(plan.ceiling(), driver.longest_delay());
            }
            (Err(violation), Some(attempt)) => {
                let names_it = violation.problem().starts_with(&format!("the retry after attempt {attempt} wants "));
                prop_assert!(names_it, "{}", violation.problem());
            }
            (Err(violation), None) => prop_assert!(too_many, "{violation}"),
            (Ok(plan), Some(attempt)) => prop_assert!(false, "attempt {attempt} passes in {plan:?}"),
        }
    }

    #[test]
    fn every_step_of_a_plan_is_one_that_the_driver_has_declared(policy in policies(), driver in drivers()) {
        let plan = RetryPlan::prove(&policy, &driver);
        prop_assume!(plan.is_ok());
        let plan = plan.unwrap();
        let declared = plan.native_delays();
        let mut longest = Duration::ZERO;
        for attempt in attempts_of(&policy) {
            let mut with_whole_jitter = Duration::ZERO;
            for jitter in Jitter::ALL {
                let step = plan.step(Attempt::new(attempt), jitter).unwrap();
                match step {
                    Step::InProcess(delay) => prop_assert!(delay <= driver.max_in_process_delay),
                    Step::Native(delay) => {
                        prop_assert!(driver.native_delay && delay <= driver.max_native_delay);
                        prop_assert!(declared.contains(&delay), "{delay:?} is not declared");
                    }
                }
                with_whole_jitter = with_whole_jitter.max(step.delay());
            }
            longest = longest.saturating_add(with_whole_jitter);
        }
        prop_assert!(plan.longest_wait() >= longest);
        if policy.attempts() < 300 {
            prop_assert_eq!(plan.longest_wait(), longest);
        }
        let last = Attempt::new(policy.attempts());
        prop_assert!(plan.admits(last) && plan.step(last, Jitter::default()).is_none());
        prop_assert!(policy.attempts() == u32::MAX || !plan.admits(last.next()));
    }

    #[test]
    fn a_delay_that_is_asked_for_is_clamped_to_what_the_driver_can(
        policy in policies(), driver in drivers(), asked in durations(), failed in 1_u32..300,
    ) {
        let plan = RetryPlan::prove(&policy, &driver);
        prop_assume!(plan.is_ok());
        match plan.unwrap().requested(Attempt::new(failed), asked) {
            None => prop_assert!(failed >= policy.attempts()),
            Some((step, clamped)) => {
                prop_assert!(failed < policy.attempts());
                prop_assert_eq!(step.delay(), asked.min(driver.longest_delay()));
                prop_assert_eq!(clamped, asked > driver.longest_delay());
                let in_process = step.delay() <= driver.max_in_process_delay;
                prop_assert_eq!(matches!(step, Step::InProcess(_)), in_process);
            }
        }
    }
}
