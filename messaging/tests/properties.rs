//! What holds for any input: backoff, plans, patterns, routing, headers, attempts, delays.
#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use messaging::driver::DelayHeap;
use messaging::prelude::*;
use messaging::{
    Backoff, BoxFuture, Capabilities, Consumer, Declaration, HandlerEntry, HandlerTable, Handlers, HeaderValue, Jitter,
    MessageContext, OutboundMessage, Outcome, Pattern, RetryPlan, Step, WireNames,
};
use messaging_memory::{MemoryDriver, capabilities};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use tokio::time::Instant;

fn few() -> ProptestConfig {
    // A failure prints its seed; nothing is written beside the tests.
    ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() }
}

/// From nothing to beyond what a clock can count, small ones more often.
fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        (0_u64..10_000).prop_map(Duration::from_millis),
        (0_u64..40 * 86_400).prop_map(Duration::from_secs),
        any::<u64>().prop_map(Duration::from_nanos),
        Just(Duration::MAX),
    ]
}

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

/// A pattern's match by its definition: a star is any run of characters.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|taken| matches(rest, &text[taken..])),
        Some((letter, rest)) => text.first() == Some(letter) && matches(rest, &text[1..]),
    }
}

/// Every text of these letters up to a length.
fn texts(letters: &str, longest: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..longest {
        last = last.iter().flat_map(|text| letters.chars().map(move |letter| format!("{text}{letter}"))).collect();
        all.extend_from_slice(&last);
    }
    all
}

fn patterns() -> impl Strategy<Value = String> {
    "[ab.*]{0,4}"
}

proptest! {
    #![proptest_config(few())]

    #[test]
    fn a_pattern_matches_by_its_definition(pattern in "[ab*]{0,7}", text in "[ab]{0,9}", crab in "[a*🦀]{0,5}") {
        prop_assert_eq!(Pattern::new(&pattern).matches(&text), matches(pattern.as_bytes(), text.as_bytes()));
        prop_assert_eq!(Pattern::new(&crab).matches("a🦀🦀a"), matches(crab.as_bytes(), "a🦀🦀a".as_bytes()));
        prop_assert_eq!(Pattern::new(&pattern).is_exact(), !pattern.contains('*'));
        prop_assert!(Pattern::new(&pattern).matches(&pattern.replace('*', "")));
    }

    #[test]
    fn inclusion_and_intersection_are_what_they_are_of_the_types_that_match(left in patterns(), right in patterns()) {
        // A letter of neither shows what only a star can match; no witness is longer than both patterns together.
        let matched = |pattern: &str, texts: &[String]| -> Vec<bool> {
            texts.iter().map(|text| matches(pattern.as_bytes(), text.as_bytes())).collect()
        };
        let (one, other) = (Pattern::new(&left), Pattern::new(&right));
        let short = texts("ab.z", 4);
        let mut pairs = matched(&left, &short).into_iter().zip(matched(&right, &short));
        prop_assert_eq!(one.includes(&other), pairs.all(|(left, right)| left || !right), "{} includes {}", left, right);
        let long = texts("ab.", 8);
        let mut pairs = matched(&left, &long).into_iter().zip(matched(&right, &long));
        prop_assert_eq!(one.intersects(&other), pairs.any(|(left, right)| left && right), "{} meets {}", left, right);
        prop_assert_eq!(one.intersects(&other), other.intersects(&one));
        prop_assert!(one.includes(&one) && one.intersects(&one));
    }
}

thread_local! {
    /// The patterns of the consumer, which a test chooses.
    static PATTERNS: RefCell<Vec<Option<&'static str>>> = const { RefCell::new(Vec::new()) };
}

/// A consumer whose handlers are written by hand: the one for the nth pattern notes n.
#[derive(Injectable)]
struct Chosen {
    chosen: Arc<Mutex<Vec<usize>>>,
}

impl Consumer for Chosen {
    fn declaration() -> Declaration {
        Declaration::new("orders")
    }
}

impl Handlers for Chosen {
    fn table() -> HandlerTable<Self> {
        fn note<'m, const N: usize>(consumer: &'m Chosen, _: MessageContext<'m>) -> BoxFuture<'m, Outcome> {
            consumer.chosen.lock().unwrap().push(N);
            Box::pin(std::future::ready(Ok(())))
        }
        let runs: [messaging::Run<Self>; 5] = [note::<0>, note::<1>, note::<2>, note::<3>, note::<4>];
        PATTERNS.with_borrow(|patterns| {
            patterns.iter().zip(runs).fold(HandlerTable::new(), |table, (pattern, run)| {
                let entry = HandlerEntry::new("handler", |_| {}, run);
                table.handler(match pattern {
                    Some(pattern) => entry.pattern(pattern),
                    None => entry,
                })
            })
        })
    }
}

