//! Extended attributes of files and directories, in the namespace `user`.
//!
//! The entry is opened without following a link, and its attributes are reached through the descriptor. Other
//! namespaces are left to the kernel: labels, capabilities and access lists say who may do something, and are not
//! content.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, XattrFlags, getxattr, listxattr, removexattr, setxattr};
use rustix::io::Errno;

use crate::error::{Error, OnPath, Problem};
use crate::resolve;
use crate::root::{Root, proc_path};

/// The start of the names that are read and set.
const NAMESPACE: &[u8] = b"user.";

/// Enough for nearly every list of names and nearly every value.
const SMALL: usize = 512;

/// The kernel's limit for the value of an attribute and for the list of names.
const MAX_BYTES: usize = 64 * 1024;

/// An extended attribute in the namespace `user`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attribute {
    /// The whole name, which begins with `user.`.
    pub name: OsString,
    /// The value.
    pub value: Vec<u8>,
}

impl Root {
    /// Returns the attributes of a file or directory by its name in this directory, sorted by name; of the
    /// directory itself for `.`. A link, or a file system without attributes, has none.
    pub fn entry_attributes(&self, name: &Path) -> Result<Vec<Attribute>, Error> {
        let entry = match open_entry(self, name) {
            Err(error) if error.problem() == Problem::Link => return Ok(Vec::new()),
            opened => opened?,
        };
        let path = proc_path(entry.as_fd());
        let mut attributes = Vec::new();
        for attribute in names(&path).on(name)? {
            match read_bounded(|buffer| getxattr(&path, attribute.as_bytes(), buffer)) {
                // It was removed since the names were listed.
                Err(Errno::NODATA) => {}
                value => attributes.push(Attribute { value: value.on(name)?, name: attribute }),
            }
        }
        Ok(attributes)
    }

    /// Returns the names of the attributes of a file or directory as [`entry_attributes`](Self::entry_attributes)
    /// does, which needs no permission to read it.
    pub fn entry_attribute_names(&self, name: &Path) -> Result<Vec<OsString>, Error> {
        match open_entry(self, name) {
            Err(error) if error.problem() == Problem::Link => Ok(Vec::new()),
            opened => names(&proc_path(opened?.as_fd())).on(name),
        }
    }

    /// Sets an attribute of a file or directory by its name in this directory, or of the directory itself for `.`.
    pub fn set_entry_attribute(&self, name: &Path, attribute: &Attribute) -> Result<(), Error> {
        let (_entry, path) = self.with_attribute(name, &attribute.name)?;
        let attribute_name = attribute.name.as_bytes();
        setxattr(&path, attribute_name, &attribute.value, XattrFlags::empty()).on(name)
    }

    /// Removes an attribute of a file or directory by its name in this directory, or of the directory itself for
    /// `.`. A missing one is fine.
    pub fn remove_entry_attribute(&self, name: &Path, attribute: &OsStr) -> Result<(), Error> {
        let (_entry, path) = self.with_attribute(name, attribute)?;
        match removexattr(&path, attribute.as_bytes()) {
            Err(Errno::NODATA) => Ok(()),
            removed => removed.on(name),
        }
    }

    /// Opens an entry to change its attribute, and returns the path that leads to the descriptor.
    fn with_attribute(&self, name: &Path, attribute: &OsStr) -> Result<(OwnedFd, PathBuf), Error> {
        if !attribute.as_bytes().starts_with(NAMESPACE) {
            return Err(Error::new(name, Problem::PermissionDenied));
        }
        let entry = open_entry(self, name)?;
        let path = proc_path(entry.as_fd());
        Ok((entry, path))
    }
}

fn open_entry(root: &Root, name: &Path) -> Result<OwnedFd, Error> {
    if name != "." && !resolve::is_one_name(name) {
        return Err(Error::new(name, Problem::NoName));
    }
    resolve::open_strict(root.as_fd(), name, OFlags::PATH, Mode::empty())
}

/// Lists the names in the namespace, sorted.
fn names(path: &Path) -> Result<Vec<OsString>, Errno> {
    let list = match read_bounded(|buffer| listxattr(path, buffer)) {
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        list => list?,
    };
    let names = list.split(|byte| *byte == 0).filter(|name| name.starts_with(NAMESPACE));
    let mut names: Vec<_> = names.map(|name| OsStr::from_bytes(name).to_owned()).collect();
    names.sort_unstable();
    Ok(names)
}

/// Reads into a small buffer, and into one of the largest size if that does not suffice.
fn read_bounded(read: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut small = [0; SMALL];
    match read(&mut small) {
        Err(Errno::RANGE) => {}
        length => return Ok(small[..length?].to_vec()),
    }
    let mut large = vec![0; MAX_BYTES];
    let length = read(&mut large)?;
    large.truncate(length);
    Ok(large)
}
