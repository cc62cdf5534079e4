//! The symbolic name of a denied call's most significant argument, such as `AF_INET`.

use super::syscall::Syscall;
use super::{file_modes, sockets, standard_filter};

const NAMESPACES: &[(u64, &str)] = &[
    (0x80, "CLONE_NEWTIME"),
    (0x8000, "CLONE_PARENT"),
    (0x2_0000, "CLONE_NEWNS"),
    (0x200_0000, "CLONE_NEWCGROUP"),
    (0x400_0000, "CLONE_NEWUTS"),
    (0x800_0000, "CLONE_NEWIPC"),
    (0x1000_0000, "CLONE_NEWUSER"),
    (0x2000_0000, "CLONE_NEWPID"),
    (0x4000_0000, "CLONE_NEWNET"),
];

const COMMANDS: &[(u64, &str)] = &[
    (standard_filter::TIOCSTI, "TIOCSTI"),
    (standard_filter::TIOCLINUX, "TIOCLINUX"),
    (standard_filter::TIOCSETD, "TIOCSETD"),
    (standard_filter::FS_IOC_SETFLAGS, "FS_IOC_SETFLAGS"),
    (standard_filter::FS_IOC_FSSETXATTR, "FS_IOC_FSSETXATTR"),
    (standard_filter::FS_IOC_RESVSP, "FS_IOC_RESVSP"),
    (standard_filter::FS_IOC_RESVSP64, "FS_IOC_RESVSP64"),
    (standard_filter::FS_IOC_ZERO_RANGE, "FS_IOC_ZERO_RANGE"),
];

const FAMILIES: &[(u64, &str)] = &[
    (sockets::AF_UNIX, "AF_UNIX"),
    (sockets::AF_INET, "AF_INET"),
    (sockets::AF_INET6, "AF_INET6"),
    (sockets::AF_NETLINK, "AF_NETLINK"),
    (17, "AF_PACKET"),
    (21, "AF_RDS"),
    (29, "AF_CAN"),
    (30, "AF_TIPC"),
    (31, "AF_BLUETOOTH"),
    (38, "AF_ALG"),
    (40, "AF_VSOCK"),
    (43, "AF_SMC"),
    (44, "AF_XDP"),
];

const TYPES: &[(u64, &str)] = &[
    (sockets::SOCK_STREAM, "SOCK_STREAM"),
    (sockets::SOCK_DGRAM, "SOCK_DGRAM"),
    (3, "SOCK_RAW"),
    (4, "SOCK_RDM"),
    (sockets::SOCK_SEQPACKET, "SOCK_SEQPACKET"),
    (6, "SOCK_DCCP"),
    (10, "SOCK_PACKET"),
];

const NETLINK_PROTOCOLS: &[(u64, &str)] = &[
    (0, "NETLINK_ROUTE"),
    (4, "NETLINK_SOCK_DIAG"),
    (9, "NETLINK_AUDIT"),
    (12, "NETLINK_NETFILTER"),
    (15, "NETLINK_KOBJECT_UEVENT"),
    (16, "NETLINK_GENERIC"),
];

/// Returns the most significant argument of a call, or `None` if the name of the call says enough.
pub(super) fn detail(syscall: Syscall, args: &[u64; 6]) -> Option<String> {
    let [first, second, third, fourth, ..] = args.map(|argument| argument & 0xffff_ffff);
    match syscall {
        // The lowest byte is the exit signal here.
        Syscall::Clone => Some(flags(first & !0xff)),
        Syscall::Unshare => Some(flags(first)),
        Syscall::Setns if second != 0 => Some(flags(second)),
        Syscall::Socket => Some(socket(first, second, third)),
        Syscall::Socketpair => Some(pair(first, second)),
        Syscall::Ioctl => Some(name(COMMANDS, second)),
        Syscall::Chmod | Syscall::Fchmod | Syscall::Creat => Some(mode(second)),
        Syscall::Fchmodat | Syscall::Fchmodat2 | Syscall::Open => Some(mode(third)),
        Syscall::Openat => Some(mode(fourth)),
        Syscall::Mknod => Some(node(second)),
        Syscall::Mknodat => Some(node(third)),
        Syscall::Personality => Some(format!("{first:#x}")),
        Syscall::Seccomp => Some("SECCOMP_FILTER_FLAG_NEW_LISTENER".to_owned()),
        Syscall::Prlimit64 => Some(format!("process {first}")),
        _ => None,
    }
}

