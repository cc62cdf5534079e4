//! Constructors for the BPF instructions that a filter program consists of.

use libc::sock_filter;

use super::action::Errno;

pub(super) fn halves(number: u64) -> (u32, u32) {
    #[expect(clippy::cast_possible_truncation, reason = "this is what splits it")]
    let low = number as u32;
    let high = (number >> 32) as u32;
    (low, high)
}

pub(super) fn failure(errno: Errno) -> u32 {
    libc::SECCOMP_RET_ERRNO | u32::from(errno.number())
}

pub(super) fn refuse(errno: Errno) -> sock_filter {
    give(failure(errno))
}

pub(super) fn load(offset: u32) -> sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, offset)
}

pub(super) fn and(bits: u32) -> sock_filter {
    instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, bits)
}

pub(super) fn give(action: u32) -> sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, action)
}

/// Jumps over `length` instructions.
pub(super) fn skip(length: usize) -> sock_filter {
    // A length that does not fit makes a program that is too long to be installed.
    instruction(libc::BPF_JMP | libc::BPF_JA, u32::try_from(length).unwrap_or(u32::MAX))
}

/// Compares the accumulator with a number, and jumps over `yes` or `no` instructions.
pub(super) fn jump(comparison: u32, number: u32, yes: u8, no: u8) -> sock_filter {
    let plain = instruction(libc::BPF_JMP | comparison | libc::BPF_K, number);
    sock_filter { jt: yes, jf: no, ..plain }
}

fn instruction(code: u32, k: u32) -> sock_filter {
    #[expect(clippy::cast_possible_truncation, reason = "every code of the instruction set fits")]
    let code = code as u16;
    sock_filter { code, jt: 0, jf: 0, k }
}
