//! Bodies, well-formed and otherwise.

use crate::*;

#[tokio::test(start_paused = true)]
async fn a_payload_is_decoded_and_only_message_validates_it() {
    let order = r#"{"order_id": "o-1", "lines": 3}"#;
    assert_eq!(what_comes_of(message("message", order)).await, Came::handled(["o-1 3"]));
    assert_eq!(what_comes_of(message("unvalidated", order)).await, Came::handled(["o-1 3"]));
    let invalid = r#"{"order_id": "", "lines": 3}"#;
    assert_eq!(
        what_comes_of(message("message", invalid)).await,
        Came::dead(Reason::Invalid, "invalid message: order_id: length (min = 1)"),
    );
    assert_eq!(what_comes_of(message("unvalidated", invalid)).await, Came::handled([" 3"]));
}

#[tokio::test(start_paused = true)]
async fn an_optional_payload_is_none_when_it_is_empty_or_null_and_checked_when_it_is_there() {
    for nothing in ["", " \n", "null", " null\n"] {
        assert_eq!(what_comes_of(message("optional", nothing)).await, Came::handled(["nothing"]), "{nothing:?}");
        assert_eq!(what_comes_of(message("optional.number", nothing)).await, Came::handled(["None"]), "{nothing:?}");
    }
    let order = r#"{"order_id": "o-1", "lines": 3}"#;
    assert_eq!(what_comes_of(message("optional", order)).await, Came::handled(["o-1"]));
    assert_eq!(what_comes_of(message("optional.number", "-7")).await, Came::handled(["Some(-7)"]));
    for (present, expected) in [
        (r#"{"order_id": "", "lines": 3}"#, Came::dead(Reason::Invalid, "invalid message: order_id: length (min = 1)")),
        ("[]", misshapen("invalid length 0, expected struct Order with 2 elements at line 1 column 2")),
        ("nul", undecodable("EOF while parsing a value at line 1 column 3")),
        ("nullnull", undecodable("trailing characters at line 1 column 5")),
    ] {
        assert_eq!(what_comes_of(message("optional", present)).await, expected, "{present}");
    }
}

#[tokio::test(start_paused = true)]
async fn json_surprises_have_one_verdict_each() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let too_deep = format!("{}: recursion limit exceeded at line 1 column 128", "[0]".repeat(127));
    let order = |lines: &str| format!(r#"{{"order_id": "o-1", "lines": {lines}}}"#);
    let cases = [
        ("message", r#"{"order_id": "o-1", "new": [1], "lines": 3}"#.to_owned(), Came::handled(["o-1 3"])),
        ("message", order("9007199254740993"), Came::handled(["o-1 9007199254740993"])),
        ("message", order("18446744073709551615"), Came::handled(["o-1 18446744073709551615"])),
        (
            "message",
            order("18446744073709551616"),
            misshapen("lines: invalid type: floating point `1.8446744073709552e+19`, expected u64 at line 1 column 49"),
        ),
        (
            "message",
            order("1.0"),
            misshapen("lines: invalid type: floating point `1.0`, expected u64 at line 1 column 32"),
        ),
        ("message", order("-1"), misshapen("lines: invalid value: integer `-1`, expected u64 at line 1 column 31")),
        ("message", order("1e999"), misshapen("lines: number out of range at line 1 column 34")),
        ("message", order("NaN"), undecodable("lines: expected value at line 1 column 30")),
        ("message", order("01"), undecodable("lines: invalid number at line 1 column 31")),
        ("message", r#"{"order_id": "o-1"}"#.into(), misshapen("missing field `lines` at line 1 column 19")),
        (
            "message",
            r#"{"order_id": "o-1", "lines": 1, "lines": 2}"#.into(),
            misshapen("duplicate field `lines` at line 1 column 39"),
        ),
        ("message", format!("\u{feff}{}", order("1")), undecodable("expected value at line 1 column 1")),
        ("message", format!("{} x", order("1")), undecodable("trailing characters at line 1 column 33")),
        ("message", format!("{}{}", order("1"), order("1")), undecodable("trailing characters at line 1 column 32")),
        ("message", format!("{}\n \t\r", order("1")), Came::handled(["o-1 1"])),
        ("message", "null".into(), misshapen("invalid type: null, expected struct Order at line 1 column 4")),
        ("message", deep(200), misshapen("[0]: invalid type: sequence, expected a string at line 1 column 1")),
        (
            "nested",
            r#"{"order": {"order_id": "o-1", "lines": [3]}}"#.into(),
            misshapen("order.lines: invalid type: sequence, expected u64 at line 1 column 39"),
        ),
        (
            "message",
            r#"{"order_id": "\ud800", "lines": 1}"#.into(),
            misshapen("order_id: unexpected end of hex escape at line 1 column 21"),
        ),
        // serde reads a struct from a sequence as well.
        ("message", r#"["o-1", 3]"#.into(), Came::handled(["o-1 3"])),
        ("value", deep(127), Came::handled([deep(127)])),
        ("value", deep(200), misshapen(&too_deep)),
        ("value", deep(200_000), misshapen(&too_deep)),
        ("value", "[".repeat(200_000), undecodable(&too_deep)),
        ("value", "null".into(), Came::handled(["null"])),
    ];
    for (message_type, body, expected) in cases {
        let came = what_comes_of(message(message_type, &body)).await;
        assert_eq!(came, expected, "{message_type} {}", &body[..body.len().min(80)]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_empty_body_runs_where_no_payload_is_asked_for_and_is_undecodable_elsewhere() {
    for body in [&b""[..], b"\x00\xff", b"\x07"] {
        let raw = |message_type| OutboundMessage::raw("orders", body.to_vec()).message_type(message_type);
        assert_eq!(what_comes_of(raw("no payload")).await, Came::handled(["ran"]));
        assert_eq!(what_comes_of(raw("message")).await.to, Settlement::DeadLetter(Reason::Undecodable));
    }
    let empty = what_comes_of(message("value", "")).await;
    assert_eq!(empty, undecodable("EOF while parsing a value at line 1 column 0"));
}

#[tokio::test(start_paused = true)]
async fn ten_megabytes_pass() {
    let body = format!("\"{}\"", "x".repeat(10 << 20));
    assert_eq!(what_comes_of(message("size", &body)).await, Came::handled(["10485760"]));
}
