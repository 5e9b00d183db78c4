//! Everything that is not the payload.

use crate::*;

#[tokio::test(start_paused = true)]
async fn the_whole_message_is_there_for_who_asks() {
    let whole = OutboundMessage::raw("orders", "body")
        .message_type("whole")
        .content_type("text/plain")
        .key("customer")
        .id("o-1")
        .header("tenant", "acme");
    let expected = [
        r#"orders o-1 Some("customer") b"body" Headers([("tenant", "acme")])"#,
        r#"Some("whole") Some("text/plain") #1 false"#,
    ];
    assert_eq!(what_comes_of(whole).await, Came::handled(expected));
}

fn with_headers() -> OutboundMessage {
    message("headers", "")
        .header("text", "acme")
        .header("number", "18446744073709551615")
        .header("negative", "-128")
        .header("ratio", "0.5")
        .header("flag", "true")
        .header("letter", "é")
        .header("bytes", HeaderValue::from_bytes(b"\xff\x00"))
        .header("region", "eu")
}

#[tokio::test(start_paused = true)]
async fn headers_are_read_as_what_the_parameter_is() {
    let expected = r#"acme acme 18446744073709551615 -128 0.5 true é b"\xff\0" b"\xff\0" Eu"#;
    assert_eq!(what_comes_of(with_headers()).await, Came::handled([expected]));
    for (name, value, error) in [
        ("number", "-1", "invalid message: header `number` is not a u64: `-1`"),
        ("number", "1.0", "invalid message: header `number` is not a u64: `1.0`"),
        ("number", "", "invalid message: header `number` is not a u64: ``"),
        ("negative", "128", "invalid message: header `negative` is not a i8: `128`"),
        ("ratio", "half", "invalid message: header `ratio` is not a f64: `half`"),
        ("flag", "yes", "invalid message: header `flag` is not a bool: `yes`"),
        ("letter", "ab", "invalid message: header `letter` is not a char: `ab`"),
    ] {
        let came = what_comes_of(with_headers().header(name, value)).await;
        assert_eq!(came, Came::dead(Reason::Invalid, error));
    }
    let came = what_comes_of(with_headers().header("region", "mars")).await;
    assert_eq!(came, Came::dead(Reason::NonRetryable, "no region `mars`"));
}

#[tokio::test(start_paused = true)]
async fn a_header_that_is_missing_is_final_unless_it_is_optional() {
    for name in ["text", "number", "flag", "bytes", "region"] {
        let mut without = with_headers();
        without.headers.remove(name);
        let error = format!("invalid message: header `{name}` is missing");
        assert_eq!(what_comes_of(without).await, Came::dead(Reason::Invalid, &error));
    }
    let none = message("optional.headers", "");
    assert_eq!(what_comes_of(none.clone()).await, Came::handled(["None None None"]));
    let null = none.clone().header("number", HeaderValue::Null).header("text", HeaderValue::Null);
    assert_eq!(what_comes_of(null).await, Came::handled(["None None None"]));
    let all = none.clone().header("number", "7").header("text", "").header("region", "eu");
    assert_eq!(what_comes_of(all).await, Came::handled([r#"Some(7) Some("") Some(Eu)"#]));
    // What is there must be right.
    let wrong = none.header("number", "many");
    let error = "invalid message: header `number` is not a u32: `many`";
    assert_eq!(what_comes_of(wrong).await, Came::dead(Reason::Invalid, error));
}

#[tokio::test(start_paused = true)]
async fn a_header_that_is_not_text_is_told_apart_from_a_missing_one() {
    let binary = HeaderValue::from_bytes(b"\xff\x00\xfe");
    let not_text = |name| Came::dead(Reason::Invalid, &format!("invalid message: header `{name}` is not text"));
    assert_eq!(what_comes_of(message("text", "").header("text", binary.clone())).await, not_text("text"));
    assert_eq!(what_comes_of(message("number", "").header("number", binary.clone())).await, not_text("number"));
    let optional = message("optional.headers", "").header("text", binary.clone());
    assert_eq!(what_comes_of(optional).await, not_text("text"));
    assert_eq!(what_comes_of(message("text", "").header("text", HeaderValue::Null)).await, not_text("text"));
    assert_eq!(what_comes_of(message("bytes", "").header("bytes", binary)).await, Came::handled([r#"b"\xff\0\xfe""#]),);
    assert_eq!(what_comes_of(message("bytes", "").header("bytes", "text")).await, Came::handled([r#"b"text""#]));
    assert_eq!(
        what_comes_of(message("bytes", "").header("bytes", HeaderValue::Null)).await,
        Came::dead(Reason::Invalid, "invalid message: header `bytes` has no value"),
    );
    let mut twice = message("text", "");
    twice.headers.append("text", "first");
    twice.headers.append("text", "last");
    assert_eq!(what_comes_of(twice).await, Came::handled(["last"]));
}

#[tokio::test(start_paused = true)]
async fn an_extractor_of_ones_own_waits_injects_fails_for_good_or_for_now() {
    assert_eq!(what_comes_of(message("tenant", "").header("tenant", "acme")).await, Came::handled(["ACME"]));
    assert_eq!(what_comes_of(message("tenant", "")).await, Came::dead(Reason::NonRetryable, "no tenant"));
    assert_eq!(
        what_comes_of(message("careless", "")).await,
        Came::dead(Reason::Exhausted, "Log was not declared with `FromMessage::requires`"),
    );
    let rig = Rig::start::<Extracting>().await;
    rig.driver.send(message("tenant", "").header("tenant", "later"));
    rig.driver.idle().await;
    assert_eq!(rig.driver.settlements("orders")[0], Settlement::retry(Duration::from_secs(7), 2));
}
