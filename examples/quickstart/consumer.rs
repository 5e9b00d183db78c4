use messaging::prelude::*;
use validator::ValidationError;

#[derive(Deserialize, Validate)]
pub(crate) struct OrderCreated {
    #[validate(length(min = 1))]
    order_id: String,
    #[validate(range(max = 1_000_000.0), custom(function = "finite"))]
    total: f64,
}

#[derive(Deserialize, Validate)]
pub(crate) struct OrderCancelled {
    #[validate(length(min = 1))]
    order_id: String,
}

fn finite(total: f64) -> Result<(), ValidationError> {
    if total.is_finite() { Ok(()) } else { Err(ValidationError::new("finite")) }
}

/// Consumes `orders`; each type has its handler.
#[consumer("orders")]
pub(crate) struct OrderConsumer;

#[handlers]
impl OrderConsumer {
    #[on_message("order.created")]
    #[retry(attempts = 3, backoff = exponential, delay = 100ms)]
    async fn on_created(&self, order: Message<OrderCreated>, attempt: Attempt) -> Result<(), Failure> {
        if order.total < 0.0 {
            return Err(Failure::non_retryable(format!("order {} has a negative total", order.order_id)));
        }
        if order.order_id.starts_with("poison") {
            return Err(format!("nobody can bill {}", order.order_id).into());
        }
        if order.order_id.starts_with("flaky") && attempt.get() <= 2 {
            return Err(format!("the billing service did not answer for {}", order.order_id).into());
        }
        Ok(())
    }

    #[on_message("order.cancelled")]
    async fn on_cancelled(&self, order: Message<OrderCancelled>) {
        let _cancelled = &order.order_id;
    }

    /// Whatever else happens to an order; the payload is not looked at.
    #[on_message("order.*")]
    async fn on_other(&self, _payload: Bytes) {}

    /// Asked when a message will not be retried any more.
    #[on_error]
    async fn on_failure(&self, #[header("droppable")] droppable: Option<String>) -> OnError {
        if droppable.as_deref() == Some("yes") { OnError::Discard } else { OnError::DeadLetter }
    }
}