/// The pattern that each type is routed to, or `None` where the patterns are refused.
fn routed(patterns: &[Option<&'static str>], types: &[String]) -> Option<Vec<Option<&'static str>>> {
    PATTERNS.set(patterns.to_vec());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let driver = MemoryDriver::new();
        let chosen = Arc::new(Mutex::new(Vec::<usize>::new()));
        let plugin = MessagingPlugin::configure(driver.clone()).consumer::<Chosen>();
        let app = Application::builder().shared(Arc::clone(&chosen)).plugin(plugin).create().await.ok()?;
        app.start().await.unwrap();
        for message_type in types {
            driver.send(OutboundMessage::raw("orders", "").message_type(&**message_type));
        }
        driver.idle().await;
        app.stop().await;
        // The last pattern is the default, so nothing is unrouted.
        let chosen = chosen.lock().unwrap();
        assert_eq!(chosen.len(), types.len());
        Some(chosen.iter().map(|index| patterns[*index]).collect())
    })
}

proptest! {
    #![proptest_config(few())]

    #[test]
    fn who_handles_a_type_does_not_depend_on_the_order_of_registration(
        patterns in proptest::collection::btree_set("[ab*]{1,3}", 1..5), shuffled in any::<[Index; 5]>(),
    ) {
        let patterns: Vec<&'static str> = patterns.into_iter().map(|pattern| &*pattern.leak()).collect();
        let declared: Vec<_> = patterns.iter().map(|pattern| Some(*pattern)).chain([None]).collect();
        let mut permuted = declared.clone();
        for (place, index) in shuffled.iter().take(permuted.len()).enumerate() {
            let other = index.index(permuted.len());
            permuted.swap(place, other);
        }
        let types = texts("ab", 4);
        let of_declared = routed(&declared, &types);
        prop_assert_eq!(&of_declared, &routed(&permuted, &types));

        let read: Vec<_> = patterns.iter().map(|pattern| Pattern::new(pattern)).collect();
        let conflict = |one: &Pattern, other: &Pattern| {
            let unlike = !one.includes(other) && !other.includes(one) || one == other;
            one.intersects(other) && unlike && !one.is_exact() && !other.is_exact()
        };
        let refused = read.iter().enumerate().any(|(at, one)| read[..at].iter().any(|other| conflict(one, other)));
        prop_assert_eq!(refused, of_declared.is_none());
        for (message_type, chosen) in types.iter().zip(of_declared.into_iter().flatten()) {
            let matching: Vec<_> = read.iter().filter(|pattern| pattern.matches(message_type)).collect();
            match chosen {
                None => prop_assert!(message_type.is_empty() || matching.is_empty()),
                Some(chosen) => {
                    let chosen = Pattern::new(chosen);
                    prop_assert!(chosen.matches(message_type));
                    prop_assert!(matching.iter().all(|other| other.includes(&chosen)), "{chosen} for {message_type}");
                }
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Change {
    Insert(String, HeaderValue),
    Append(String, HeaderValue),
    Remove(String),
}

fn values() -> impl Strategy<Value = HeaderValue> {
    prop_oneof![
        Just(HeaderValue::Null),
        "[a-z]{0,3}".prop_map(HeaderValue::from),
        proptest::collection::vec(any::<u8>(), 0..4).prop_map(|bytes| HeaderValue::from_bytes(&bytes)),
    ]
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let name = || "[abA]";
    let change = prop_oneof![
        (name(), values()).prop_map(|(name, value)| Change::Insert(name, value)),
        (name(), values()).prop_map(|(name, value)| Change::Append(name, value)),
        name().prop_map(Change::Remove),
    ];
    proptest::collection::vec(change, 0..20)
}

fn attempt_values() -> impl Strategy<Value = Option<HeaderValue>> {
    let text = prop_oneof![
        Just("0".to_owned()),
        Just("1".to_owned()),
        (0..=u32::MAX).prop_map(|number| number.to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<u128>().prop_map(|number| number.to_string()),
        "[ +-]?[0-9]{0,3}[ .x]?",
        "\\PC{0,8}",
    ];
    proptest::option::of(prop_oneof![text.prop_map(HeaderValue::from), values()])
}

proptest! {
    #![proptest_config(few())]

    #[test]
    fn headers_behave_like_a_list_of_pairs(changes in changes()) {
        let mut headers = Headers::new();
        let mut model: Vec<(String, HeaderValue)> = Vec::new();
        for change in changes {
            match change {
                Change::Insert(name, value) => {
                    headers.insert(&*name, value.clone());
                    model.retain(|(known, _)| *known != name);
                    model.push((name, value));
                }
                Change::Append(name, value) => {
                    headers.append(&*name, value.clone());
                    model.push((name, value));
                }
                Change::Remove(name) => {
                    headers.remove(&name);
                    model.retain(|(known, _)| *known != name);
                }
            }
            let pairs: Vec<_> = headers.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
            prop_assert_eq!(&pairs, &model);
            prop_assert_eq!((headers.len(), headers.is_empty()), (model.len(), model.is_empty()));
            for name in ["a", "b", "A", "c"] {
                let all: Vec<_> = model.iter().filter(|(known, _)| known == name).map(|(_, value)| value).collect();
                prop_assert_eq!(headers.get_all(name).collect::<Vec<_>>(), all.clone());
                prop_assert_eq!(headers.get(name), all.last().copied());
                prop_assert_eq!(headers.text(name), all.last().and_then(|value| value.as_text()));
            }
            let bytes = |value: &HeaderValue| value.as_bytes().map_or(0, <[u8]>::len);
            prop_assert_eq!(headers.size(), model.iter().map(|(name, value)| name.len() + bytes(value)).sum::<usize>());
        }
        prop_assert_eq!(headers, model.into_iter().collect::<Headers>());
    }

    #[test]
    fn an_attempt_header_is_a_whole_number_from_one_or_the_first_attempt(value in attempt_values()) {
        let names = WireNames::default();
        let mut headers = Headers::new();
        if let Some(value) = &value {
            headers.insert(names.attempt(), value.clone());
        }
        let text = value.as_ref().and_then(HeaderValue::as_text).unwrap_or("");
        let digits = text.strip_prefix('+').unwrap_or(text);
        let number = if digits.chars().all(|digit| digit.is_ascii_digit()) { digits.parse::<u32>().ok() } else { None };
        prop_assert_eq!(names.read_attempt(&headers).get(), number.filter(|number| *number > 0).unwrap_or(1));
    }

    #[test]
    fn a_delay_heap_gives_what_is_due_in_order_and_ties_as_they_came(
        pushes in proptest::collection::vec(0_u64..6, 0..30), times in proptest::collection::vec(0_u64..8, 0..8),
    ) {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut heap = DelayHeap::default();
        let mut model: Vec<(u64, usize)> = Vec::new();
        let mut times = times.into_iter();
        for (number, due) in pushes.into_iter().enumerate() {
            let first = heap.push(at(due), number);
            prop_assert_eq!(first, model.iter().all(|(other, _)| due < *other));
            model.push((due, number));
            // Now and then something is taken while more is pushed.
            if number % 4 == 3 && let Some(now) = times.next() {
                model.sort_by_key(|(due, _)| *due);
                while let Some(popped) = heap.pop_due(at(now)) {
                    prop_assert_eq!(popped, model.remove(0).1);
                }
                prop_assert!(model.iter().all(|(due, _)| *due > now));
            }
            prop_assert_eq!(heap.next_due(), model.iter().map(|(due, _)| at(*due)).min());
            prop_assert_eq!(heap.len(), model.len());
        }
        model.sort_by_key(|(due, _)| *due);
        let rest: Vec<_> = std::iter::from_fn(|| heap.pop_due(at(6))).collect();
        prop_assert_eq!(rest, model.iter().map(|(_, number)| *number).collect::<Vec<_>>());
        prop_assert!(heap.is_empty());
    }

    #[test]
    fn a_due_time_is_never_in_the_past_and_never_overflows(delay in durations()) {
        let now = Instant::now();
        let due = DelayHeap::<()>::due(now, delay);
        prop_assert!(due >= now);
        prop_assert!(due - now == delay || delay > Duration::from_secs(29 * 365 * 86_400) && due > now);
    }
}

#[test]
fn hostile_attempt_headers_count_as_the_first() {
    let names = WireNames::default();
    let hostile: [HeaderValue; 12] = [
        "0".into(),
        "-1".into(),
        "4294967296".into(),
        "99999999999999999999999999".into(),
        "three".into(),
        "1.5".into(),
        " 3".into(),
        "3\n".into(),
        "".into(),
        "٣".into(),
        HeaderValue::from_bytes(b"\xff3"),
        HeaderValue::Null,
    ];
    for value in hostile {
        let mut headers = Headers::new();
        headers.insert(names.attempt(), value.clone());
        assert_eq!(names.read_attempt(&headers), Attempt::FIRST, "{value:?}");
    }
    assert_eq!(names.read_attempt(&Headers::new()), Attempt::FIRST);
    let mut headers = Headers::new();
    headers.insert(names.attempt(), "4294967295");
    assert_eq!(names.read_attempt(&headers).get(), u32::MAX);
}
