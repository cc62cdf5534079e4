//! The assembler: from a filter to the BPF instructions that the kernel runs on every system call.
//!
//! The program checks the architecture, denies numbers above the newest reviewed call, and then finds the
//! block of a call by binary search over the call numbers. A block tries the rules of its call in order
//! and ends the program. Calls that are allowed for all arguments cost nothing at run time: the kernel
//! remembers them and does not run the program again.
//!
//! A conditional jump reaches 255 instructions. Longer ways jump to or over an unconditional jump, which
//! reaches the whole program.

use std::collections::BTreeMap;

use libc::sock_filter;

use super::action::{Errno, SeccompAction};
use super::condition::{Argument, Condition, Test, Width};
use super::instruction::{and, failure, give, halves, jump, load, refuse, skip};
use super::syscall::{Architecture, Syscall};
use super::{SeccompFilter, SyscallRule, UNREVIEWED};

/// Offsets in the kernel's `seccomp_data`.
const NUMBER_OFFSET: u32 = 0;
const ARCHITECTURE_OFFSET: u32 = 4;
/// Each argument has eight bytes, the low half first.
const ARGUMENTS_OFFSET: u32 = 16;

/// The first call number of the x32 variant of `x86_64`.
const X32: u32 = 0x4000_0000;

/// The treatment of rules whose action is to notify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reporting {
    /// The call is reported to the holder of the [`Listener`](super::Listener), and the caller waits for
    /// its response.
    Supervisor,
    /// The call fails with its error number and is not reported.
    Silent,
}

/// A filter assembled into instructions for the kernel.
#[derive(Clone, Debug)]
pub struct BpfProgram {
    pub(super) instructions: Vec<sock_filter>,
    pub(super) reporting: Reporting,
}

impl BpfProgram {
    /// Returns the instructions in the kernel's binary format, which other sandboxes such as bubblewrap
    /// accept.
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = |one: &sock_filter| {
            let [code, other_code] = one.code.to_ne_bytes();
            let [a, b, c, d] = one.k.to_ne_bytes();
            [code, other_code, one.jt, one.jf, a, b, c, d]
        };
        self.instructions.iter().flat_map(bytes).collect()
    }
}

impl SeccompFilter {
    /// Splits off the rule for `openat2`, which a supervisor still needs to enter the command's directory.
    /// The larger part can then be installed before the command is known.
    pub(crate) fn split(&self) -> (Self, Self) {
        let is_late = |rule: &&SyscallRule| rule.syscall == Syscall::Openat2;
        let (late, early): (Vec<&SyscallRule>, Vec<&SyscallRule>) =
            self.rules.iter().partition(is_late);
        let part = |rules: Vec<&SyscallRule>| Self {
            rules: rules.into_iter().cloned().collect(),
            newest: self.newest,
        };
        (part(early), part(late))
    }

    /// Assembles the filter for the architecture of this build.
    pub fn assemble(&self, reporting: Reporting) -> BpfProgram {
        self.assemble_for(Architecture::CURRENT, reporting)
    }

    pub(super) fn assemble_for(&self, architecture: Architecture, to: Reporting) -> BpfProgram {
        let mut instructions = prologue(architecture);
        // An architecture that lacks the newest call has not been reviewed; all its calls are denied.
        let newest = self.newest.number(architecture).unwrap_or(0);
        instructions.extend([jump(libc::BPF_JGT, newest, 0, 1), refuse(UNREVIEWED)]);
        let groups = self.groups(architecture).into_iter();
        let blocks: Vec<_> = groups.map(|(number, rules)| (number, block(&rules, to))).collect();
        instructions.extend(tree(&blocks));
        BpfProgram { instructions, reporting: to }
    }

    /// Collects the rules of each call, in their order, under its number.
    fn groups(&self, architecture: Architecture) -> BTreeMap<u32, Vec<&SyscallRule>> {
        let mut groups = BTreeMap::<u32, Vec<&SyscallRule>>::new();
        for rule in &self.rules {
            if let Some(number) = rule.syscall.number(architecture) {
                groups.entry(number).or_default().push(rule);
            }
        }
        groups
    }
}

/// Kills callers of another architecture, whose numbers mean other calls, and loads the number.
fn prologue(architecture: Architecture) -> Vec<sock_filter> {
    let mut instructions = vec![
        load(ARCHITECTURE_OFFSET),
        jump(libc::BPF_JEQ, architecture.audit(), 1, 0),
        give(libc::SECCOMP_RET_KILL_PROCESS),
        load(NUMBER_OFFSET),
    ];
    match architecture {
        Architecture::X86_64 => {
            instructions.extend([jump(libc::BPF_JGE, X32, 0, 1), refuse(Errno::Enosys)]);
        }
        Architecture::Aarch64 => {}
    }
    instructions
}

