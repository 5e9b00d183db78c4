#![deny(warnings)]

use messaging::prelude::*;
use std::sync::Arc;

trait OrderRepo: Send + Sync {}

#[derive(Deserialize, Validate)]
struct OrderCreated {
    #[validate(length(min = 1))]
    order_id: String,
    #[validate(range(min = 0.0))]
    total: f64,
}

#[derive(Injectable)]
#[injectable(scope = "request")]
struct Audit;

#[derive(Injectable)]
struct OrderService {
    repo: Arc<dyn OrderRepo>,
    broker: MessageBroker,
}

impl OrderService {
    async fn process(&self, event: &OrderCreated) -> Result<(), std::fmt::Error> {
        let _ = (&self.repo, &self.broker, &event.order_id);
        Ok(())
    }
}

#[consumer("orders", concurrency = 10)]
struct OrderConsumer {
    orders: Arc<OrderService>,
}

#[handlers]
impl OrderConsumer {
    #[on_message("order.created")]
    #[retry(attempts = 5, backoff = exponential, delay = 1s, max_delay = 1min)]
    async fn on_created(&self, event: Message<OrderCreated>) -> Result<(), Failure> {
        if event.total == 0.0 {
            return Err(Failure::non_retryable("nothing to bill"));
        }
        Ok(self.orders.process(&event).await?)
    }

    #[on_message]
    async fn on_other(&self, message: &InboundMessage, #[header("tenant")] tenant: Option<String>, audit: Inject<Audit>) {
        let _ = (message, tenant, audit);
    }

    #[on_error]
    async fn on_failure(&self, failure: &Failure, message: &InboundMessage) -> OnError {
        let _ = (failure, message);
        OnError::DeadLetter
    }
}

fn main() {
    let declaration = <OrderConsumer as messaging::Consumer>::declaration();
    assert_eq!(declaration.queue, "orders");
}
