//! What is built for one delivery: slots, and the plan that fills them.
//!
//! The plan is made at boot. Opening a scope walks it: no look-up by type, no lock, no recursion.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::injectable::Key;
use super::provider::{Make, Reader};
use crate::error::BoxError;

/// An instance of anything.
pub(crate) type Instance = Arc<dyn Any + Send + Sync>;

/// The instances of one scope; a small one lives without an allocation of its own.
#[derive(Default)]
pub struct Slots(SmallVec<[Option<Instance>; 6]>);

impl Slots {
    /// Puts an instance into its slot.
    pub(crate) fn put(&mut self, slot: usize, instance: Instance) {
        match self.0.get_mut(slot) {
            Some(empty) => *empty = Some(instance),
            None => {
                while self.0.len() < slot {
                    self.0.push(None);
                }
                self.0.push(Some(instance));
            }
        }
    }

    /// What was built, the last built first.
    pub(crate) fn into_instances(self) -> impl Iterator<Item = Instance> {
        self.0.into_iter().rev().flatten()
    }

    pub(crate) fn get(&self, slot: usize) -> Option<&Instance> {
        self.0.get(slot).and_then(Option::as_ref)
    }
}

impl fmt::Debug for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Slots").field(&self.0.len()).finish()
    }
}

/// Where one dependency comes from.
#[derive(Clone)]
pub(crate) struct Input {
    pub(crate) key: Key,
    pub(crate) source: Source,
}

#[derive(Clone)]
pub(crate) enum Source {
    /// A singleton: an `Arc<T>`, as `Any`.
    Ready(Arc<dyn Any + Send + Sync>),
    /// An instance of this scope, and a `Reader<T>` that makes an `Arc<T>` of it.
    Slot(usize, Arc<dyn Any + Send + Sync>),
}

impl Input {
    pub(crate) fn read<T: ?Sized + Send + Sync + 'static>(&self, slots: &Slots) -> Option<Arc<T>> {
        match &self.source {
            Source::Ready(instance) => instance.downcast_ref::<Arc<T>>().cloned(),
            Source::Slot(slot, reader) => reader.downcast_ref::<Reader<T>>()?.read(slots.get(*slot)?),
        }
    }
}

/// Hands a constructor its dependencies, one after the other.
pub struct Resolver<'s> {
    inputs: std::slice::Iter<'s, Input>,
    slots: &'s Slots,
}

impl<'s> Resolver<'s> {
    pub(crate) fn new(inputs: &'s [Input], slots: &'s Slots) -> Self {
        Self { inputs: inputs.iter(), slots }
    }

    /// The next dependency.
    ///
    /// # Errors
    /// It is not there: the constructor takes something else than it declared.
    #[allow(clippy::should_implement_trait)]
    pub fn next<T: ?Sized + Send + Sync + 'static>(&mut self) -> Result<Arc<T>, BoxError> {
        self.inputs
            .next()
            .and_then(|input| input.read(self.slots))
            .ok_or_else(|| format!("{} is not among the declared dependencies", Key::of::<T>()).into())
    }
}

impl fmt::Debug for Resolver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").field("left", &self.inputs.len()).finish()
    }
}

/// One instance to build.
#[derive(Clone)]
pub(crate) struct Step {
    pub(crate) key: Key,
    pub(crate) slot: usize,
    pub(crate) make: Make,
    pub(crate) inputs: Arc<[Input]>,
}

/// What must be built, in order, and what is then asked for.
#[derive(Clone, Default)]
pub(crate) struct Plan {
    steps: Arc<[Step]>,
    inputs: Arc<[Input]>,
    has_slots: bool,
}

impl Plan {
    pub(crate) fn new(steps: Vec<Step>, inputs: Vec<Input>) -> Self {
        let from_slot = inputs.iter().any(|input| matches!(input.source, Source::Slot(..)));
        Self { has_slots: from_slot || !steps.is_empty(), steps: steps.into(), inputs: inputs.into() }
    }

    /// Whether anything comes from the scope and not from the application.
    pub(crate) fn has_slots(&self) -> bool {
        self.has_slots
    }

    /// Builds what is not there yet.
    pub(crate) async fn fill(&self, slots: &mut Slots) -> Result<(), BuildError> {
        for step in &*self.steps {
            if slots.get(step.slot).is_none() {
                let instance = step.make.build(step.key, &mut Resolver::new(&step.inputs, slots))?.await?;
                slots.put(step.slot, instance);
            }
        }
        Ok(())
    }

    pub(crate) fn read<T: ?Sized + Send + Sync + 'static>(&self, slots: &Slots) -> Option<Arc<T>> {
        let key = Key::of::<T>();
        self.inputs.iter().find(|input| input.key == key)?.read(slots)
    }
}

/// Something could not be built.
#[derive(Debug)]
pub(crate) struct BuildError {
    pub(crate) key: Key,
    pub(crate) source: BoxError,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot build {}", self.key)
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}
