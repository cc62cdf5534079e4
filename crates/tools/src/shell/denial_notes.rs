//! Lines about denials in the text of a reply, and their place in a verdict.
//!
//! A test suite without network makes hundreds of denied calls. Denials of one rule, error and remedy are one
//! line with a count and a few objects, and a reply has a few lines; the facts list them in full. The remedy is
//! the hint of the sandbox, which names a network only within the cap, or for an operator the line of
//! `policy.toml` and the option.

use carrel_domain::Network;
use carrel_sandbox::{Certainty, Denial, DenialClass};

/// The most lines about denials in a reply; further ones are counted.
const MAX_LINES: usize = 6;

/// The most objects in one line; further ones are counted.
const MAX_OBJECTS: usize = 3;

/// The most bytes of an object, which may be a path that the command chose.
const MAX_OBJECT_BYTES: usize = 160;

/// Denied calls that the C library makes by itself and has a fallback for: in tier `landlock`, looking up a user asks
/// a daemon first, and Node lists the interfaces. They explain nothing about a command that succeeded.
const ROUTINE_CALLS: [&str; 2] = ["socket(AF_UNIX)", "socket(AF_NETLINK NETLINK_ROUTE)"];

/// The classes in the order of a verdict.
const CLASSES: [DenialClass; 4] =
    [DenialClass::Network, DenialClass::Files, DenialClass::Limits, DenialClass::SystemCalls];

/// The reader of notes about a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteReader {
    /// A model or a program. It learns what was denied, and the network that it may ask for or that the
    /// operator decides.
    Caller,
    /// The operator at a terminal. It also learns what would allow the operation.
    Operator {
        /// The most that `--network` may name.
        network_limit: Network,
    },
}

impl NoteReader {
    /// Returns the advice about a denial; empty if there is none.
    fn remedy(self, denial: &Denial) -> String {
        let Denial { allow, network, .. } = denial;
        let allow = match (self, allow) {
            (Self::Operator { .. }, Some(allow)) => Some(format!("policy.toml: {allow}")),
            // The hint about a network says it.
            (Self::Caller, Some(_)) if network.is_none() => Some("the operator decides".to_owned()),
            (Self::Caller | Self::Operator { .. }, _) => None,
        };
        let option = self.network_option(denial).map(|option| format!("or {option}"));
        let parts = [allow, option.or_else(|| denial.hint.clone())];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// Returns the option of the command line that would allow an operation of the network.
    fn network_option(self, denial: &Denial) -> Option<String> {
        let Self::Operator { network_limit } = self else { return None };
        let network = denial.network.filter(|network| *network <= network_limit)?;
        Some(format!("--network {network}"))
    }

    /// Returns the denials with hints for this reader.
    pub fn hinted(self, mut denials: Vec<Denial>) -> Vec<Denial> {
        for denial in &mut denials {
            denial.hint = self.network_option(denial).or(denial.hint.take());
        }
        denials
    }
}

/// Returns whether a denial belongs into the text about a command that succeeded.
pub(crate) fn is_noteworthy(denial: &Denial) -> bool {
    !ROUTINE_CALLS.contains(&denial.object.as_str())
}

/// Denials that share everything but their objects.
struct DenialGroup<'a> {
    first: &'a Denial,
    remedy: String,
    objects: Vec<String>,
    count: u64,
}

impl DenialGroup<'_> {
    fn holds(&self, denial: &Denial, remedy: &str) -> bool {
        let key = |denial: &Denial| {
            (denial.class, denial.source, denial.rule.clone(), denial.errno.clone())
        };
        key(self.first) == key(denial) && self.remedy == remedy
    }

    fn line(&self) -> String {
        let Denial { rule, errno, source, .. } = self.first;
        let certainty = match source {
            Certainty::Exact => "denied",
            Certainty::Inferred => "probably denied",
        };
        let times = match self.count {
            0 | 1 => String::new(),
            count => format!(" {count} times"),
        };
        let mut objects = self.objects[..self.objects.len().min(MAX_OBJECTS)].join(", ");
        if self.objects.len() > MAX_OBJECTS {
            objects = format!("{objects} and {} more", self.objects.len() - MAX_OBJECTS);
        }
        let remedy = match self.remedy.as_str() {
            "" => String::new(),
            remedy => format!("; {remedy}"),
        };
        format!("{certainty}{times}: {objects} ({errno}): {rule}{remedy}")
    }
}

/// Returns the lines about denials, at most [`MAX_LINES`] and one that counts the rest.
pub(crate) fn denial_lines(denials: &[Denial], reader: NoteReader) -> Vec<String> {
    let mut groups: Vec<DenialGroup<'_>> = Vec::new();
    for denial in denials {
        let remedy = reader.remedy(denial);
        let object = shortened(&denial.object);
        match groups.iter_mut().find(|group| group.holds(denial, &remedy)) {
            Some(group) => {
                group.count += denial.count;
                group.objects.push(object);
            }
            None => groups.push(DenialGroup {
                first: denial,
                remedy,
                objects: vec![object],
                count: denial.count,
            }),
        }
    }
    let mut lines: Vec<_> = groups.iter().take(MAX_LINES).map(DenialGroup::line).collect();
    let rest: u64 = groups.iter().skip(MAX_LINES).map(|group| group.count).sum();
    if rest > 0 {
        lines.push(format!("denied {rest} times more, by other rules"));
    }
    lines
}

