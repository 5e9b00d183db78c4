//! What the tests share: a log that handlers write to, and an application around the memory driver.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use messaging::{Application, ApplicationBuilder, Consumer, MessagingOptions, MessagingPlugin, OutboundMessage};
use messaging_memory::MemoryDriver;

/// What handlers did, in order.
#[derive(Debug, Default)]
pub struct Log(Mutex<Vec<String>>);

impl Log {
    pub fn note(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub fn count(&self, text: &str) -> usize {
        self.lines().iter().filter(|line| *line == text).count()
    }
}

/// A driver, a log and a running application with one consumer.
pub struct Rig {
    pub driver: MemoryDriver,
    pub log: Arc<Log>,
    pub app: Application,
}

pub fn builder<C: Consumer>(options: MessagingOptions, log: &Arc<Log>) -> ApplicationBuilder {
    Application::builder().shared(Arc::clone(log)).plugin(MessagingPlugin::configure(options).consumer::<C>())
}

impl Rig {
    pub async fn start<C: Consumer>() -> Self {
        Self::start_with::<C>(MemoryDriver::new(), |options| options).await
    }

    pub async fn start_with<C: Consumer>(
        driver: MemoryDriver,
        options: impl FnOnce(MessagingOptions) -> MessagingOptions,
    ) -> Self {
        let log = Arc::new(Log::default());
        let app = builder::<C>(options(MessagingOptions::new(driver.clone())), &log).create().await.unwrap();
        app.start().await.unwrap();
        Self { driver, log, app }
    }

    /// Sends a JSON body of that type to `orders`.
    pub fn send(&self, message_type: &str, body: &str) {
        self.driver.send(message(message_type, body));
    }
}

pub fn message(message_type: &str, body: &str) -> OutboundMessage {
    OutboundMessage::raw("orders", body.to_owned()).message_type(message_type)
}
