use super::boot_error::BootError;
#[cfg(unix)]
use crate::violation::{Violation, ViolationKind};

/// The operator's wish to stop: SIGINT and SIGTERM, or Ctrl-C where there are no signals.
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    pub(super) fn listen() -> Result<Self, BootError> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt()).map_err(refused)?,
            terminate: signal(SignalKind::terminate()).map_err(refused)?,
        })
    }

    #[cfg(not(unix))]
    pub(super) fn listen() -> Result<Self, BootError> {
        Ok(Self {})
    }

    #[cfg(unix)]
    pub(super) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => (),
            _ = self.terminate.recv() => (),
        }
    }

    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}

#[cfg(unix)]
fn refused(error: std::io::Error) -> BootError {
    let problem = format!("cannot listen for signals: {error}");
    BootError::from(vec![Violation::new(ViolationKind::Options, problem, "use `start` and `stop` instead of `run`")])
}
