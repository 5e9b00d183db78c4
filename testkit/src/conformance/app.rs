use std::sync::Arc;
use std::time::Duration;

use messaging::{
    Application, BootError, Counts, Event, MessageBroker, MessagingDriver, MessagingOptions, MessagingPlugin,
    QueueHealth, Settlement,
};

use super::breach::{Breach, Verdict};
use super::script::{Script, Scripted, declare};
use super::stage::Stage;
use super::watched::Watched;

/// What an application told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    Settled { id: String, settlement: Settlement },
    SettlementFailed { id: String },
    CopyFailed { id: String },
    Fault,
    Healed,
    Other(String),
}

impl From<&Event<'_>> for Happened {
    fn from(event: &Event<'_>) -> Self {
        match event {
            Event::Settled { message, settlement } => {
                Self::Settled { id: message.id.as_str().to_owned(), settlement: **settlement }
            }
            Event::SettlementFailed { message, .. } => Self::SettlementFailed { id: message.id.as_str().to_owned() },
            Event::CopyFailed { message, .. } => Self::CopyFailed { id: message.id.as_str().to_owned() },
            Event::Fault { .. } => Self::Fault,
            Event::Healed { .. } => Self::Healed,
            other @ (Event::WorkerFailed { .. } | Event::Ended { .. } | _) => Self::Other(format!("{other:?}")),
        }
    }
}

/// An application that is being described.
pub(crate) struct AppBuilder {
    stage: Stage,
    options: MessagingOptions,
    scripts: Vec<Script>,
}

/// A started application of a case.
pub(crate) struct App {
    stage: Stage,
    application: Application,
    /// What it told, of all its queues.
    pub(crate) events: Arc<Watched<Happened>>,
    grace: Duration,
}

/// How long running handlers are awaited at a stop, where a case says nothing.
const GRACE: Duration = Duration::from_secs(5);

impl AppBuilder {
    pub(super) fn new(stage: Stage, driver: Arc<dyn MessagingDriver>) -> Self {
        let options = MessagingOptions::from(driver)
            .requeue_delay(Duration::from_millis(200))
            .copy_timeout(Duration::from_secs(5))
            .grace(GRACE);
        Self { stage, options, scripts: Vec::new() }
    }

    pub(crate) fn options(mut self, set: impl FnOnce(MessagingOptions) -> MessagingOptions) -> Self {
        self.options = set(self.options);
        self
    }

    pub(crate) fn consume(mut self, script: &Script) -> Self {
        self.scripts.push(script.clone());
        self
    }

    /// Checks it, and connects to nothing.
    pub(crate) async fn create(self) -> Verdict<Result<(Application, Arc<Watched<Happened>>), BootError>> {
        let Self { stage, options, scripts } = self;
        for script in &scripts {
            stage.dead_letter_queue(&script.queue).await?;
        }
        declare(&scripts);
        let events = Arc::<Watched<Happened>>::default();
        let noted = Arc::clone(&events);
        let options = options.on_event(move |event| noted.note(Happened::from(event)));
        let plugin = MessagingPlugin::configure(options);
        let plugin = match scripts.len() {
            0 => plugin,
            1 => plugin.consumer::<Scripted<0>>(),
            _ => plugin.consumer::<Scripted<0>>().consumer::<Scripted<1>>(),
        };
        let created =
            stage.within("the application is created", Application::builder().plugin(plugin).create()).await?;
        Ok(created.map(|application| (application, events)))
    }

    /// Creates and starts it.
    #[track_caller]
    pub(crate) fn start(self) -> impl Future<Output = Verdict<App>> {
        let caller = std::panic::Location::caller();
        async move {
            let stage = self.stage.clone();
            let refused = |error: BootError| Breach::at(format!("the application does not start: {error}"), caller);
            let (application, events) = self.create().await?.map_err(refused)?;
            stage.within("the application starts", application.start()).await?.map_err(refused)?;
            Ok(App { stage, application, events, grace: GRACE })
        }
    }
}

impl App {
    /// Says how long this application waits for handlers, where its options say something else than usual.
    pub(crate) fn graced(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    pub(crate) fn application(&self) -> &Application {
        &self.application
    }

    /// Stops it, within the bound that its options give: grace, a second for who is cut off, flush, close.
    pub(crate) async fn stop(&self) -> Verdict {
        let bound = self.grace + Duration::from_secs(1 + 5 + 5) + self.stage.timing().late;
        self.stage.within_time(bound, "the application stops", self.application.stop()).await
    }

    /// How its only queue is.
    pub(crate) async fn health(&self) -> Verdict<QueueHealth> {
        let broker = self.application.get::<MessageBroker>().await;
        let broker = broker.map_err(|error| Breach::new(format!("no broker to ask for health: {error}")))?;
        broker.health().queues.into_iter().next().ok_or_else(|| Breach::new("health knows no queue"))
    }

    pub(crate) async fn counts(&self) -> Verdict<Counts> {
        Ok(self.health().await?.counts)
    }

    /// Waits until a message was settled for good, and gives how.
    pub(crate) async fn ended(&self, id: &str) -> Verdict<Settlement> {
        let events =
            self.events.until(&self.stage, format!("`{id}` ends"), |events| end_of(events, id).is_some()).await?;
        end_of(&events, id).ok_or_else(|| Breach::new("it ended, and then it had not"))
    }

    /// Waits until so many messages were settled for good.
    pub(crate) async fn all_ended(&self, ids: &[String]) -> Verdict {
        let what = format!("each of {} messages ends", ids.len());
        let all = |events: &[Happened]| ids.iter().all(|id| end_of(events, id).is_some());
        self.events.until(&self.stage, what, all).await.map(drop)
    }
}

fn end_of(events: &[Happened], of: &str) -> Option<Settlement> {
    events.iter().find_map(|event| {
        let Happened::Settled { id, settlement } = event else { return None };
        let ends = !matches!(settlement, Settlement::Retry { .. } | Settlement::Release { .. });
        (ends && id == of).then_some(*settlement)
    })
}
