use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use lapin::{Channel, Connection, ConnectionProperties, Event};
use messaging::{Error, ErrorKind};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::config::RabbitMqConfig;
use crate::error;

/// How long a connection must have lived for the next loss to be met with the shortest wait.
const STEADY: Duration = Duration::from_secs(30);
/// How often a connection is looked at that tells nothing.
const LOOK: Duration = Duration::from_millis(500);
/// How long the broker has to answer to a close.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// One supervised connection: opened again, with growing waits, until it is closed.
pub(crate) struct Link {
    config: Arc<RabbitMqConfig>,
    direction: &'static str,
    state: watch::Sender<State>,
    closing: CancellationToken,
}

#[derive(Clone)]
enum State {
    Down,
    Closed,
    Up { connection: Arc<Connection>, blocked: bool },
}

impl Link {
    pub(crate) fn new(config: Arc<RabbitMqConfig>, direction: &'static str, closing: CancellationToken) -> Arc<Self> {
        Arc::new(Self { config, direction, state: watch::Sender::new(State::Down), closing })
    }

    /// Opens the first connection, and lets it be supervised from then on.
    pub(crate) async fn start(self: &Arc<Self>) -> Result<(), Error> {
        let until = Instant::now() + self.config.wait_for_broker;
        let mut backoff = Backoff::default();
        let connection = loop {
            match self.open().await {
                Ok(connection) => break connection,
                Err(error) if error.kind() != ErrorKind::Connection || Instant::now() >= until => return Err(error),
                Err(error) => tracing::warn!(error = error.chain(), "waiting for RabbitMQ"),
            }
            tokio::select! {
                () = sleep(backoff.next()) => (),
                () = self.closing.cancelled() => return Err(error::closed("connecting")),
            }
        };
        tokio::spawn(Arc::clone(self).supervise(connection));
        Ok(())
    }

    /// A channel of the connection as it is now, or as it will be; it waits for one that is down or blocked.
    pub(crate) async fn channel(&self) -> Result<Channel, Error> {
        let connection = self.ready().await?;
        self.bounded("opening a channel", connection.create_channel()).await
    }

    /// A channel, or an error at once where the connection is down.
    pub(crate) async fn channel_now(&self) -> Result<Channel, Error> {
        let connection = match &*self.state.borrow() {
            State::Up { connection, .. } => Arc::clone(connection),
            State::Down | State::Closed => {
                return Err(error::connection(format!("not connected to {}", self.config.address())));
            }
        };
        self.bounded("opening a channel", connection.create_channel()).await
    }

    /// Waits until there is a connection that the broker does not block.
    pub(crate) async fn ready(&self) -> Result<Arc<Connection>, Error> {
        let mut states = self.state.subscribe();
        let up = states.wait_for(|state| matches!(state, State::Up { blocked: false, .. }));
        tokio::select! {
            biased;
            () = self.closing.cancelled() => Err(error::closed("opening a channel")),
            state = up => match state.as_deref() {
                Ok(State::Up { connection, .. }) => Ok(Arc::clone(connection)),
                Ok(State::Down | State::Closed) | Err(_) => Err(error::closed("opening a channel")),
            },
        }
    }

    /// Waits until a link that was started, and is to be closed, is closed.
    pub(crate) async fn closed(&self) {
        let _ = self.state.subscribe().wait_for(|state| matches!(state, State::Closed)).await;
    }

    /// Bounds an operation of the broker, and says what it was.
    pub(crate) async fn bounded<T>(
        &self,
        what: &str,
        operation: impl Future<Output = lapin::Result<T>>,
    ) -> Result<T, Error> {
        let limit = self.config.connect_timeout;
        match timeout(limit, operation).await {
            Ok(result) => result.map_err(|error| error::failed(what, error)),
            Err(_) => Err(error::connection(format!("{what}: no answer within {limit:?}"))),
        }
    }

