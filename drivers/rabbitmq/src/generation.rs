use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use lapin::message::Delivery as AmqpDelivery;
use lapin::options::{BasicAckOptions, BasicCancelOptions, BasicNackOptions, BasicRejectOptions};
use lapin::{Channel, Consumer};
use messaging::driver::DelayHeap;
use messaging::{Attempt, Delivery, Error, InboundMessage, Settlement, Step};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use crate::convert::{broker_count, decode};
use crate::copies::Copies;
use crate::error;
use crate::intake::Intake;
use crate::ledger::Ledger;
use crate::settle::{Note, RabbitMqSettler, Side};
use crate::topology::Counting;

/// How long an ack may wait for others.
const ACK_DELAY: Duration = Duration::from_millis(5);
/// How long a message is held after a copy of it could not be published.
const COPY_FAILED: Duration = Duration::from_secs(1);
/// How often a channel that delivers nothing more is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How long the broker has to answer that it delivers no more.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);
/// How many deliveries or notes are handled before the other kind is looked at.
const BURST: usize = 64;

/// One channel that consumes: reads its deliveries, and alone writes its acks, nacks and rejects.
pub(crate) struct Generation {
    pub(crate) intake: Arc<Intake>,
    pub(crate) side: Arc<Side>,
    pub(crate) notes: mpsc::UnboundedReceiver<Note>,
    pub(crate) channel: Channel,
    /// Until the broker delivers no more.
    pub(crate) consumer: Option<Consumer>,
    pub(crate) counting: Counting,
    pub(crate) copies: Arc<Copies>,
    pub(crate) ack_batch: usize,
    ledger: Ledger,
    waiting: DelayHeap<(u64, Wait)>,
    acks_due: Option<Instant>,
    stopping: bool,
    delivered: bool,
}

/// What a message waits for.
enum Wait {
    /// To be carried out.
    Due(Settlement),
    /// To be given back, as what was meant for it failed and was told.
    Failed,
}

/// Why a channel delivers no more.
pub(crate) enum Ending {
    /// As was asked for, and everything is settled.
    Stopped,
    /// The broker ended it; what is still open can be settled.
    Cancelled(Box<Generation>),
    /// The channel is gone, and with it the right to settle.
    Lost { error: Error, delivered: bool },
}

/// What a message that comes in through a channel is made of, and what is needed to open one.
pub(crate) struct Opened {
    pub(crate) channel: Channel,
    pub(crate) consumer: Consumer,
    pub(crate) counting: Counting,
    pub(crate) ack_batch: usize,
}

impl Generation {
    pub(crate) fn new(number: u64, intake: Arc<Intake>, copies: Arc<Copies>, opened: Opened) -> Self {
        let (sender, notes) = mpsc::unbounded_channel();
        Self {
            intake,
            side: Arc::new(Side { number, notes: sender, dead: false.into() }),
            notes,
            channel: opened.channel,
            consumer: Some(opened.consumer),
            counting: opened.counting,
            copies,
            ack_batch: opened.ack_batch,
            ledger: Ledger::default(),
            waiting: DelayHeap::default(),
            acks_due: None,
            stopping: false,
            delivered: false,
        }
    }

    /// Delivers and settles until there is nothing more to do.
    pub(crate) async fn run(mut self) -> Ending {
        match self.work(true).await {
            Ok(()) if self.stopping => Ending::Stopped,
            Ok(()) => Ending::Cancelled(Box::new(self)),
            Err(error) => {
                let delivered = self.delivered;
                self.die();
                Ending::Lost { error, delivered }
            }
        }
    }

    /// Settles what is still open after the broker ended the delivery.
    pub(crate) async fn settle_the_rest(mut self) {
        if let Err(error) = self.work(false).await {
            tracing::warn!(queue = %self.intake.queue, error = error.chain(), "the channel was lost");
        }
        self.die();
    }

    /// `consuming` until the broker ends it; otherwise until all is settled.
    async fn work(&mut self, consuming: bool) -> Result<(), Error> {
        loop {
            if self.intake.closed.is_cancelled() {
                return Err(error::closed("settling"));
            }
            if self.intake.stop.is_cancelled() && !self.stopping {
                self.stop().await?;
            }
            if self.consumer.is_none() && (self.ledger.is_empty() || (consuming && !self.stopping)) {
                return Ok(());
            }
            self.write_acks_if_due().await?;
            let wake = self.next_wake();
            tokio::select! {
                () = self.intake.closed.cancelled() => return Err(error::closed("settling")),
                () = self.intake.stop.cancelled(), if !self.stopping => (),
                Some(note) = self.notes.recv() => self.take_notes(note).await?,
                item = next(&mut self.consumer) => self.take_deliveries(item).await?,
                () = sleep_until(wake) => self.take_due().await?,
            }
        }
    }

    fn next_wake(&self) -> Instant {
        let look = Instant::now() + LOOK;
        self.waiting.next_due().into_iter().chain(self.acks_due).fold(look, Instant::min)
    }

