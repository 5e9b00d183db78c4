//! Headers, the attempt that one carries, and what waits for its time.

use crate::*;

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