/// Returns the denials of a failed run as a part of its verdict: "41 denials of network; run with
/// network=loopback". None without denials.
pub(crate) fn denials_in_verdict(denials: &[&Denial]) -> Option<String> {
    let mut parts = Vec::new();
    for class in CLASSES {
        let of_class = denials.iter().filter(|denial| denial.class == class);
        let exact = of_class.clone().filter(|denial| denial.source == Certainty::Exact);
        let (certainty, first, count) = match exact.clone().next() {
            // A denied call and the message about it are one attempt.
            Some(first) => ("", first, exact.map(|denial| denial.count).sum::<u64>()),
            None => match of_class.clone().next() {
                Some(first) => ("probably ", first, of_class.map(|denial| denial.count).sum()),
                None => continue,
            },
        };
        let plural = if count == 1 { "" } else { "s" };
        parts.push(format!("{certainty}{count} denial{plural} of {}", class_name(class)));
        if class == DenialClass::Network {
            parts.extend(first.hint.clone());
        }
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn class_name(class: DenialClass) -> &'static str {
    match class {
        DenialClass::Network => "network",
        DenialClass::Files => "files",
        DenialClass::Limits => "resources",
        DenialClass::SystemCalls => "system calls",
    }
}

fn shortened(object: &str) -> String {
    if object.len() <= MAX_OBJECT_BYTES {
        return object.to_owned();
    }
    format!("{}…", &object[..object.floor_char_boundary(MAX_OBJECT_BYTES)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn socket(object: &str, count: u64) -> Denial {
        Denial {
            rule: "seccomp: the command has no network".to_owned(),
            object: object.to_owned(),
            errno: "EACCES".to_owned(),
            source: Certainty::Exact,
            count,
            allow: Some("network = \"loopback\"".to_owned()),
            hint: Some("run with network=loopback".to_owned()),
            network: Some(Network::Loopback),
            class: DenialClass::Network,
        }
    }

    fn file(path: &str) -> Denial {
        Denial {
            rule: "not visible".to_owned(),
            object: path.to_owned(),
            errno: "ENOENT".to_owned(),
            source: Certainty::Inferred,
            count: 1,
            allow: Some(format!("readable = [\"{path}\"]")),
            hint: None,
            network: None,
            class: DenialClass::Files,
        }
    }

    #[test]
    fn denials_of_one_rule_are_one_line_with_a_count() {
        let denials = [
            socket("socket(AF_INET6)", 12),
            socket("socket(AF_INET)", 29),
            file("/data/1"),
            file("/data/2"),
            file("/data/3"),
            file("/data/4"),
        ];
        assert_eq!(
            denial_lines(&denials, NoteReader::Caller),
            [
                "denied 41 times: socket(AF_INET6), socket(AF_INET) (EACCES): seccomp: the command has no \
                 network; run with network=loopback",
                "probably denied 4 times: /data/1, /data/2, /data/3 and 1 more (ENOENT): not visible; the \
                 operator decides",
            ]
        );
    }

    #[test]
    fn an_operator_reads_the_option_and_the_line_of_each_path() {
        let reader = NoteReader::Operator { network_limit: Network::Loopback };
        let denials = [socket("socket(AF_INET)", 1), file("/data/1"), file("/data/2")];
        assert_eq!(
            denial_lines(&denials, reader),
            [
                "denied: socket(AF_INET) (EACCES): seccomp: the command has no network; policy.toml: \
                 network = \"loopback\"; or --network loopback",
                "probably denied: /data/1 (ENOENT): not visible; policy.toml: readable = [\"/data/1\"]",
                "probably denied: /data/2 (ENOENT): not visible; policy.toml: readable = [\"/data/2\"]",
            ]
        );
        let hints: Vec<_> =
            reader.hinted(denials.to_vec()).into_iter().map(|denial| denial.hint).collect();
        assert_eq!(hints, [Some("--network loopback".to_owned()), None, None]);
        let limited = NoteReader::Operator { network_limit: Network::None };
        assert!(!denial_lines(&denials, limited)[0].contains("--network"));
    }

    #[test]
    fn lines_and_objects_are_bounded() {
        let with_rule = |number: usize| Denial {
            rule: format!("rule {number}"),
            object: "ß".repeat(1000),
            ..file("")
        };
        let denials: Vec<_> = (0..MAX_LINES + 3).map(with_rule).collect();
        let lines = denial_lines(&denials, NoteReader::Caller);
        assert_eq!(lines.len(), MAX_LINES + 1);
        assert_eq!(lines[MAX_LINES], "denied 3 times more, by other rules");
        assert!(lines.iter().all(|line| line.len() < 2 * MAX_OBJECT_BYTES), "{lines:?}");
    }

    #[test]
    fn a_verdict_counts_denials_by_class_and_advises_about_the_network() {
        let of = |denials: &[Denial]| denials_in_verdict(&denials.iter().collect::<Vec<_>>());
        assert_eq!(of(&[]), None);
        let message = Denial { source: Certainty::Inferred, ..socket("localhost", 7) };
        assert_eq!(
            of(&[
                file("/x"),
                socket("socket(AF_INET)", 40),
                socket("socket(AF_INET6)", 1),
                message
            ]),
            Some(
                "41 denials of network; run with network=loopback; probably 1 denial of files"
                    .to_owned()
            )
        );
    }
}