    async fn take_due(&mut self) -> Result<(), Error> {
        if !self.channel.status().connected() {
            return Err(error::connection("the channel was closed"));
        }
        while let Some((tag, wait)) = self.waiting.pop_due(Instant::now()) {
            self.end_wait(tag, wait).await?;
        }
        Ok(())
    }

    async fn end_wait(&mut self, tag: u64, wait: Wait) -> Result<(), Error> {
        match wait {
            Wait::Due(settlement) => self.carry_out(tag, settlement).await,
            Wait::Failed => self.give_back(tag, true).await.map(drop),
        }
    }

    async fn take_deliveries(&mut self, first: Option<lapin::Result<AmqpDelivery>>) -> Result<(), Error> {
        let mut item = first;
        for _ in 0..BURST {
            match item {
                Some(Ok(delivery)) => self.take_delivery(delivery).await?,
                Some(Err(error)) => return Err(error::failed(format!("consuming `{}`", self.intake.queue), error)),
                None => {
                    self.consumer = None;
                    return Ok(());
                }
            }
            item = match next(&mut self.consumer).now_or_never() {
                Some(item) => item,
                None => return Ok(()),
            };
        }
        // The last one taken is not to be lost.
        match item {
            Some(Ok(delivery)) => self.take_delivery(delivery).await,
            Some(Err(error)) => Err(error::failed(format!("consuming `{}`", self.intake.queue), error)),
            None => {
                self.consumer = None;
                Ok(())
            }
        }
    }

    async fn take_delivery(&mut self, delivery: AmqpDelivery) -> Result<(), Error> {
        let AmqpDelivery { delivery_tag: tag, redelivered, properties, data, .. } = delivery;
        if self.stopping {
            return self.nack(tag).await;
        }
        self.delivered = true;
        let counted = broker_count(&properties, redelivered, self.counting != Counting::None);
        let (envelope, base) = decode(properties, data, &self.intake.queue, &self.intake.names);
        let attempt = Attempt::new(base.get().saturating_add(counted));
        let message = InboundMessage::new(Arc::clone(&self.intake.queue), envelope, attempt);
        let message = Arc::new(message.parent(Arc::clone(&self.intake.stopping)));
        self.ledger.deliver(tag, Arc::clone(&message));
        let settler = RabbitMqSettler::new(Arc::clone(&self.intake), Arc::clone(&self.side), Arc::clone(&message), tag);
        self.intake.buffer.push(self.side.number, Delivery { message, settler: Box::new(settler) });
        Ok(())
    }

    async fn take_notes(&mut self, first: Note) -> Result<(), Error> {
        if self.intake.stop.is_cancelled()
            && !self.stopping
            && let Err(error) = self.stop().await
        {
            self.tell_lost(first);
            return Err(error);
        }
        let mut note = first;
        for _ in 0..BURST {
            self.take_note(note).await?;
            note = match self.notes.try_recv() {
                Ok(note) => note,
                Err(_) => return Ok(()),
            };
        }
        self.take_note(note).await
    }

    async fn take_note(&mut self, note: Note) -> Result<(), Error> {
        match note {
            Note::Settled { tag, settlement } => {
                let delay = match settlement {
                    Settlement::Retry { step: Step::InProcess(delay), .. } | Settlement::Release { delay } => delay,
                    Settlement::Ack
                    | Settlement::Discard(_)
                    | Settlement::DeadLetter(_)
                    | Settlement::Retry { step: Step::Native(_), .. } => Duration::ZERO,
                };
                self.wait(tag, delay, Wait::Due(settlement)).await
            }
            Note::Dropped { tag } => {
                let started = self.ledger.message(tag).is_some_and(|message| message.has_started());
                let given_back = self.give_back(tag, started).await;
                self.intake.done();
                given_back.map(drop)
            }
            Note::Copied { tag, settlement, result: Ok(()) } => {
                self.ack(tag, settlement);
                Ok(())
            }
            Note::Copied { tag, settlement, result: Err(error) } => {
                if let Some(message) = self.ledger.message(tag) {
                    self.intake.tell(message, &settlement, Err(error));
                }
                self.wait(tag, COPY_FAILED, Wait::Failed).await
            }
        }
    }

    /// Lets a message wait; after the stop, nothing waits any more.
    async fn wait(&mut self, tag: u64, delay: Duration, wait: Wait) -> Result<(), Error> {
        if delay.is_zero() || self.stopping {
            return self.end_wait(tag, wait).await;
        }
        self.waiting.push(DelayHeap::<()>::due(Instant::now(), delay), (tag, wait));
        Ok(())
    }

