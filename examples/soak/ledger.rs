use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What was confirmed and how it ended, a line each; what is written survives the death of the process.
pub(crate) struct Ledger {
    run: String,
    seed: u64,
    book: Mutex<Book>,
}

struct Book {
    file: File,
    confirmed: HashSet<u64>,
    /// How each one ended first: handled, or dead-lettered.
    ended: HashMap<u64, bool>,
    duplicates: u64,
    publish_errors: u64,
}

/// How far a run is.
pub(crate) struct Progress {
    confirmed: usize,
    ended: usize,
    duplicates: u64,
    publish_errors: u64,
}

impl Ledger {
    pub(crate) fn create(path: &Path, seed: u64) -> Result<Self, String> {
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        let mut file = file.map_err(|error| format!("cannot create the ledger {}: {error}", path.display()))?;
        let run = messaging::MessageId::random().to_string();
        writeln!(file, "run {run} {seed}").map_err(|error| error.to_string())?;
        Ok(Self::new(run, seed, file))
    }

    /// Reads the ledger of a run that was killed, and goes on writing it.
    pub(crate) fn resume(path: &Path) -> Result<Self, String> {
        let unreadable = |error: io::Error| format!("cannot read the ledger {}: {error}", path.display());
        let file = OpenOptions::new().read(true).append(true).open(path).map_err(unreadable)?;
        let mut text = String::new();
        (&file).read_to_string(&mut text).map_err(unreadable)?;
        // The process may have died in the middle of its last line: half a number is another number.
        text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
        let mut lines = text.lines();
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some("run"), Some(run), Some(Ok(seed))) = (words.next(), words.next(), words.next().map(str::parse))
        else {
            return Err(format!("{} is no ledger of a soak run", path.display()));
        };
        file.set_len(text.len() as u64).map_err(unreadable)?;
        let ledger = Self::new(run.to_owned(), seed, file);
        for line in lines {
            if let Some((what, Ok(number))) = line.split_once(' ').map(|(what, number)| (what, number.parse())) {
                ledger.book().enter(what, number);
            }
        }
        Ok(ledger)
    }

    fn new(run: String, seed: u64, file: File) -> Self {
        let book = Book { file, confirmed: HashSet::new(), ended: HashMap::new(), duplicates: 0, publish_errors: 0 };
        Self { run, seed, book: Mutex::new(book) }
    }

    pub(crate) fn run(&self) -> &str {
        &self.run
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn is_confirmed(&self, number: u64) -> bool {
        self.book().confirmed.contains(&number)
    }

    pub(crate) fn confirmed(&self, number: u64) -> io::Result<()> {
        self.book().write("confirmed", number)
    }

    pub(crate) fn handled(&self, number: u64) -> io::Result<()> {
        self.book().write("handled", number)
    }

    pub(crate) fn dead_lettered(&self, number: u64) -> io::Result<()> {
        self.book().write("dead-lettered", number)
    }

    pub(crate) fn publish_failed(&self) {
        self.book().publish_errors += 1;
    }

    pub(crate) fn progress(&self) -> Progress {
        let book = self.book();
        Progress {
            confirmed: book.confirmed.len(),
            ended: book.ended.len(),
            duplicates: book.duplicates,
            publish_errors: book.publish_errors,
        }
    }

    pub(crate) fn is_done(&self, messages: u64) -> bool {
        let book = self.book();
        book.confirmed.len() as u64 >= messages && book.open() == 0
    }

    pub(crate) fn lost(&self) -> u64 {
        self.book().open()
    }

    pub(crate) fn unconfirmed(&self, messages: u64) -> u64 {
        messages.saturating_sub(self.book().confirmed.len() as u64)
    }

    pub(crate) fn summary(&self) -> String {
        let book = self.book();
        let handled = book.ended.values().filter(|handled| **handled).count();
        format!(
            "soak: confirmed {}, handled {handled}, dead-lettered {}, lost {}, duplicates {}",
            book.confirmed.len(),
            book.ended.len() - handled,
            book.open(),
            book.duplicates
        )
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// One write for a line, straight to the file: the page cache outlives the process.
    fn write(&mut self, what: &str, number: u64) -> io::Result<()> {
        self.file.write_all(format!("{what} {number}\n").as_bytes())?;
        self.enter(what, number);
        Ok(())
    }

    fn enter(&mut self, what: &str, number: u64) {
        if what == "confirmed" {
            self.confirmed.insert(number);
        } else if let Entry::Vacant(first) = self.ended.entry(number) {
            first.insert(what == "handled");
        } else {
            self.duplicates += 1;
        }
    }

    /// How many are confirmed and have not ended.
    fn open(&self) -> u64 {
        self.confirmed.iter().filter(|number| !self.ended.contains_key(number)).count() as u64
    }
}

impl Progress {
    /// What only grows, and grows by nothing but progress: a publish that fails again is none.
    pub(crate) fn steps(&self) -> usize {
        self.confirmed + self.ended
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { confirmed, ended, duplicates, publish_errors } = self;
        write!(f, "confirmed {confirmed}, ended {ended}, duplicates {duplicates}, publish errors {publish_errors}")
    }
}
