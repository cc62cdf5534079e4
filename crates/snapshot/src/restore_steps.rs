//! The changes of a restore, one after the other.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::change_key::ChangeKey;
use crate::compare::{Change, ChangeKind};
use crate::error::StorageError;
use crate::store::State;
use crate::tree::Node;
use crate::tree_writer::{Expected, Present, TreeWriter, WriteError};

/// What came of the changes of a journal.
#[derive(Debug, Default)]
pub(crate) struct StepOutcome {
    pub(crate) finished: usize,
    pub(crate) conflicts: BTreeSet<PathBuf>,
    pub(crate) failed: Vec<(PathBuf, carrel_fsroot::Error)>,
    /// Entries that are not what the plan says, since something else changed them meanwhile.
    pub(crate) changed: Vec<PathBuf>,
    /// Directories that stay since they are not empty.
    pub(crate) kept: Vec<PathBuf>,
}

impl StepOutcome {
    pub(crate) fn is_whole(&self) -> bool {
        self.failed.is_empty() && self.changed.is_empty()
    }
}

/// What is known about the present state when the changes of a journal are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trusted {
    /// It is that of the plan, which was just compared. What changes all the same is found by its change key.
    Plan,
    /// Each entry has to be looked at.
    Nothing,
}

pub(crate) struct Steps<'a> {
    writer: TreeWriter<'a>,
    trusted: Trusted,
    outcome: StepOutcome,
}

impl<'a> Steps<'a> {
    pub(crate) fn new(writer: TreeWriter<'a>, trusted: Trusted) -> Self {
        Self { writer, trusted, outcome: StepOutcome::default() }
    }

    /// Returns whether the rest is not to be tried, since the changes so far are taken back.
    fn is_over(&self) -> bool {
        self.trusted == Trusted::Plan && !self.outcome.is_whole()
    }

    /// Makes changes: what goes, the deepest first, makes room for what comes, the highest first.
    pub(crate) fn take(
        mut self,
        changes: &[Change],
        state: &mut State,
    ) -> Result<StepOutcome, StorageError> {
        for change in changes.iter().rev() {
            if self.is_over() {
                break;
            }
            let removed = self.remove(change, state);
            self.note(change, removed)?;
        }
        for change in changes {
            if self.is_over() {
                break;
            }
            let done = self.put(change, state);
            self.note(change, done)?;
        }
        Ok(self.finish())
    }

    /// Writes what waits to be written.
    fn finish(mut self) -> StepOutcome {
        if let Err(error) = self.writer.finish() {
            self.outcome.failed.push((error.path().to_owned(), error));
        }
        self.take_results();
        self.outcome
    }

    /// Takes what came of files that were synced and renamed together.
    fn take_results(&mut self) {
        self.outcome.failed.extend(self.writer.take_failures());
        match self.trusted {
            Trusted::Plan => self.outcome.changed.extend(self.writer.take_unexpected()),
            Trusted::Nothing => self.outcome.conflicts.extend(self.writer.take_unexpected()),
        }
    }

    /// Returns what the entry must still be when it is changed.
    fn expected(&self, change: &Change, state: &State) -> Expected {
        let Some(node) = &change.old else { return Expected::Missing };
        let key: Option<ChangeKey> = match self.trusted {
            Trusted::Plan => state.key_of(&change.path),
            Trusted::Nothing => None,
        };
        Expected::Same { key, node: node.clone() }
    }

    /// Returns whether an entry is as the plan says; notes it if not.
    fn is_as_planned(&mut self, change: &Change, expected: &Expected) -> Result<bool, WriteError> {
        let is_directory = matches!(change.old, Some(Node::Directory { .. }));
        if self.trusted == Trusted::Nothing || is_directory {
            return Ok(true);
        }
        let is_expected = self.writer.is_expected(&change.path, expected)?;
        if !is_expected {
            self.outcome.changed.push(change.path.clone());
        }
        Ok(is_expected)
    }

