//! What patterns match, and who handles a type.

use crate::*;

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
            let equal_right = one.includes(other) == other.includes(one);
            one.intersects(other) && equal_right && !one.is_exact() && !other.is_exact()
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
