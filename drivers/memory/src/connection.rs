use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use messaging::{Error, ErrorKind};

const NEW: u8 = 0;
const CONNECTED: u8 = 1;
const CLOSED: u8 = 2;

/// How one driver stands to the queues; closed, it stays closed.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) id: u64,
    state: AtomicU8,
}

impl Connection {
    pub(crate) fn new() -> Self {
        static IDS: AtomicU64 = AtomicU64::new(0);
        Self { id: IDS.fetch_add(1, Ordering::Relaxed), state: AtomicU8::new(NEW) }
    }

    /// Connects, also again.
    pub(crate) fn connect(&self) -> Result<(), Error> {
        match self.state.compare_exchange(NEW, CONNECTED, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) | Err(CONNECTED) => Ok(()),
            Err(_) => Err(closed("connecting")),
        }
    }

    pub(crate) fn close(&self) {
        self.state.store(CLOSED, Ordering::Release);
    }

    pub(crate) fn check_connected(&self, what: &str) -> Result<(), Error> {
        match self.state.load(Ordering::Acquire) {
            CONNECTED => Ok(()),
            NEW => Err(Error::new(ErrorKind::Closed, format!("{what} before the memory driver is connected"))),
            _ => Err(closed(what)),
        }
    }

    pub(crate) fn check_not_closed(&self, what: &str) -> Result<(), Error> {
        if self.state.load(Ordering::Acquire) == CLOSED { Err(closed(what)) } else { Ok(()) }
    }
}

fn closed(what: &str) -> Error {
    Error::new(ErrorKind::Closed, format!("{what} after the memory driver was closed"))
}
