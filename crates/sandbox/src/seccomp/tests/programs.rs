//! That programs decide what their filter says.

use carrel_domain::{Network, Tier};

use super::interpreter::{Attempt, run};
use super::{ALLOW, EXPLAIN, HIGH, all_standard, check, decide, refuse};
use crate::seccomp::action::{Errno, SeccompAction};
use crate::seccomp::condition::{Argument, Condition, Test, Width};
use crate::seccomp::program::Reporting;
use crate::seccomp::syscall::{Architecture, Syscall};
use crate::seccomp::{SeccompFilter, SyscallRule};

/// As many instructions as the kernel takes.
const MOST_INSTRUCTIONS: usize = 4096;

/// Arguments for which one entry holds: for each condition, a value that fits it.
fn arguments_for(rule: &SyscallRule) -> [u64; 6] {
    // An argument that no condition is about is one: the plainest family and type of a socket.
    let mut args = [1; 6];
    for Condition { argument, test, .. } in &rule.conditions {
        args[argument.index()] = match test {
            Test::AnyBit(bits) => *bits,
            Test::OneOf { values, .. } => values[values.len() - 1],
            Test::NoneOf { mask, values } => {
                (0..=*mask).find(|value| !values.contains(value)).unwrap()
            }
        };
    }
    args
}

#[test]
fn every_entry_decides_some_call() {
    for (architecture, filter) in all_standard() {
        let program = filter.assemble_for(architecture, Reporting::Supervisor);
        let silent = filter.assemble_for(architecture, Reporting::Silent);
        for rule in &filter.rules {
            let Some(number) = rule.syscall.number(architecture) else { continue };
            let attempt = Attempt::new(architecture, number, &arguments_for(rule));
            assert_eq!(filter.rule_for(architecture, number, &attempt.args), Some(rule));
            let plain = refuse(rule.action.errno().number().into());
            let expected = match rule.action {
                SeccompAction::Deny(_) => plain,
                SeccompAction::Notify(_) => EXPLAIN,
            };
            assert_eq!(run(&program, &attempt), expected, "{rule}");
            assert_eq!(run(&silent, &attempt), plain, "{rule}");
        }
    }
}

#[test]
fn the_program_decides_as_the_table_does() {
    for (architecture, filter) in all_standard() {
        let program = filter.assemble_for(architecture, Reporting::Silent);
        assert!(program.instructions.len() <= MOST_INSTRUCTIONS);
        for number in 0..=469 {
            for args in telling_arguments(&filter, architecture, number) {
                let attempt = Attempt::new(architecture, number, &args);
                let rule = filter.rule_for(architecture, number, &attempt.args);
                let expected =
                    rule.map_or(ALLOW, |rule| refuse(rule.action.errno().number().into()));
                assert_eq!(run(&program, &attempt), expected, "{number} {args:x?}");
            }
        }
    }
}

/// Every combination of the first five arguments near the values that entries compare with.
fn telling_arguments(
    filter: &SeccompFilter,
    architecture: Architecture,
    number: u32,
) -> Vec<[u64; 5]> {
    let mut choices = [const { Vec::new() }; 5].map(|_: Vec<u64>| vec![0]);
    let rules =
        filter.rules.iter().filter(|rule| rule.syscall.number(architecture) == Some(number));
    for Condition { argument, test, .. } in rules.flat_map(|rule| &rule.conditions) {
        let values = match test {
            Test::AnyBit(bits) => vec![*bits, !bits, bits & bits.wrapping_neg()],
            Test::OneOf { values, .. } | Test::NoneOf { values, .. } => values.clone(),
        };
        let near = values.iter().flat_map(|v| [*v, v + 1, v | HIGH, v | 0x8_0000]);
        choices[argument.index()].extend(near);
    }
    for values in &mut choices {
        values.sort_unstable();
        values.dedup();
    }
    let mut all = vec![[0; 5]];
    for (index, values) in choices.iter().enumerate() {
        let with = |known: [u64; 5], value: u64| {
            let mut next = known;
            next[index] = value;
            next
        };
        all = all
            .iter()
            .flat_map(|known| values.iter().map(|value| with(*known, *value)).collect::<Vec<_>>())
            .collect();
    }
    all
}

#[test]
fn whole_registers_are_compared_in_both_halves() {
    let seven = 0x7_0000_0007;
    let tests = [
        Test::AnyBit(seven),
        Test::AnyBit(7),
        Test::AnyBit(7 << 32),
        Test::OneOf { mask: u64::MAX, values: vec![seven, 1] },
        Test::NoneOf { mask: u64::MAX, values: vec![seven, 1] },
        Test::OneOf { mask: 0xf_0000_000f, values: vec![seven] },
    ];
    for test in tests {
        let condition = Condition { argument: Argument::Sixth, width: Width::Full64, test };
        let rule = SyscallRule::new(
            Syscall::Mount,
            vec![condition.clone()],
            SeccompAction::Deny(Errno::Eperm),
            "A test.",
        );
        let filter = SeccompFilter { rules: vec![rule], newest: Syscall::FileSetattr };
        for value in [0, 1, 7, 7 << 32, seven, seven | 1 << 63, seven | 16, 1 << 40, 8] {
            let args = [0, 0, 0, 0, 0, value];
            let expected = if condition.holds(&args) { refuse(libc::EPERM) } else { ALLOW };
            assert_eq!(decide(&filter, Syscall::Mount, &args), expected, "{condition} {value:#x}");
        }
    }
}

#[test]
fn a_block_longer_than_a_conditional_jump_is_passed() {
    let values: Vec<u64> = (0..300).collect();
    let long = |answer| {
        let conditions = vec![Condition::one_of(Argument::First, &values)];
        SyscallRule::new(Syscall::Mount, conditions, SeccompAction::Deny(answer), "A test.")
    };
    let chroot =
        SyscallRule::new(Syscall::Chroot, vec![], SeccompAction::Deny(Errno::Eacces), "A test.");
    let filter =
        SeccompFilter { rules: vec![long(Errno::Eperm), chroot], newest: Syscall::FileSetattr };
    check(
        &filter,
        &[
            (Syscall::Mount, &[0], refuse(libc::EPERM)),
            (Syscall::Mount, &[299], refuse(libc::EPERM)),
            (Syscall::Mount, &[300], ALLOW),
            (Syscall::Chroot, &[], refuse(libc::EACCES)),
            (Syscall::Bpf, &[], ALLOW),
        ],
    );
}

#[test]
fn the_bytes_of_a_program_are_its_instructions_as_the_kernel_reads_them() {
    let program = SeccompFilter::standard(Tier::Full, Network::None).assemble(Reporting::Silent);
    let bytes = program.to_bytes();
    let (chunks, rest) = bytes.as_chunks::<8>();
    assert_eq!((chunks.len(), rest.len()), (program.instructions.len(), 0));
    for ([c, d, jt, jf, k @ ..], one) in chunks.iter().zip(&program.instructions) {
        let k = u32::from_ne_bytes(*k);
        assert_eq!((u16::from_ne_bytes([*c, *d]), *jt, *jf, k), (one.code, one.jt, one.jf, one.k));
    }
}
