use std::fmt::{self, Debug};
use std::panic::Location;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::breach::{Breach, Verdict};
use super::stage::Stage;

/// What happened, in order; a case can wait for more.
pub(crate) struct Watched<T> {
    entries: Mutex<Vec<T>>,
    more: Notify,
}

impl<T: Clone + Debug> Watched<T> {
    pub(crate) fn note(&self, entry: T) {
        self.lock().push(entry);
        self.more.notify_waiters();
    }

    pub(crate) fn all(&self) -> Vec<T> {
        self.lock().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Waits until what happened is enough, and gives all of it.
    #[track_caller]
    pub(crate) fn until<'w>(
        &'w self,
        stage: &'w Stage,
        what: impl Into<String>,
        enough: impl Fn(&[T]) -> bool + 'w,
    ) -> impl Future<Output = Verdict<Vec<T>>> + 'w {
        let (what, caller) = (what.into(), Location::caller());
        async move {
            let waited = stage.within(what.clone(), async {
                loop {
                    let mut more = pin!(self.more.notified());
                    more.as_mut().enable();
                    if enough(&self.lock()) {
                        return;
                    }
                    more.await;
                }
            });
            match waited.await {
                Ok(()) => Ok(self.all()),
                Err(_) => {
                    let seen = shorten(format!("{:?}", self.lock()));
                    let within = stage.timing().arrival;
                    Err(Breach::at(format!("{what}: not within {within:?}; seen so far: {seen}"), caller))
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Watched<T> {
    fn default() -> Self {
        Self { entries: Mutex::default(), more: Notify::new() }
    }
}

impl<T: Debug> Debug for Watched<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.entries, f)
    }
}

/// The first 600 characters.
fn shorten(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(600) {
        text.truncate(end);
        text.push('…');
    }
    text
}
