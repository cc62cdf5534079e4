//! Runs assembled programs as the kernel would, on calls that no process makes.

use libc::sock_filter;

use crate::seccomp::instruction::halves;
use crate::seccomp::program::BpfProgram;
use crate::seccomp::syscall::Architecture;

/// A call as a program sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) audit: u32,
    pub(super) number: u32,
    pub(super) args: [u64; 6],
}

impl Attempt {
    pub(super) fn new(architecture: Architecture, number: u32, args: &[u64]) -> Self {
        let mut all = [0; 6];
        all[..args.len()].copy_from_slice(args);
        Self { audit: architecture.audit(), number, args: all }
    }

    fn word(&self, offset: u32) -> u32 {
        match offset {
            0 => self.number,
            4 => self.audit,
            16..64 if offset.is_multiple_of(4) => {
                let index = (offset as usize - 16) / 8;
                let (low, high) = halves(self.args[index]);
                if offset.is_multiple_of(8) { low } else { high }
            }
            _ => panic!("nothing to load at {offset}"),
        }
    }
}

/// Returns the action that the program decides on.
pub(super) fn run(program: &BpfProgram, attempt: &Attempt) -> u32 {
    let (mut at, mut loaded) = (0, 0);
    loop {
        let sock_filter { code, jt, jf, k } = program.instructions[at];
        at += 1;
        match u32::from(code) {
            0x20 => loaded = attempt.word(k),
            0x54 => loaded &= k,
            0x05 => at += k as usize,
            0x15 => at += usize::from(if loaded == k { jt } else { jf }),
            0x25 => at += usize::from(if loaded > k { jt } else { jf }),
            0x35 => at += usize::from(if loaded >= k { jt } else { jf }),
            0x45 => at += usize::from(if loaded & k != 0 { jt } else { jf }),
            0x06 => return k,
            other => panic!("not an instruction that the kernel allows here: {other:#x}"),
        }
    }
}
