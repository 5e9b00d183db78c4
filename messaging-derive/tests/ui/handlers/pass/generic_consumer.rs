#![deny(warnings)]

use messaging::prelude::*;
use std::marker::PhantomData;
use std::sync::Arc;

use messaging::{Consumer, Handlers, Injectable};
use messaging::__private::CONSUMERS;

trait Store<T>: Send + Sync + 'static {
    fn put(&self, value: &T);
}

trait Entity: serde::de::DeserializeOwned + Validate + Send + Sync + 'static {
    const TYPE: &'static str;
}

#[derive(Deserialize, Validate)]
struct Order {
    _id: u64,
}

impl Entity for Order {
    const TYPE: &'static str = "order";
}

#[consumer("entities")]
struct Entities<T, S = dyn Store<T>>
where
    T: Entity,
    S: Store<T> + ?Sized,
{
    store: Arc<S>,
    #[inject(default)]
    of: PhantomData<T>,
}

#[handlers]
impl<T: Entity, S: Store<T> + ?Sized> Entities<T, S> {
    #[on_message(T::TYPE)]
    #[retry(attempts = 3, on(std::fmt::Error))]
    async fn on_entity(&self, Message(entity): Message<T>) -> Result<(), std::fmt::Error> {
        let PhantomData = self.of;
        self.store.put(&entity);
        Ok(())
    }

    #[on_error]
    async fn on_failure(&self, _: &Failure, _: Option<Message<T>>) {}
}

fn main() {
    assert_eq!(<Entities<Order>>::declaration().queue, "entities");
    assert_eq!(<Entities<Order>>::dependencies().len(), 1);
    let _ = <Entities<Order>>::table();
    assert!(CONSUMERS.is_empty());
}
