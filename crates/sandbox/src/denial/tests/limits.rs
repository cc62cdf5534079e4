use carrel_domain::{ByteSize, Network, ResourceLimits, Tier};
use pretty_assertions::assert_eq;

use super::{check, context, line, plan};
use crate::denial::{DenialContext, explain};
use crate::guarantee::CgroupLimits;

const MEMORY: &str = r#"limit: memory | 2GiB | ENOMEM | limits.memory = "4GiB""#;
const PROCESSES: &str = "limit: processes | 256 | EAGAIN | limits.processes = 512";
const FILE_SIZE: &str = r#"limit: file_size | 512MiB | EFBIG | limits.file_size = "1GiB""#;
const OPEN_FILES: &str = "limit: open_files | 1024 | EMFILE | limits.open_files = 2048";

#[test]
fn limits_name_the_line_that_raises_them() {
    check(
        &plan(Tier::Full, Network::None),
        &[
            ("bash: fork: Cannot allocate memory", &[MEMORY]),
            ("MemoryError", &[MEMORY]),
            ("sort: memory exhausted", &[MEMORY]),
            ("fatal: Out of memory, malloc failed (tried to allocate 9 bytes)", &[MEMORY]),
            ("memory allocation of 4000000000 bytes failed", &[MEMORY]),
            ("bash: fork: retry: Resource temporarily unavailable", &[PROCESSES]),
            ("sh: 0: Cannot fork", &[PROCESSES]),
            ("RuntimeError: can't start new thread", &[PROCESSES]),
            ("Error: spawn sleep EAGAIN", &[PROCESSES]),
            ("make: sleep: Resource temporarily unavailable", &[PROCESSES]),
            (
                "bash: line 1:  4715 File size limit exceededhead -c 100000 /dev/zero > big",
                &[FILE_SIZE],
            ),
            ("OSError: [Errno 27] File too large", &[FILE_SIZE]),
            ("dd: error writing 'big': File too large", &[FILE_SIZE]),
            ("OSError: [Errno 24] Too many open files: '/dev/null'", &[OPEN_FILES]),
            ("Error: EMFILE: too many open files, open '/dev/null'", &[OPEN_FILES]),
            ("CPU time limit exceeded", &[r#"limit: cpu | 600s | SIGXCPU | limits.cpu = "1200s""#]),
            (
                "cp: error writing '/srv/root/ws/x2': No space left on device",
                &["limit: disk | workspace | ENOSPC | -"],
            ),
            ("write: Disk quota exceeded", &["limit: disk | workspace | EDQUOT | -"]),
            // Not limits of the command.
            ("java.lang.OutOfMemoryError: Java heap space", &[]),
            ("FATAL ERROR: JavaScript heap out of memory", &[]),
            ("cat: -: Resource temporarily unavailable", &[]),
            ("Too many open files in system", &[]),
            ("ENOSPC: no space left on device, watch '/srv'", &[]),
        ],
    );
}

#[test]
fn processes_are_limited_only_where_something_counts_them() {
    let message = "bash: fork: retry: Resource temporarily unavailable";
    let landlock = plan(Tier::Landlock, Network::None);
    let with = |processes| {
        let cgroup = CgroupLimits { memory: false, processes };
        let denials = explain(&landlock, &[], message, DenialContext { cgroup, ..context() });
        denials.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!((with(false), with(true)), (vec![], vec![PROCESSES.to_owned()]));
}

#[test]
fn a_limit_is_raised_no_further_than_a_policy_can() {
    let plan = plan(Tier::Full, Network::None);
    for (bytes, expected) in [
        (0, r#"limit: memory | 0KiB | ENOMEM | limits.memory = "1KiB""#),
        (1500, r#"limit: memory | 2KiB | ENOMEM | limits.memory = "3KiB""#),
        (10 << 40, r#"limit: memory | 10TiB | ENOMEM | limits.memory = "16TiB""#),
        (16 << 40, "limit: memory | 16TiB | ENOMEM | -"),
        (u64::MAX, "limit: memory | 16384PiB | ENOMEM | -"),
    ] {
        let limits = ResourceLimits { memory: ByteSize::bytes(bytes), ..Default::default() };
        let found = explain(&plan, &[], "MemoryError", DenialContext { limits, ..context() });
        let found: Vec<_> = found.iter().map(line).collect();
        let expected = expected.replace("16384PiB", "16777216TiB");
        assert_eq!(found, [expected]);
    }
}