/// Returns the name of a value, or the value in hexadecimal.
fn name(names: &[(u64, &str)], value: u64) -> String {
    let known = names.iter().find(|(number, _)| *number == value);
    known.map_or_else(|| format!("{value:#x}"), |(_, name)| (*name).to_owned())
}

fn flags(bits: u64) -> String {
    let known: Vec<_> =
        NAMESPACES.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect();
    if known.is_empty() { format!("{bits:#x}") } else { known.join("|") }
}

/// Returns the family, followed by the type or protocol if that is the unusual part.
fn socket(family: u64, kind: u64, protocol: u64) -> String {
    let kind = kind & sockets::SOCKET_TYPE;
    match family {
        sockets::AF_INET | sockets::AF_INET6
            if ![sockets::SOCK_STREAM, sockets::SOCK_DGRAM].contains(&kind) =>
        {
            format!("{} {}", name(FAMILIES, family), name(TYPES, kind))
        }
        sockets::AF_NETLINK => {
            format!("{} {}", name(FAMILIES, family), name(NETLINK_PROTOCOLS, protocol))
        }
        _ => name(FAMILIES, family),
    }
}

fn pair(family: u64, kind: u64) -> String {
    format!("{} {}", name(FAMILIES, family), name(TYPES, kind & sockets::SOCKET_TYPE))
}

fn mode(mode: u64) -> String {
    format!("mode {:04o}", mode & 0o7777)
}

fn node(bits: u64) -> String {
    match bits & file_modes::FILE_TYPE {
        file_modes::CHARACTER_DEVICE => "S_IFCHR".to_owned(),
        file_modes::BLOCK_DEVICE => "S_IFBLK".to_owned(),
        _ => mode(bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_telling_argument_is_named() {
        let cases = [
            (Syscall::Clone, [0x1000_0011, 0, 0], Some("CLONE_NEWUSER")),
            (Syscall::Clone, [0x1000_0091, 0, 0], Some("CLONE_NEWUSER")),
            (
                Syscall::Unshare,
                [0x1002_0080, 0, 0],
                Some("CLONE_NEWTIME|CLONE_NEWNS|CLONE_NEWUSER"),
            ),
            (Syscall::Unshare, [0x10_0000, 0, 0], Some("0x100000")),
            (Syscall::Setns, [3, 0, 0], None),
            (Syscall::Socket, [2, 1, 0], Some("AF_INET")),
            (Syscall::Socket, [0xffff_0000_0002, 0x8_0003, 1], Some("AF_INET SOCK_RAW")),
            (Syscall::Socket, [16, 3, 15], Some("AF_NETLINK NETLINK_KOBJECT_UEVENT")),
            (Syscall::Socket, [40, 1, 0], Some("AF_VSOCK")),
            (Syscall::Socket, [99, 1, 0], Some("0x63")),
            (Syscall::Socketpair, [1, 2, 0], Some("AF_UNIX SOCK_DGRAM")),
            (Syscall::Ioctl, [0, 0x5412, 0], Some("TIOCSTI")),
            (Syscall::Fchmodat, [0, 0, 0o4755], Some("mode 4755")),
            (Syscall::Mknodat, [0, 0, 0o2_0666], Some("S_IFCHR")),
            (Syscall::Mknodat, [0, 0, 0o10_4755], Some("mode 4755")),
            (Syscall::Mount, [0, 0, 0], None),
        ];
        for (call, [first, second, third], expected) in cases {
            let actual = detail(call, &[first, second, third, 0, 0, 0]);
            assert_eq!(actual.as_deref(), expected, "{call:?}");
        }
    }
}
