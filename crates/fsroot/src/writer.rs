//! Changes as another user than the server.
//!
//! The tree of a fork is an overlay that belongs to a user namespace in which root of the host has no id. A
//! server that runs as root can read it, but the files that it creates would have no owner there, and the
//! kernel refuses with `EOVERFLOW`. So everything that changes such a tree runs with the effective user and
//! group of a [`Writer`]. This module is the only place that switches.
//!
//! Only the calling thread is switched: the system calls change the credentials of one thread, without the
//! C library, which would change those of all. Its effective capabilities are gone until it is switched back,
//! so nothing happens meanwhile with more rights than the writer has. Real and saved ids stay root's. By the
//! saved one the thread gets back, for which no capability is needed. By both of them it stays out of
//! reach: who sends a signal or traces needs a match with the real or saved id of its target, not with the
//! effective one, so the commands of a fork, which run as its writer, can do neither to the server. The kernel
//! also marks the process as not dumpable, which denies other users its files in `/proc` and is no loss. It
//! forgets the thread's parent-death signal; the server has none.
//!
//! Descriptors that are open for writing are written without a switch: the kernel checks who opened them, and
//! the overlay changes its layers with rights of its own.

use std::marker::PhantomData;

use rustix::io::Errno;
use rustix::process::{Gid, Uid, getegid, geteuid};
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};

/// The user and group on the host as which a server that runs as root changes a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Writer {
    /// The user id.
    pub user: u32,
    /// The group id.
    pub group: u32,
}

/// A thread that acts as a writer until this is dropped. It cannot be sent to another thread.
#[derive(Debug)]
pub(crate) struct ActingWriter {
    /// The ids to return to; none if the thread had the writer's already.
    before: Option<(Uid, Gid)>,
    _of_this_thread: PhantomData<*const ()>,
}

impl ActingWriter {
    /// Switches the calling thread to a writer, if there is one.
    pub(crate) fn begin(writer: Option<Writer>) -> Result<Self, Errno> {
        let mut acting = Self { before: None, _of_this_thread: PhantomData };
        let Some(Writer { user, group }) = writer else { return Ok(acting) };
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        let before = (geteuid(), getegid());
        if before != (user, group) {
            // The group first, since the user may not change it afterwards.
            set_thread_res_gid(None, group, None)?;
            // From here on dropping the value restores both, also if the user cannot be changed.
            acting.before = Some(before);
            set_thread_res_uid(None, user, None)?;
        }
        Ok(acting)
    }
}

impl Drop for ActingWriter {
    fn drop(&mut self) {
        let Some((user, group)) = self.before else { return };
        let restored = set_thread_res_uid(None, user, None)
            .and_then(|()| set_thread_res_gid(None, group, None));
        if restored.is_err() {
            // The saved ids always permit it. A thread that stayed the writer would go on with other work.
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrel_skip::needs;

    const SOMEBODY: Writer = Writer { user: 2_000_000_003, group: 2_000_000_004 };

    fn ids() -> (u32, u32) {
        (geteuid().as_raw(), getegid().as_raw())
    }

    #[test]
    fn only_the_calling_thread_acts_as_the_writer_and_only_until_the_end() {
        needs!(Root);
        let (ask, asked) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || asked.recv().map(|()| ids()));
        let acting = ActingWriter::begin(Some(SOMEBODY)).unwrap();
        assert_eq!(ids(), (SOMEBODY.user, SOMEBODY.group));
        ask.send(()).unwrap();
        assert_eq!(other.join().unwrap(), Ok((0, 0)));
        drop(ActingWriter::begin(Some(SOMEBODY)).unwrap());
        assert_eq!(ids(), (SOMEBODY.user, SOMEBODY.group));
        drop(acting);
        assert_eq!(ids(), (0, 0));
    }

    #[test]
    fn a_panic_ends_the_switch() {
        needs!(Root);
        let panicked = std::panic::catch_unwind(|| {
            let _acting = ActingWriter::begin(Some(SOMEBODY)).unwrap();
            panic!("in the middle of a change");
        });
        assert!(panicked.is_err());
        assert_eq!(ids(), (0, 0));
    }

    #[test]
    fn without_a_writer_nothing_is_switched() {
        let before = ids();
        let _acting = ActingWriter::begin(None).unwrap();
        let own = Writer { user: before.0, group: before.1 };
        let _same = ActingWriter::begin(Some(own)).unwrap();
        assert_eq!(ids(), before);
    }
}
