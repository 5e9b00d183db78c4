//! Which handler a type is for.

use crate::*;

#[consumer("orders")]
struct Routed {
    log: Arc<Log>,
}

#[handlers]
impl Routed {
    #[on_message]
    async fn any(&self) {
        self.log.note("default");
    }

    #[on_message("*")]
    async fn star(&self) {
        self.log.note("*");
    }

    #[on_message("order.*")]
    async fn order(&self) {
        self.log.note("order.*");
    }

    #[on_message("order.*.v2")]
    async fn second(&self) {
        self.log.note("order.*.v2");
    }

    #[on_message("order.created")]
    async fn created(&self) {
        self.log.note("order.created");
    }

    #[on_message("a*b*c*d*e")]
    async fn letters(&self) {
        self.log.note("a*b*c*d*e");
    }
}

#[tokio::test(start_paused = true)]
async fn the_handler_is_the_exact_one_then_the_narrowest_pattern_then_the_default() {
    let rig = Rig::start::<Routed>().await;
    let expected = [
        ("order.created", "order.created"),
        ("order.created.v2", "order.*.v2"),
        ("order..v2", "order.*.v2"),
        ("order.v2", "order.*"),
        ("order.", "order.*"),
        ("order.*", "order.*"),
        ("order", "*"),
        ("orderXcreated", "*"),
        ("ORDER.CREATED", "*"),
        ("abcde", "a*b*c*d*e"),
        ("a🦀b🦀c🦀d🦀e", "a*b*c*d*e"),
        ("abcd", "*"),
        ("", "default"),
    ];
    for (message_type, _) in expected {
        rig.send(message_type, "");
    }
    rig.driver.send(OutboundMessage::raw("orders", ""));
    let stars = "*".repeat(10 << 10);
    let almost = format!("a{}", "bcd".repeat(10 << 10));
    rig.send(&stars, "");
    rig.send(&almost, "");
    rig.driver.idle().await;
    let expected: Vec<_> = expected.iter().map(|(_, chosen)| *chosen).chain(["default", "*", "*"]).collect();
    assert_eq!(rig.log.lines(), expected);
}
