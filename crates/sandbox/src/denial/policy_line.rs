//! Policy lines that would open a path, and the paths for which none is suggested.
//!
//! The path comes from a message that the command wrote, so it may be chosen to make an operator open
//! credentials or the host. The lists here decide which paths never get a line; they get a hint with the
//! reason instead. They are deliberately broad: a missing suggestion costs the operator a look into the
//! manual, a wrong one could give away the machine.

use std::path::Path;

use super::{Denial, DenialContext};
use crate::plan::Plan;

/// The key of a suggested line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PolicyKey {
    Readable,
    Writable,
}

impl PolicyKey {
    fn key(self) -> &'static str {
        match self {
            Self::Readable => "readable",
            Self::Writable => "writable",
        }
    }
}

/// Kernel file systems. The policy accepts no path below them.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Directories that all users of the host share.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// System directories. The policy makes none of them writable.
const SYSTEM: [&str; 12] = [
    "/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/boot", "/opt",
    "/nix", "/var/lib",
];

/// Directories with sockets of services, some of which give control over the machine.
const SERVICES: [&str; 2] = ["/run", "/var/run"];

/// Directories that hold too many unrelated files to be granted as a whole.
const BROAD: [&str; 10] =
    ["/", "/etc", "/home", "/media", "/mnt", "/opt", "/root", "/srv", "/var", "/var/lib"];

/// Prefixes of files with password hashes, keys and rules for privilege changes.
const SECRET_FILES: &str = "
    /etc/shadow /etc/gshadow /etc/sudoers /etc/ssh /etc/ssl/private /etc/pki/tls/private
    /etc/security /etc/krb5.keytab /etc/carrel /boot
";

/// Names of files and directories with credentials, at any depth. A name that begins with one of them and
/// a dot counts too.
const SECRET_NAMES: &str = "
    .ssh .gnupg .aws .azure .kube .docker .netrc .npmrc .pypirc .pgpass .my.cnf
    .git-credentials .vault-token .password-store .mozilla .carrel .env gh gcloud keyrings
    credentials id_rsa id_ed25519 id_ecdsa secrets
";

/// Adds the policy line that would allow the operation, or the reason why none is suggested.
pub(super) fn suggest(
    denial: Denial,
    plan: &Plan,
    key: PolicyKey,
    path: &Path,
    context: DenialContext<'_>,
) -> Denial {
    match objection(plan, key, path, context) {
        None => {
            let line = format!("{} = [{}]", key.key(), quote(&denial.object));
            denial.allowed_by(line)
        }
        Some(why) => denial.hinting(why),
    }
}

/// Returns the reason why no line is suggested for a path.
fn objection(
    plan: &Plan,
    key: PolicyKey,
    path: &Path,
    context: DenialContext<'_>,
) -> Option<&'static str> {
    let below = |tops: &[&str]| tops.iter().any(|top| path.starts_with(top));
    let of_others = context.root.is_some_and(|root| path.starts_with(root));
    if path.to_str().is_none_or(|text| text.contains('\u{fffd}')) {
        Some("its name cannot be written in policy.toml")
    } else if below(&KERNEL) {
        Some("the devices and the kernel of the host are kept from every sandbox")
    } else if below(&TEMPORARY) {
        Some("temporary files belong below $TMPDIR")
    } else if is_secret(path) {
        Some("such files are kept from every sandbox")
    } else if below(&SERVICES) {
        Some("the services of the host are kept from every sandbox")
    } else if of_others {
        Some("it does not belong to this workspace")
    } else if is_broad(path) || plan.workspace.starts_with(path) {
        Some("it is too much to share; a directory inside it could be")
    } else if key == PolicyKey::Writable && below(&SYSTEM) {
        Some("the host's own files are read-only")
    } else {
        None
    }
}

fn is_secret(path: &Path) -> bool {
    let is_named = |name: &str| {
        let begins = |known: &str| {
            name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        SECRET_NAMES.split_whitespace().any(begins)
    };
    let text = path.to_string_lossy();
    // By prefix, because copies and backups such as `/etc/shadow-` are as secret as the original.
    SECRET_FILES.split_whitespace().any(|file| text.starts_with(file))
        || path.iter().any(|name| name.to_str().is_some_and(is_named))
}

/// Returns whether a path is a broad top-level directory or a home directory.
fn is_broad(path: &Path) -> bool {
    BROAD.iter().any(|broad| path == Path::new(broad)) || path.parent() == Some(Path::new("/home"))
}

/// Formats a basic string of TOML.
pub(super) fn quote(text: &str) -> String {
    use std::fmt::Write as _;
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\t' => quoted.push_str("\\t"),
            letter if letter.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(quoted, "\\u{:04X}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