    fn note(&mut self, change: &Change, done: Result<(), WriteError>) -> Result<(), StorageError> {
        match done {
            Ok(()) => Ok(()),
            Err(WriteError::Files(error)) => {
                self.outcome.failed.push((change.path.clone(), error));
                Ok(())
            }
            // The content is gone for good; the other entries are not.
            Err(WriteError::Storage(StorageError::Damaged { .. })) => {
                self.outcome.conflicts.insert(change.path.clone());
                Ok(())
            }
            Err(WriteError::Storage(error)) => Err(error),
        }
    }

    /// Removes what a change removes.
    fn remove(&mut self, change: &Change, state: &State) -> Result<(), WriteError> {
        let (ChangeKind::Deleted | ChangeKind::Type, Some(old)) = (&change.kind, &change.old)
        else {
            return Ok(());
        };
        let is_directory = matches!(old, Node::Directory { .. });
        // A file or link that becomes a file or link is replaced in one step.
        let becomes_directory = matches!(change.new, Some(Node::Directory { .. }));
        if change.kind == ChangeKind::Type && !is_directory && !becomes_directory {
            return Ok(());
        }
        if self.trusted == Trusted::Nothing {
            match self.writer.compare(&change.path, old)? {
                Present::Same | Present::OtherMode => {}
                Present::Missing => return Ok(()),
                Present::Other => {
                    let is_done = match &change.new {
                        Some(new) => self.writer.compare(&change.path, new)? != Present::Other,
                        None => false,
                    };
                    if !is_done {
                        self.outcome.conflicts.insert(change.path.clone());
                    }
                    return Ok(());
                }
            }
        }
        let expected = self.expected(change, state);
        if !self.is_as_planned(change, &expected)? {
            return Ok(());
        }
        if self.writer.remove(&change.path, is_directory)? {
            self.outcome.finished += 1;
        } else {
            self.outcome.kept.push(change.path.clone());
        }
        Ok(())
    }

    /// Makes or changes what a change makes or changes.
    fn put(&mut self, change: &Change, state: &mut State) -> Result<(), WriteError> {
        let Some(new) = &change.new else { return Ok(()) };
        let is_in_the_way = |kept: &PathBuf| change.path.starts_with(kept);
        if self.outcome.conflicts.iter().any(is_in_the_way)
            || (change.kind == ChangeKind::Type && self.outcome.kept.contains(&change.path))
        {
            return Ok(());
        }
        let mut present = None;
        if self.trusted == Trusted::Nothing {
            let found = self.writer.compare(&change.path, new)?;
            present = Some(found);
            let is_as_before = match (&change.old, found) {
                (_, Present::Same) => return Ok(()),
                // Its mode is set, which can be done twice.
                (_, Present::OtherMode) => {
                    self.outcome.finished += 1;
                    return Ok(self.writer.set_mode(&change.path, new)?);
                }
                (_, Present::Missing) => true,
                (Some(old), Present::Other) => {
                    self.writer.compare(&change.path, old)? != Present::Other
                }
                (None, Present::Other) => false,
            };
            if !is_as_before {
                self.outcome.conflicts.insert(change.path.clone());
                return Ok(());
            }
        }
        let mut expected = self.expected(change, state);
        if makes_room(change) || is_done_partly(present, &expected) {
            // What was there was removed in this restore, or in the one that this one finishes.
            expected = Expected::Missing;
        }
        let is_replaced = change.kind != ChangeKind::Mode;
        if is_replaced && !self.is_as_planned(change, &expected)? {
            return Ok(());
        }
        self.outcome.finished += 1;
        if change.kind == ChangeKind::Mode {
            return Ok(self.writer.set_mode(&change.path, new)?);
        }
        self.writer.put(&change.path, new, expected, &mut state.objects)?;
        self.take_results();
        Ok(())
    }
}

/// Returns whether what was there is removed before the new entry is put in its place.
fn makes_room(change: &Change) -> bool {
    let is_directory = |node: &Option<Node>| matches!(node, Some(Node::Directory { .. }));
    change.kind == ChangeKind::Type && (is_directory(&change.old) || is_directory(&change.new))
}

/// Returns whether an entry that a change replaces is missing.
fn is_done_partly(present: Option<Present>, expected: &Expected) -> bool {
    present == Some(Present::Missing) && matches!(expected, Expected::Same { .. })
}
