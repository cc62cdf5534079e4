//! Terminals for programs that look at where they write to.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A terminal, from the side of the person who sits there.
pub(crate) struct Terminal {
    pub(crate) person: File,
    path: std::ffi::CString,
}

impl Terminal {
    pub(crate) fn new() -> Self {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&person).unwrap();
        unlockpt(&person).unwrap();
        let path = ptsname(&person, Vec::new()).unwrap();
        Self { person: person.into(), path }
    }

    pub(crate) fn side_of_programs(&self, flags: OFlags) -> OwnedFd {
        open(self.path.as_c_str(), flags | OFlags::NOCTTY, Mode::empty()).unwrap()
    }

    /// Reads until a text was shown, and returns what was shown.
    pub(crate) fn read_until(&mut self, wanted: &str) -> String {
        let (mut shown, mut piece) = (Vec::new(), [0; 4096]);
        while !String::from_utf8_lossy(&shown).contains(wanted) {
            let count = self.person.read(&mut piece).unwrap();
            shown.extend_from_slice(&piece[..count]);
        }
        String::from_utf8_lossy(&shown).into_owned()
    }

    /// Reads until no program has the terminal any more.
    pub(crate) fn read_all(mut self) -> String {
        let (mut shown, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(count @ 1..) = self.person.read(&mut piece) {
            shown.extend_from_slice(&piece[..count]);
        }
        String::from_utf8(shown).unwrap()
    }
}
