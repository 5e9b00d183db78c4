//! An application with everything wrong, and how its report reads.

use crate::*;

const BY_ORDER: &str = "order.*";
const BY_EVENT: &str = "*.created";
const NO_ATTEMPTS: u32 = 0;
const NO_TIME: Duration = Duration::ZERO;
const TEN_SECONDS: Duration = Duration::from_secs(10);

struct Gone;
struct Tenant;

#[derive(Injectable)]
struct Hen {
    _egg: Arc<Egg>,
}

#[derive(Injectable)]
struct Egg {
    _hen: Arc<Hen>,
}

#[consumer("orders")]
struct Orders {
    _gone: Arc<Gone>,
}

#[handlers]
impl Orders {
    #[on_message(BY_ORDER)]
    async fn on_order(&self) {}

    #[on_message(BY_EVENT)]
    async fn on_event(&self) {}

    #[on_message("order.paid")]
    #[retry(attempts = NO_ATTEMPTS)]
    async fn on_paid(&self) {}

    #[on_message("order.sent", timeout = NO_TIME)]
    #[retry(attempts = 3, delay = TEN_SECONDS, max_delay = 5s)]
    async fn on_sent(&self) {}
}

#[consumer("orders", dead_letter = "orders")]
struct OrderAudit {
    _tenant: Arc<Tenant>,
}

#[handlers]
impl OrderAudit {
    #[on_message("order.*", timeout = 12h)]
    #[retry(attempts = 6, delay = 1h)]
    async fn on_order(&self, _gone: Inject<Gone>) {}
}

const NO_NAME: &str = "";

#[consumer(queue = NO_NAME, dead_letter = NO_NAME)]
struct Nameless;

#[handlers]
impl Nameless {
    #[on_message]
    async fn on_any(&self) {}
}

fn everything_wrong() -> messaging::ApplicationBuilder {
    let options = MessagingOptions::new(MemoryDriver::emulating(SQS))
        .concurrency(0)
        .prefix("Acme_")
        .requeue_delay(Duration::ZERO)
        .copy_timeout(Duration::ZERO);
    Application::builder()
        .provide::<Hen>()
        .provide::<Egg>()
        .add(Provider::value(Tenant).per_request())
        .value(1_u8)
        .value(2_u8)
        .replace(Arc::new("nothing to replace".to_owned()))
        .plugin(
            MessagingPlugin::configure(options).consumer::<Orders>().consumer::<OrderAudit>().consumer::<Nameless>(),
        )
}

/// Holds a text against a file; `UPDATE_SNAPSHOTS=1` writes it.
fn assert_snapshot(name: &str, text: &str) {
    let path = format!("{}/tests/snapshots/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    let text = format!("{text}\n");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, expected, "{path} differs; UPDATE_SNAPSHOTS=1 writes it, then read it");
}

#[tokio::test]
async fn everything_that_refuses_the_boot_is_told_at_once_and_says_what_to_change() {
    let error = everything_wrong().create().await.unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
    for violation in error.violations() {
        assert!(!violation.concerns().is_empty() && !violation.fix().is_empty(), "{violation}");
    }
    assert_snapshot("everything_wrong", &error.to_string());
}
