//! The table of blocked operations.

use super::{Finding, device, program_lookup, recursive_remove, world_writable};
use crate::command_line::Command;
use crate::judge::Context;
use crate::path::base_name;

/// An operation that the allowlist blocks even for listed names.
pub(super) struct Operation {
    pub(super) rule: &'static str,
    /// True if the denylist refuses it as well.
    pub(super) denied: bool,
    by: By,
}

enum By {
    /// Names, where `x.*` means every name that starts with `x.`, and the message.
    Name(&'static str, &'static str),
    Check(Check),
}

type Check = fn(&Command, &Context<'_>) -> Option<Finding>;

pub(super) const OPERATIONS: &[Operation] = &[
    Operation::denied(
        "privilege",
        "sudo sudoedit su doas pkexec runuser setpriv newgrp sg chroot nsenter unshare",
        "it changes privileges; run the command without it",
    ),
    Operation::denied(
        "mount",
        "mount umount mount.* umount.* fusermount fusermount3 losetup swapon swapoff pivot_root",
        "it changes what is mounted; work on files inside the workspace",
    ),
    Operation::denied(
        "disk",
        "mkfs mkfs.* mke2fs mkswap dd fdisk sfdisk cfdisk gdisk sgdisk parted wipefs blkdiscard \
         badblocks fsck fsck.* e2fsck resize2fs tune2fs hdparm cryptsetup mdadm lvm pvcreate \
         pvremove vgcreate vgremove lvcreate lvremove",
        "it works on disks; `head -c`, `cp` and `tar` work on files",
    ),
    Operation::denied(
        "power",
        "shutdown reboot halt poweroff init telinit kexec",
        "it stops the machine; `kill` ends a process",
    ),
    Operation::blocked(
        "service",
        "systemctl service initctl rc-service rc-update update-rc.d launchctl kubectl",
        "it manages services; start a program of the workspace directly",
    ),
    Operation::blocked(
        "user",
        "passwd chpasswd gpasswd useradd userdel usermod adduser deluser groupadd groupdel \
         groupmod chsh chfn vipw vigr",
        "it manages users; `id` and `whoami` tell who is running",
    ),
    Operation::blocked(
        "packet_filter",
        "iptables iptables.* iptables-restore ip6tables nft ufw",
        "it changes the packet filter; the network of a command is set on the request",
    ),
    Operation::checked(recursive_remove::RULE, recursive_remove::check),
    Operation::checked(world_writable::RULE, world_writable::check),
    Operation::checked(device::RULE, device::check),
    Operation::checked(program_lookup::RULE, program_lookup::check),
];

impl Operation {
    const fn denied(rule: &'static str, names: &'static str, why: &'static str) -> Self {
        Self { rule, denied: true, by: By::Name(names, why) }
    }

    const fn blocked(rule: &'static str, names: &'static str, why: &'static str) -> Self {
        Self { rule, denied: false, by: By::Name(names, why) }
    }

    const fn checked(rule: &'static str, check: Check) -> Self {
        Self { rule, denied: false, by: By::Check(check) }
    }

    pub(super) fn found(&self, command: &Command, context: &Context<'_>) -> Option<Finding> {
        match self.by {
            By::Name(names, why) => {
                let name = base_name(command.name()?);
                let listed = names.split_whitespace().any(|listed| matches(listed, name));
                listed.then(|| Finding::new(self.rule, why))
            }
            By::Check(check) => check(command, context),
        }
    }
}

fn matches(listed: &str, name: &str) -> bool {
    match listed.strip_suffix('*') {
        Some(start) => name.strip_prefix(start).is_some_and(|rest| !rest.is_empty()),
        None => listed == name,
    }
}