/// Assembles a binary search for the block of a call. When a program is installed, the kernel runs it
/// once for every call number, so a linear list would cost as much as starting a process.
fn tree(blocks: &[(u32, Vec<sock_filter>)]) -> Vec<sock_filter> {
    let allow = give(libc::SECCOMP_RET_ALLOW);
    match blocks {
        [] => vec![allow],
        [(number, block)] => {
            let mut instructions = vec![jump(libc::BPF_JEQ, *number, 1, 0), allow];
            instructions.extend(block);
            instructions
        }
        _ => {
            let (below, above) = blocks.split_at(blocks.len() / 2);
            let lower = tree(below);
            let upper = tree(above);
            let branch = [jump(libc::BPF_JGE, above[0].0, 0, 1), skip(lower.len())];
            [&branch[..], &lower, &upper].concat()
        }
    }
}

/// Assembles the rules of one call in order; the call is allowed if none matches.
fn block(rules: &[&SyscallRule], reporting: Reporting) -> Vec<sock_filter> {
    let mut block = vec![];
    for rule in rules {
        let answer = vec![give(action(rule.action, reporting))];
        block.extend(rule.conditions.iter().rev().fold(answer, guard));
    }
    block.push(give(libc::SECCOMP_RET_ALLOW));
    block
}

fn action(action: SeccompAction, reporting: Reporting) -> u32 {
    match (action, reporting) {
        (SeccompAction::Notify(_), Reporting::Supervisor) => libc::SECCOMP_RET_USER_NOTIF,
        (SeccompAction::Notify(errno), Reporting::Silent) | (SeccompAction::Deny(errno), _) => {
            failure(errno)
        }
    }
}

/// Assembles a condition before code that is skipped unless the condition holds.
fn guard(code: Vec<sock_filter>, condition: &Condition) -> Vec<sock_filter> {
    let register = Register { argument: condition.argument, width: condition.width };
    match &condition.test {
        Test::AnyBit(bits) => [register.skip_unless_any_bit(*bits, code.len()), code].concat(),
        Test::OneOf { mask, values } => {
            let length = code.len();
            let otherwise = [vec![skip(length)], code].concat();
            register.compare(*mask, values, otherwise, |rest| rest - length)
        }
        Test::NoneOf { mask, values } => register.compare(*mask, values, code, |rest| rest),
    }
}

/// An argument, which a program reads in halves of 32 bits.
#[derive(Clone, Copy)]
struct Register {
    argument: Argument,
    width: Width,
}

impl Register {
    fn low(self) -> sock_filter {
        #[expect(clippy::cast_possible_truncation, reason = "an index is at most five")]
        let index = self.argument.index() as u32;
        load(ARGUMENTS_OFFSET + 8 * index)
    }

    fn high(self) -> sock_filter {
        let low = self.low();
        sock_filter { k: low.k + 4, ..low }
    }

    fn skip_unless_any_bit(self, bits: u64, length: usize) -> Vec<sock_filter> {
        let (low, high) = halves(bits);
        let last = [jump(libc::BPF_JSET, low, 1, 0), skip(length)];
        match self.width {
            Width::Low32 => [&[self.low()], &last[..]].concat(),
            Width::Full64 => {
                let first = [self.high(), jump(libc::BPF_JSET, high, 3, 0), self.low()];
                [&first[..], &last].concat()
            }
        }
    }

    /// Assembles comparisons with each value before the code for "none of them". `target` gets the number
    /// of instructions that follow a comparison and returns how many of them a match skips.
    fn compare(
        self,
        mask: u64,
        values: &[u64],
        otherwise: Vec<sock_filter>,
        target: impl Fn(usize) -> usize,
    ) -> Vec<sock_filter> {
        values.iter().rev().fold(otherwise, |rest, value| {
            let comparison = self.skip_if_equal(mask, *value, target(rest.len()));
            [comparison, rest].concat()
        })
    }

    fn skip_if_equal(self, mask: u64, value: u64, length: usize) -> Vec<sock_filter> {
        let ((low_mask, high_mask), (low, high)) = (halves(mask), halves(value));
        let last = [self.low(), and(low_mask), jump(libc::BPF_JEQ, low, 0, 1), skip(length)];
        match self.width {
            Width::Low32 => last.to_vec(),
            Width::Full64 => {
                let first = [self.high(), and(high_mask), jump(libc::BPF_JEQ, high, 0, 4)];
                [&first[..], &last].concat()
            }
        }
    }
}
