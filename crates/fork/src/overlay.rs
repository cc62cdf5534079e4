//! What an overlay mounted with `userxattr` writes into its upper layer besides files.
//!
//! A name that is gone is a whiteout: a character device 0:0, or an empty file with `user.overlay.whiteout`. A
//! directory whose `user.overlay.opaque` is `y` hides the base's; `x` says only that whiteouts of the second kind are
//! in it. Other attributes that begin with `user.overlay.` are bookkeeping. What a program inside the fork calls
//! `user.overlay.name` is stored as `user.overlay.overlay.name`, one level deeper for each overlay.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use carrel_fsroot::{Attribute, Error, FileKind, Metadata, Problem, Root};

const OWN: &[u8] = b"user.overlay.";
const ESCAPED: &[u8] = b"user.overlay.overlay.";
const WHITEOUT: &str = "user.overlay.whiteout";
const OPAQUE: &str = "user.overlay.opaque";

/// Attributes of features that forks are not mounted with. With them a file of the upper layer lacks its content, or a
/// directory stands for another one of the base.
const REFUSED: [&str; 2] = ["user.overlay.metacopy", "user.overlay.redirect"];

/// Returns whether an attribute belongs to an overlay or looks like it.
pub(crate) fn is_overlay(name: &OsStr) -> bool {
    name.as_bytes().starts_with(OWN)
}

/// Returns whether programs in a fork do not see an attribute under any name.
pub(crate) fn is_hidden(name: &OsStr) -> bool {
    is_overlay(name) && !name.as_bytes().starts_with(ESCAPED)
}

/// Whether the values of attributes are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Values {
    #[default]
    Read,
    /// The entry may not be read.
    Unknown,
}

/// The attributes of an entry, by their meaning.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    /// Those of programs, with the names that programs use.
    pub(crate) plain: Vec<Attribute>,
    /// Those whose names the overlay escaped, with the names that programs use.
    pub(crate) unescaped: Vec<Attribute>,
    /// There are names that begin with `user.overlay.`.
    pub(crate) has_own: bool,
    pub(crate) values: Values,
    pub(crate) is_opaque: bool,
    has_whiteout: bool,
    /// An attribute of a feature that forks are not mounted with.
    pub(crate) refused: Option<&'static str>,
}

impl Attributes {
    /// Reads the attributes of an entry of an upper layer.
    pub(crate) fn of_upper(directory: &Root, name: &Path) -> Result<Self, Error> {
        let (all, values) = match directory.entry_attributes(name) {
            Err(error) if error.problem() == Problem::PermissionDenied => {
                (names_only(directory, name, error)?, Values::Unknown)
            }
            all => (all?, Values::Read),
        };
        let mut attributes = Self::default();
        for attribute in all {
            attributes.add(attribute);
        }
        if !attributes.plain.is_empty() {
            attributes.values = values;
        }
        Ok(attributes)
    }

    /// Reads the attributes of an entry of a plain tree, without the ones that look like an overlay's.
    pub(crate) fn of_plain(directory: &Root, name: &Path) -> Result<Self, Error> {
        let mut plain = match directory.entry_attributes(name) {
            Err(error) if error.problem() == Problem::PermissionDenied => {
                return Ok(Self { values: Values::Unknown, ..Self::default() });
            }
            all => all?,
        };
        plain.retain(|attribute| !is_overlay(&attribute.name));
        Ok(Self { plain, ..Self::default() })
    }

    fn add(&mut self, attribute: Attribute) {
        let name = attribute.name.as_bytes();
        if let Some(rest) = name.strip_prefix(ESCAPED) {
            let name = OsString::from_vec([OWN, rest].concat());
            self.unescaped.push(Attribute { name, value: attribute.value });
            self.has_own = true;
        } else if is_overlay(&attribute.name) {
            self.has_own = true;
            self.is_opaque |= attribute.name == OPAQUE && attribute.value == b"y";
            self.has_whiteout |= attribute.name == WHITEOUT;
            let refused = REFUSED.into_iter().find(|refused| attribute.name == *refused);
            self.refused = self.refused.or(refused);
        } else {
            self.plain.push(attribute);
        }
    }

    /// Returns whether an entry of an upper layer says that the name is gone.
    pub(crate) fn is_whiteout(&self, metadata: &Metadata) -> bool {
        match metadata.kind {
            FileKind::Device => metadata.device == 0,
            FileKind::File => self.has_whiteout && metadata.size == 0,
            FileKind::Directory
            | FileKind::Link
            | FileKind::Fifo
            | FileKind::Socket
            | FileKind::Unknown => false,
        }
    }
}

/// Returns the attributes of an entry that may not be read, without values. An escaped one needs its value.
fn names_only(directory: &Root, name: &Path, denied: Error) -> Result<Vec<Attribute>, Error> {
    let names = directory.entry_attribute_names(name)?;
    if names.iter().any(|name| name.as_bytes().starts_with(ESCAPED)) {
        return Err(denied);
    }
    Ok(names.into_iter().map(|name| Attribute { name, value: Vec::new() }).collect())
}
