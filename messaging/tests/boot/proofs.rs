//! Retry policies against what each driver can do.

use crate::*;

/// Every step of a policy, or its refusal: `1s` waits in process, `native 1s` at the broker.
fn proven(policy: &RetryPolicy, capabilities: &Capabilities) -> String {
    match RetryPlan::prove(policy, capabilities) {
        Ok(plan) => {
            let step = |attempt| match plan.step(Attempt::new(attempt), Jitter::default()) {
                Some(Step::InProcess(delay)) => format!("{delay:?}"),
                Some(Step::Native(delay)) => format!("native {delay:?}"),
                None => "none".to_owned(),
            };
            (1..plan.attempts()).map(step).collect::<Vec<_>>().join(", ")
        }
        Err(violation) => {
            assert_eq!(violation.kind(), ViolationKind::Retry);
            assert!(!violation.fix().is_empty());
            violation.problem().to_owned()
        }
    }
}

/// In process throughout, or at the broker throughout.
fn steps(prefix: &str, delays: &[Duration]) -> String {
    delays.iter().map(|delay| format!("{prefix}{delay:?}")).collect::<Vec<_>>().join(", ")
}

#[test]
fn each_policy_is_proven_delay_by_delay_against_each_driver() {
    let exponential = |attempts, first| RetryPolicy::new(attempts).delay(first);
    let fixed = |delay| RetryPolicy::new(2).backoff(Backoff::Fixed).delay(delay);
    let in_process = |delays: &[Duration]| steps("", delays);
    let native = |delays: &[Duration]| steps("native ", delays);
    let hours = |hours: &[u32]| hours.iter().map(|hours| HOUR * *hours).collect::<Vec<_>>();

    let half = Duration::from_millis(500);
    let growing: Vec<_> = (0..5).map(|doubled| HOUR * (1 << doubled)).collect();
    let capped = hours(&[1, 2, 4, 6, 6]);
    let seconds: Vec<_> = [1, 2, 4, 8].map(|seconds| SECOND * seconds).into();
    let saturated: Vec<_> =
        (0..59).map(|doubled| if doubled < 32 { SECOND * (1_u32 << doubled) } else { Duration::MAX }).collect();
    let (sqs, six_days, minute, levels) = ("11h 59min", "6d", "1min", "49d 17h 2min 47s 295ms");
    let smaller = "`max_delay` (5s) is smaller than `delay` (10s)".to_owned();
    let none = "`attempts` is 0, and the first delivery counts".to_owned();
    let table = [
        (
            RetryPolicy::default(),
            in_process(&seconds[..2]),
            in_process(&seconds[..2]),
            native(&seconds[..2]),
            native(&seconds[..2]),
            in_process(&seconds[..2]),
        ),
        (
            exponential(5, SECOND).max_delay(60 * SECOND),
            in_process(&seconds),
            format!("{}, {}", in_process(&seconds[..3]), native(&seconds[3..])),
            native(&seconds),
            native(&seconds),
            in_process(&seconds),
        ),
        (
            fixed(half),
            in_process(&[half]),
            in_process(&[half]),
            in_process(&[half]),
            native(&[half]),
            in_process(&[half]),
        ),
        (
            fixed(3 * half),
            in_process(&[3 * half]),
            in_process(&[3 * half]),
            native(&[3 * half]),
            native(&[3 * half]),
            in_process(&[3 * half]),
        ),
        (
            exponential(6, HOUR),
            in_process(&growing),
            native(&growing),
            beyond(5, "16h", sqs),
            native(&growing),
            beyond(1, "1h", minute),
        ),
        (
            exponential(6, HOUR).max_delay(6 * HOUR),
            in_process(&capped),
            native(&capped),
            native(&capped),
            native(&capped),
            beyond(1, "1h", minute),
        ),
        (
            fixed(12 * HOUR),
            in_process(&[12 * HOUR]),
            native(&[12 * HOUR]),
            beyond(1, "12h", sqs),
            native(&[12 * HOUR]),
            beyond(1, "12h", minute),
        ),
        (
            fixed(7 * DAY),
            in_process(&[7 * DAY]),
            native(&[7 * DAY]),
            beyond(1, "7d", sqs),
            beyond(1, "7d", six_days),
            beyond(1, "7d", minute),
        ),
        (
            fixed(60 * DAY),
            in_process(&[60 * DAY]),
            beyond(1, "60d", levels),
            beyond(1, "60d", sqs),
            beyond(1, "60d", six_days),
            beyond(1, "60d", minute),
        ),
        (
            exponential(60, SECOND),
            in_process(&saturated),
            // 2^22 s, the first beyond 2^32 − 1 ms.
            beyond(24, "97d 2h 10min 8s", levels),
            beyond(17, "18h 12min 16s", sqs),
            beyond(20, "6d 1h 38min 8s", six_days),
            beyond(7, "1min 4s", minute),
        ),
        (
            RetryPolicy::none().backoff(Backoff::Fixed).delay(36_500 * DAY),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
            String::new(),
        ),
        (
            RetryPolicy::new(3).delay(10 * SECOND).max_delay(5 * SECOND),
            smaller.clone(),
            smaller.clone(),
            smaller.clone(),
            smaller.clone(),
            smaller,
        ),
        (RetryPolicy::new(0), none.clone(), none.clone(), none.clone(), none.clone(), none),
    ];
    for (policy, memory, rabbitmq, sqs, kafka, kafka_without) in table {
        let expected = [memory, rabbitmq, sqs, kafka, kafka_without];
        let drivers = [MEMORY, RABBITMQ, SQS, KAFKA, KAFKA_WITHOUT_RETRY_TOPICS];
        assert_eq!(drivers.map(|driver| proven(&policy, &driver)), expected, "{policy:?}");
    }
}

#[test]
fn jitter_is_proven_by_its_upper_bound_and_out_of_range_it_is_refused() {
    let policy = RetryPolicy::new(2).delay(50 * SECOND);
    assert_eq!(proven(&policy.jitter(0.2), &KAFKA_WITHOUT_RETRY_TOPICS), "50s");
    assert_eq!(
        proven(&policy.jitter(0.3), &KAFKA_WITHOUT_RETRY_TOPICS),
        "the retry after attempt 1 wants a delay of 1min 5s (jitter included), and the driver can delay at most 1min",
    );
    for jitter in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert_eq!(proven(&policy.jitter(jitter), &MEMORY), format!("`jitter` is {jitter}"));
    }
}

#[test]
fn more_delays_than_a_queue_can_have_are_refused_as_a_mistake() {
    let many = RetryPolicy::new(200).delay(Duration::from_millis(1)).jitter(1.0).max_delay(DAY);
    assert_eq!(proven(&many, &KAFKA), "the policy has 83 different delays, and 64 are the most for one handler",);
    assert!(RetryPlan::prove(&many, &MEMORY).is_ok());
}
