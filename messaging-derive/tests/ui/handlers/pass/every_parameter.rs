#![deny(warnings)]

use messaging::prelude::*;
use std::sync::Arc;

use messaging::{FromHeader, FromMessage, HeaderValue, Handlers, MessageContext};

#[derive(Deserialize, Validate)]
struct Order {
    #[validate(length(min = 1))]
    _id: String,
}

#[derive(Deserialize)]
struct Foreign {
    _id: String,
}

struct Tenant(#[allow(dead_code)] String);

impl<'m> FromMessage<'m> for Tenant {
    async fn from_message(context: MessageContext<'m>) -> Result<Self, Failure> {
        let tenant = context.message().headers.text("tenant");
        tenant.map(|tenant| Tenant(tenant.into())).ok_or_else(|| Failure::non_retryable("no tenant"))
    }
}

struct Borrowed<'m>(#[allow(dead_code)] &'m InboundMessage);

impl<'m> FromMessage<'m> for Borrowed<'m> {
    async fn from_message(context: MessageContext<'m>) -> Result<Self, Failure> {
        Ok(Self(context.message()))
    }
}

struct Region;

impl<'m> FromHeader<'m> for Region {
    fn from_header(_: &str, _: Option<&'m HeaderValue>) -> Result<Self, Failure> {
        Ok(Self)
    }
}

trait Clock: Send + Sync {}

const TENANT: &str = "tenant";

#[consumer("orders")]
struct Orders;

#[handlers]
impl Orders {
    #[on_message("payload")]
    async fn payload(&self, _: Message<Order>) {}

    #[on_message("maybe")]
    async fn maybe(&self, _: Option<Message<Order>>, _: Option<Unvalidated<Foreign>>) {}

    #[on_message("unvalidated")]
    async fn unvalidated(&self, Unvalidated(_foreign): Unvalidated<Foreign>) {}

    #[on_message("raw")]
    async fn raw(&self, mut _body: Bytes, _: Headers, _: &Headers, _: Attempt, _: CancellationToken) {}

    #[on_message("whole")]
    async fn whole(&self, _: &InboundMessage, _: Arc<InboundMessage>) {}

    #[on_message("own")]
    async fn own(&self, _: Tenant, _: Borrowed<'_>) {}

    #[on_message("injected")]
    async fn injected(&self, _: Inject<Orders>, _: Inject<dyn Clock>) {}

    #[on_message("headers")]
    async fn headers(
        &self,
        #[header("tenant")] _: &str,
        #[header(TENANT)] _: Option<String>,
        #[header("size")] _: u64,
        #[header("region")] _: Region,
        #[header("any")] _: Option<&HeaderValue>,
    ) {
    }

    #[on_error]
    async fn on_failure(
        &self,
        _: Attempt,
        _: &messaging::Failure,
        #[header("tenant")] _: Option<&str>,
        _: Inject<dyn Clock>,
        _: Option<Message<Order>>,
    ) -> Result<OnError, Failure> {
        Ok(OnError::Discard)
    }
}

fn main() {
    let _ = Orders::table();
}