    async fn open(&self) -> Result<Arc<Connection>, Error> {
        let name = format!("{}/{}", self.config.connection_name, self.direction);
        let properties = ConnectionProperties::default()
            .with_connection_name(name.into())
            .configure_backoff(|backoff| backoff.with_max_times(0));
        let what = format!("connecting to {}, vhost `{}`", self.config.address(), self.config.uri.vhost);
        let connecting = Connection::connect_uri(self.config.uri.clone(), properties);
        Ok(Arc::new(self.bounded(&what, connecting).await?))
    }

    async fn supervise(self: Arc<Self>, first: Arc<Connection>) {
        let mut backoff = Backoff::default();
        let mut connection = first;
        loop {
            let since = Instant::now();
            self.state.send_replace(State::Up { connection: Arc::clone(&connection), blocked: false });
            let why = self.watch(&connection).await;
            self.state.send_replace(State::Down);
            if self.closing.is_cancelled() {
                close(&connection).await;
                break;
            }
            tracing::warn!(connection = self.direction, why, "the connection to RabbitMQ was lost");
            if since.elapsed() > STEADY {
                backoff.reset();
            }
            drop(connection);
            connection = match self.reopen(&mut backoff).await {
                Some(connection) => connection,
                None => break,
            };
            tracing::info!(connection = self.direction, "connected to RabbitMQ again");
        }
        self.state.send_replace(State::Closed);
    }

    /// Until the connection is of no use any more, or shall be closed.
    async fn watch(&self, connection: &Arc<Connection>) -> String {
        let mut events = Box::pin(connection.events_listener());
        loop {
            let event = tokio::select! {
                () = self.closing.cancelled() => return "it is being closed".into(),
                event = events.next() => event,
                () = sleep(LOOK) => None,
            };
            match event {
                Some(Event::ConnectionBlocked(reason)) => self.note_blocked(connection, Some(&reason)),
                Some(Event::ConnectionUnblocked) => self.note_blocked(connection, None),
                Some(Event::Error(error)) if !connection.status().connected() => return error.to_string(),
                _ if !connection.status().connected() => return "it was closed".into(),
                _ => (),
            }
        }
    }

    fn note_blocked(&self, connection: &Arc<Connection>, reason: Option<&str>) {
        match reason {
            Some(reason) => tracing::warn!(connection = self.direction, reason, "RabbitMQ blocks the connection"),
            None => tracing::info!(connection = self.direction, "RabbitMQ does not block the connection any more"),
        }
        self.state.send_replace(State::Up { connection: Arc::clone(connection), blocked: reason.is_some() });
    }

    async fn reopen(&self, backoff: &mut Backoff) -> Option<Arc<Connection>> {
        loop {
            tokio::select! {
                () = self.closing.cancelled() => return None,
                () = sleep(backoff.next()) => (),
            }
            tokio::select! {
                () = self.closing.cancelled() => return None,
                opened = self.open() => match opened {
                    Ok(connection) => return Some(connection),
                    Err(error) => tracing::warn!(error = error.chain(), "cannot connect to RabbitMQ"),
                },
            }
        }
    }
}

/// Closes a connection in order, where the broker answers in time.
async fn close(connection: &Connection) {
    let mut events = Box::pin(connection.events_listener());
    // The broker ends the socket with its answer. Where the client sees the end first it calls that an error, and leaves
    // who waits for the answer waiting.
    let failed = async {
        while let Some(event) = events.next().await {
            if matches!(event, Event::Error(_)) {
                return;
            }
        }
    };
    let closed = async {
        tokio::select! {
            _ = connection.close(200, "closed".into()) => (),
            () = failed => (),
        }
    };
    let _ = timeout(CLOSE_LIMIT, closed).await;
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &*self.state.borrow() {
            State::Down => "down",
            State::Closed => "closed",
            State::Up { blocked: true, .. } => "blocked",
            State::Up { blocked: false, .. } => "up",
        };
        f.debug_struct("Link").field("direction", &self.direction).field("state", &state).finish_non_exhaustive()
    }
}