    async fn carry_out(&mut self, tag: u64, settlement: Settlement) -> Result<(), Error> {
        let (counts, copy) = match settlement {
            Settlement::Ack | Settlement::Discard(_) | Settlement::DeadLetter(_) => {
                self.ack(tag, settlement);
                return Ok(());
            }
            Settlement::Retry { step: Step::Native(_), .. } => (true, true),
            Settlement::Retry { step: Step::InProcess(_), .. } => (true, self.counting != Counting::InPlace),
            Settlement::Release { .. } => (false, self.counting == Counting::Limited),
        };
        if copy {
            if let Some(message) = self.ledger.message(tag) {
                self.copies.make(&self.intake, &self.side, tag, Arc::clone(message), settlement);
            }
            return Ok(());
        }
        match self.give_back(tag, counts).await {
            Ok(Some(message)) => self.intake.tell(&message, &settlement, Ok(())),
            Ok(None) => (),
            Err(error) => {
                self.tell_lost(Note::Settled { tag, settlement });
                return Err(error);
            }
        }
        Ok(())
    }

    fn ack(&mut self, tag: u64, settlement: Settlement) {
        self.ledger.ack(tag, settlement);
        self.acks_due.get_or_insert_with(|| Instant::now() + ACK_DELAY);
    }

    async fn write_acks_if_due(&mut self) -> Result<(), Error> {
        let Some(due) = self.acks_due else { return Ok(()) };
        let enough = self.ledger.unwritten() >= self.ack_batch || !self.ledger.has_open();
        if !enough && !self.stopping && Instant::now() < due {
            return Ok(());
        }
        let acks = self.ledger.acks();
        if let Some(tag) = acks.up_to {
            self.write(self.channel.basic_ack(tag, BasicAckOptions { multiple: true }).await)?;
        }
        for tag in acks.single {
            self.write(self.channel.basic_ack(tag, BasicAckOptions { multiple: false }).await)?;
        }
        self.acks_due = None;
        for (message, settlement) in self.ledger.take_acked() {
            self.intake.tell(&message, &settlement, Ok(()));
        }
        Ok(())
    }

    /// Gives a message back at once, counted or not where the queue makes a difference.
    async fn give_back(&mut self, tag: u64, counts: bool) -> Result<Option<Arc<InboundMessage>>, Error> {
        if self.ledger.message(tag).is_none() {
            return Ok(None);
        }
        if counts {
            self.write(self.channel.basic_reject(tag, BasicRejectOptions { requeue: true }).await)?;
        } else {
            self.nack(tag).await?;
        }
        Ok(self.ledger.give_back(tag))
    }

    async fn nack(&self, tag: u64) -> Result<(), Error> {
        let options = BasicNackOptions { multiple: false, requeue: true };
        self.write(self.channel.basic_nack(tag, options).await)
    }

    fn write(&self, written: lapin::Result<()>) -> Result<(), Error> {
        written.map_err(|error| error::failed(format!("settling a message of `{}`", self.intake.queue), error))
    }

    /// Asks the broker for no more, and ends every wait.
    async fn stop(&mut self) -> Result<(), Error> {
        self.stopping = true;
        if let Some(consumer) = &self.consumer {
            let cancel = self.channel.basic_cancel(consumer.tag(), BasicCancelOptions::default());
            match timeout(CANCEL_LIMIT, cancel).await {
                Ok(Ok(())) => (),
                Ok(Err(error)) => return Err(error::failed("ending a consumer", error)),
                Err(_) => return Err(error::connection("ending a consumer: no answer")),
            }
        }
        let mut waiting: VecDeque<_> = self.waiting.drain().collect();
        while let Some((tag, wait)) = waiting.pop_front() {
            if let Err(error) = self.end_wait(tag, wait).await {
                // `die` tells them.
                let now = Instant::now();
                waiting.into_iter().for_each(|wait| _ = self.waiting.push(now, wait));
                return Err(error);
            }
        }
        Ok(())
    }

    /// The right to settle is gone: says so to whoever holds it or has used it.
    fn die(&mut self) {
        self.side.dead.store(true, Ordering::Release);
        self.intake.buffer.forget(self.side.number);
        for (message, settlement) in self.ledger.take_acked() {
            self.intake.tell(&message, &settlement, Err(error::lost()));
        }
        let waiting: Vec<_> = self.waiting.drain().collect();
        for (tag, wait) in waiting {
            if let (Wait::Due(settlement), Some(message)) = (wait, self.ledger.message(tag)) {
                self.intake.tell(message, &settlement, Err(error::lost()));
            }
        }
        self.notes.close();
        while let Ok(note) = self.notes.try_recv() {
            self.tell_lost(note);
        }
        self.ledger.take_open().for_each(|message| message.cancel());
    }

    fn tell_lost(&self, note: Note) {
        match note {
            Note::Settled { tag, settlement } | Note::Copied { tag, settlement, .. } => {
                match self.ledger.message(tag) {
                    Some(message) => self.intake.tell(message, &settlement, Err(error::lost())),
                    None => self.intake.done(),
                }
            }
            Note::Dropped { .. } => self.intake.done(),
        }
    }
}

/// The next delivery; never, where there is no consumer.
async fn next(consumer: &mut Option<Consumer>) -> Option<lapin::Result<AmqpDelivery>> {
    match consumer {
        Some(consumer) => consumer.next().await,
        None => std::future::pending().await,
    }
}
