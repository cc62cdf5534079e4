//! Decisions of filters: by their data, by an interpreter for assembled programs, and with real callers.

mod decisions;
mod honest;
mod interpreter;
mod live;
mod printed;
mod programs;

use carrel_domain::{Network, Tier};

use super::SeccompFilter;
use super::program::Reporting;
use super::syscall::Architecture::{self, Aarch64, X86_64};
use super::syscall::Syscall;
use interpreter::{Attempt, run};

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const EXPLAIN: u32 = libc::SECCOMP_RET_USER_NOTIF;

/// Bits in the half of a register that the kernel drops for most arguments.
const HIGH: u64 = 0xdead_beef_0000_0000;

const NETWORKS: [Network; 3] = [Network::None, Network::Loopback, Network::Full];
const TIERS: [Tier; 2] = [Tier::Landlock, Tier::Full];

fn refuse(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.cast_unsigned()
}

fn all_standard() -> impl Iterator<Item = (Architecture, SeccompFilter)> {
    [X86_64, Aarch64].into_iter().flat_map(|architecture| {
        let filters = TIERS.into_iter().flat_map(move |tier| {
            NETWORKS.into_iter().map(move |network| SeccompFilter::standard(tier, network))
        });
        filters.map(move |filter| (architecture, filter))
    })
}

/// Runs a call by name on both architectures that have it; they have to agree.
fn decide(filter: &SeccompFilter, syscall: Syscall, args: &[u64]) -> u32 {
    let decisions: Vec<u32> = [X86_64, Aarch64]
        .into_iter()
        .filter_map(|architecture| {
            let attempt = Attempt::new(architecture, syscall.number(architecture)?, args);
            Some(run(&filter.assemble_for(architecture, Reporting::Supervisor), &attempt))
        })
        .collect();
    assert!(decisions.windows(2).all(|pair| pair[0] == pair[1]), "{syscall:?} {args:x?}");
    decisions[0]
}

fn check(filter: &SeccompFilter, cases: &[(Syscall, &[u64], u32)]) {
    for (call, args, expected) in cases {
        let actual = decide(filter, *call, args);
        assert_eq!(actual, *expected, "{call:?} {args:x?} gives {actual:#x}");
    }
}
