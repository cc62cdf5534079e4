//! The difference between two entries of one name.

use std::path::Path;

use carrel_fsroot::{Error, FileKind, Metadata, Problem, Root};

use crate::change::{ChangeKind, Node};
use crate::contents;
use crate::overlay::{Attributes, Values};
use crate::tree::is_gone;

/// The permission bits of a copy that are compared: all but set-user-id, which is not copied.
pub(crate) const COPIED_MODE: u32 = 0o3777;

/// The tree of a fork, by its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Upper,
    Copy,
}

/// An entry under one name on both sides.
pub(crate) struct Sides<'s> {
    pub(crate) name: &'s Path,
    pub(crate) base: &'s Root,
    pub(crate) old: &'s Metadata,
    pub(crate) source: &'s Root,
    pub(crate) new: &'s Metadata,
    pub(crate) form: Form,
}

impl Sides<'_> {
    /// Compares two entries. `compared_bytes` is what may still be read of files.
    pub(crate) fn difference(
        &self,
        old: &Node,
        new: &Node,
        attributes: &Attributes,
        compared_bytes: &mut u64,
    ) -> Result<Option<ChangeKind>, Error> {
        let mask = match self.form {
            Form::Upper => 0o7777,
            Form::Copy => COPIED_MODE,
        };
        let by_mode = |old: u32, new: u32| ((old ^ new) & mask != 0).then_some(ChangeKind::Mode);
        let difference = match (old, new) {
            (Node::Link { .. }, Node::Link { .. }) => {
                return Ok((old != new).then_some(ChangeKind::Modified));
            }
            (Node::Special(old), Node::Special(new)) if old == new => return Ok(None),
            (Node::Directory { mode }, Node::Directory { mode: new }) => by_mode(*mode, *new),
            (Node::File { mode, size }, Node::File { mode: new, size: new_size }) => {
                if size != new_size || !self.is_same_content(*size, compared_bytes)? {
                    Some(ChangeKind::Modified)
                } else {
                    by_mode(*mode, *new)
                }
            }
            _ => Some(ChangeKind::Type),
        };
        if difference.is_some() || self.has_same_attributes(attributes)? {
            return Ok(difference);
        }
        Ok(Some(ChangeKind::Attributes))
    }

    /// Compares two files of the same length. One that may not be read counts as modified.
    fn is_same_content(&self, size: u64, compared_bytes: &mut u64) -> Result<bool, Error> {
        if size == 0 {
            return Ok(true);
        }
        let Some(left) = compared_bytes.checked_sub(size) else { return Ok(false) };
        *compared_bytes = left;
        let open = |directory: &Root| match directory.open_entry_file(self.name) {
            Err(error) if is_gone(&error) || is_denied(&error) => Ok(None),
            opened => opened.map(Some),
        };
        let (Some(old), Some(new)) = (open(self.base)?, open(self.source)?) else {
            return Ok(false);
        };
        // A file that cannot be read to its end is not known to be equal.
        Ok(contents::are_equal(&old, &new).unwrap_or(false))
    }

    /// Compares the attributes of two entries of the same type, as programs see them: through an overlay, names of the
    /// base are unescaped and hidden like those of the upper layer.
    fn has_same_attributes(&self, new: &Attributes) -> Result<bool, Error> {
        let has_attributes = matches!(self.old.kind, FileKind::File | FileKind::Directory);
        if !has_attributes || self.new.kind != self.old.kind || new.values == Values::Unknown {
            return Ok(true);
        }
        let old = match self.form {
            Form::Upper => Attributes::of_upper(self.base, self.name),
            Form::Copy => Attributes::of_plain(self.base, self.name),
        };
        match old {
            Err(error) if is_denied(&error) => Ok(true),
            old => old.map(|old| {
                let is_known = old.values == Values::Read;
                !is_known || (old.plain == new.plain && old.unescaped == new.unescaped)
            }),
        }
    }
}

fn is_denied(error: &Error) -> bool {
    error.problem() == Problem::PermissionDenied
}
