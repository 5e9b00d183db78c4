//! A consumer whose queue, policy and handler are values: what a case writes in place of `#[consumer]` and `#[handlers]`.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use messaging::app::{Injectable, Key, Resolver};
use messaging::{
    BoxError, BoxFuture, Consumer, DeadLetter, Declaration, Failure, HandlerEntry, HandlerTable, Handlers,
    InboundMessage, MessageContext, OnError, Outcome, RetryPolicy,
};
use tokio::time::Instant;

use super::watched::Watched;

/// How many consumers an application of a case can have.
pub(crate) const SLOTS: usize = 2;

type Handle = Arc<dyn Fn(Arc<InboundMessage>) -> BoxFuture<'static, Outcome> + Send + Sync>;
type Answer = Arc<dyn Fn(Arc<InboundMessage>) -> BoxFuture<'static, Result<OnError, Failure>> + Send + Sync>;
type Decode = fn(MessageContext<'_>) -> Result<(), Failure>;

/// A run of a handler that began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) attempt: u32,
    pub(crate) at: Instant,
}

/// What a consumer did.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// Every run, from its beginning.
    pub(crate) runs: Watched<Run>,
    /// The id of every message that a run handled.
    pub(crate) handled: Watched<String>,
    /// The id of every message that `#[on_error]` was asked about.
    pub(crate) given_up: Watched<String>,
    running: AtomicUsize,
    most: AtomicUsize,
}

impl Journal {
    /// The most that ran at once.
    pub(crate) fn most_at_once(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }

    /// The attempts of the runs of a message, in order.
    pub(crate) fn attempts_of(&self, id: &str) -> Vec<u32> {
        self.runs.all().iter().filter(|run| run.id == id).map(|run| run.attempt).collect()
    }

    fn begin(&self, message: &InboundMessage) -> Running<'_> {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(running, Ordering::SeqCst);
        let id = message.id.as_str().to_owned();
        self.runs.note(Run { id, attempt: message.attempt().get(), at: Instant::now() });
        Running(self)
    }
}

/// A run that goes on.
struct Running<'j>(&'j Journal);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What a consumer of a case is.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) queue: String,
    concurrency: usize,
    policy: RetryPolicy,
    dead_letter: DeadLetter,
    pattern: Option<&'static str>,
    decode: Option<Decode>,
    handle: Handle,
    answer: Option<Answer>,
    pub(crate) journal: Arc<Journal>,
}

impl Script {
    /// Consumes a queue; one worker, one attempt.
    pub(crate) fn new<R>(queue: &str, handle: impl Fn(Arc<InboundMessage>) -> R + Send + Sync + 'static) -> Self
    where
        R: Future<Output = Outcome> + Send + 'static,
    {
        Self {
            queue: queue.to_owned(),
            concurrency: 1,
            policy: RetryPolicy::none(),
            dead_letter: DeadLetter::Default,
            pattern: None,
            decode: None,
            handle: Arc::new(move |message| Box::pin(handle(message))),
            answer: None,
            journal: Arc::default(),
        }
    }

    /// Consumes a queue, and all goes well.
    pub(crate) fn fine(queue: &str) -> Self {
        Self::new(queue, |_| async { Ok(()) })
    }

    pub(crate) fn concurrency(mut self, concurrency: usize) -> Self {
        self.concurrency = concurrency;
        self
    }

    pub(crate) fn retry(mut self, policy: RetryPolicy) -> Self {
        self.policy = policy;
        self
    }

    pub(crate) fn no_dead_letter(mut self) -> Self {
        self.dead_letter = DeadLetter::None;
        self
    }

    /// Handles that type alone.
    pub(crate) fn only(mut self, pattern: &'static str) -> Self {
        self.pattern = Some(pattern);
        self
    }

    /// Decodes the body first, as a parameter of the handler would.
    pub(crate) fn decoding(mut self, decode: Decode) -> Self {
        self.decode = Some(decode);
        self
    }

    pub(crate) fn on_error<R>(mut self, answer: impl Fn(Arc<InboundMessage>) -> R + Send + Sync + 'static) -> Self
    where
        R: Future<Output = Result<OnError, Failure>> + Send + 'static,
    {
        self.answer = Some(Arc::new(move |message| Box::pin(answer(message))));
        self
    }
}

thread_local! {
    /// What the consumers of the application that is being created are. A declaration is a function without an argument,
    /// and a case creates its applications one after the other, on a thread of its own.
    static SCRIPTS: RefCell<[Option<Script>; SLOTS]> = const { RefCell::new([const { None }; SLOTS]) };
}

/// Says what the consumers of the next application on this thread are.
pub(crate) fn declare(scripts: &[Script]) {
    SCRIPTS.with_borrow_mut(|slots| {
        for (index, slot) in slots.iter_mut().enumerate() {
            *slot = scripts.get(index).cloned();
        }
    });
}

fn declared<T>(slot: usize, read: impl FnOnce(&Script) -> T) -> T {
    SCRIPTS.with_borrow(|slots| match &slots[slot] {
        Some(script) => read(script),
        None => panic!("no consumer {slot} is declared on this thread"),
    })
}

/// The consumer that plays a script.
pub(crate) struct Scripted<const SLOT: usize>(Script);

impl<const SLOT: usize> Injectable for Scripted<SLOT> {
    fn dependencies() -> Vec<Key> {
        Vec::new()
    }

    fn construct(_: &mut Resolver<'_>) -> Result<Self, BoxError> {
        Ok(Self(declared(SLOT, Script::clone)))
    }
}

impl<const SLOT: usize> Consumer for Scripted<SLOT> {
    fn declaration() -> Declaration {
        declared(SLOT, |script| {
            Declaration::new(script.queue.as_str())
                .concurrency(script.concurrency)
                .dead_letter(script.dead_letter.clone())
        })
    }
}

impl<const SLOT: usize> Handlers for Scripted<SLOT> {
    fn table() -> HandlerTable<Self> {
        declared(SLOT, |script| {
            let mut handler =
                HandlerEntry::new("handle", |_| (), |consumer: &Self, context| Box::pin(consumer.run(context)));
            handler = handler.retry(script.policy);
            if let Some(pattern) = script.pattern {
                handler = handler.pattern(pattern);
            }
            let table = HandlerTable::new().handler(handler);
            match &script.answer {
                None => table,
                Some(_) => table.on_error(|_| (), |consumer, _, context| Box::pin(consumer.give_up(context))),
            }
        })
    }
}

impl<const SLOT: usize> Scripted<SLOT> {
    async fn run(&self, context: MessageContext<'_>) -> Outcome {
        let Script { decode, handle, journal, .. } = &self.0;
        let message = context.message();
        if let Some(decode) = decode {
            decode(context)?;
        }
        let running = journal.begin(message);
        let outcome = handle(Arc::clone(message)).await;
        drop(running);
        if outcome.is_ok() {
            journal.handled.note(message.id.as_str().to_owned());
        }
        outcome
    }

    async fn give_up(&self, context: MessageContext<'_>) -> Result<OnError, Failure> {
        let message = context.message();
        self.0.journal.given_up.note(message.id.as_str().to_owned());
        match &self.0.answer {
            Some(answer) => answer(Arc::clone(message)).await,
            None => Ok(OnError::DeadLetter),
        }
    }
}
