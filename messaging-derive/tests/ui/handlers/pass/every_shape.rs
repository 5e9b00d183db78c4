#![deny(warnings)]

use messaging::prelude::*;
use std::time::Duration;

use messaging::Handlers;

mod types {
    pub const CREATED: &str = "order.created";
}

const LIMIT: Duration = Duration::from_secs(30);

#[derive(Debug)]
struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("broken")
    }
}

impl std::error::Error for Broken {}

#[consumer("orders")]
#[derive(Debug)]
struct Orders;

#[handlers]
#[allow(deprecated)]
impl Orders {
    const NAME: &'static str = "orders";

    #[on_message(types::CREATED, timeout = LIMIT)]
    async fn on_created(&self) -> Result<(), Broken> {
        Err(Broken)
    }

    #[on_message("sync", timeout = 30s)]
    fn on_sync(&self) -> Result<(), String> {
        Err(Self::NAME.into())
    }

    #[on_message("nothing")]
    fn on_nothing(self: &Self) {}

    /// It is gone together with its entry.
    #[cfg(any())]
    #[on_message("absent")]
    async fn on_absent(&self, _: NoSuchType) {}

    #[cfg(all())]
    #[on_message("present")]
    #[retry(false)]
    async fn on_present(&self) {}

    #[cfg(any())]
    #[on_message]
    async fn on_any(&self) {}

    #[cfg(all())]
    #[on_message]
    async fn on_other(&self) {}

    #[deprecated]
    #[on_message("order.*")]
    pub async fn on_order(&self) {
        self.helper();
    }

    #[messaging::on_message("qualified")]
    #[messaging::retry(attempts = 2)]
    async fn qualified(&self) {}

    #[on_message("r#type")]
    async fn r#type(&self) {}

    fn helper(&self) {}

    #[cfg(any())]
    #[on_error]
    fn on_absent_failure(&self) {}

    #[on_error]
    fn on_failure(&self) {}
}

fn main() {
    let table = format!("{:?}", Orders::table());
    let at = |text: &str| table.find(text).unwrap_or_else(|| panic!("{text} is not in {table}"));
    let order = [
        at(r#"name: "on_created", pattern: Some("order.created"), retry: None"#),
        at("timeout: Some(30s)"),
        at(r#"name: "on_sync", pattern: Some("sync")"#),
        at(r#"name: "on_nothing""#),
        at(r#"name: "on_present""#),
        at(r#"name: "on_other", pattern: None"#),
        at(r#"name: "on_order""#),
        at(r#"name: "qualified""#),
        at(r#"name: "type""#),
    ];
    assert!(order.is_sorted(), "{order:?}");
    assert!(!table.contains("absent"));
    assert!(table.contains("on_error: true"));
}
