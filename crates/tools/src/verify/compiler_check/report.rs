//! The findings of a check that belong to an edit, as text.

use std::collections::BTreeSet;

use carrel_verify::parse::{CheckReport, CouldNotRunReason, Finding, Severity, Verdict};

use crate::text::line;
use crate::tool_context::ToolContext;
use crate::verify::lint_and_typecheck::shown as shown_finding;

/// Bounds the findings about the changed files, and those elsewhere.
const MAX_SHOWN: usize = 20;

/// Bounds the bytes of a reason why a check could not run.
const MAX_REASON_BYTES: usize = 300;

/// Bounds the reasons that a session is told and that are remembered; further ones are not told.
const MAX_TOLD: usize = 64;

/// The file, the rule and the message of an error. Lines are left out: an edit moves them.
pub(super) type ErrorKey = (Option<String>, Option<String>, String);

/// The report of one package.
#[derive(Debug)]
pub(super) struct PackageReport {
    pub(super) command: String,
    pub(super) report: CheckReport,
    /// The errors of the check before; none if this is the first.
    pub(super) before: Option<BTreeSet<ErrorKey>>,
}

/// The reply that findings come with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timing {
    /// That of the edit.
    InTime,
    /// A later one, after a reply that announced the findings.
    Late,
}

pub(super) fn errors(findings: &[Finding]) -> BTreeSet<ErrorKey> {
    findings.iter().filter(|finding| finding.severity == Severity::Error).map(key).collect()
}

fn key(finding: &Finding) -> ErrorKey {
    (finding.file.clone(), finding.rule.clone(), finding.message.clone())
}

/// Returns the findings that belong to an edit of `files`. Without any the text is empty, or says so if it is late.
pub(super) fn shown(
    context: &ToolContext,
    reports: &[PackageReport],
    files: &BTreeSet<String>,
    timing: Timing,
) -> String {
    let mut text = String::new();
    for package in reports {
        match &package.report.verdict {
            Verdict::CouldNotRun { reason } => show_reason(context, package, reason, &mut text),
            Verdict::Passed | Verdict::Failed => package.show(files, timing, &mut text),
        }
    }
    text
}

/// Says once for each session why a check could not run, and nothing about a toolchain that is missing.
fn show_reason(
    context: &ToolContext,
    package: &PackageReport,
    reason: &CouldNotRunReason,
    text: &mut String,
) {
    if matches!(reason, CouldNotRunReason::ToolMissing { .. }) {
        return;
    }
    let mut reason = reason.to_string();
    reason.truncate(reason.floor_char_boundary(MAX_REASON_BYTES));
    let said = format!("post-edit check ({}): could not run: {reason}", package.command);
    if is_news(context, &said) {
        line(text, &said);
    }
}

/// Returns whether a session has not been told a text, and remembers that it has been.
pub(super) fn is_news(context: &ToolContext, text: &str) -> bool {
    let told = &mut context.session.state().told_checks;
    told.len() < MAX_TOLD && told.insert(text.to_owned())
}

impl PackageReport {
    fn show(&self, files: &BTreeSet<String>, timing: Timing, text: &mut String) {
        let is_about = |finding: &&Finding| {
            finding.file.as_ref().is_some_and(|file| files.contains(file))
                && finding.severity != Severity::Info
        };
        let about: Vec<_> = self.report.findings.iter().filter(is_about).collect();
        let elsewhere: Vec<_> = self
            .report
            .findings
            .iter()
            .filter(|finding| finding.severity == Severity::Error && !is_about(finding))
            .collect();
        let is_new = |finding: &&&Finding| {
            self.before.as_ref().is_some_and(|before| !before.contains(&key(finding)))
        };
        let new: Vec<_> = elsewhere.iter().filter(is_new).copied().collect();
        let old = elsewhere.len() - new.len();
        let subject = format!("post-edit check ({})", self.command);
        if about.is_empty() && new.is_empty() {
            if timing == Timing::Late {
                let suffix = old_errors(old).map_or(String::new(), |old| format!(" ({old})"));
                line(text, &format!("{subject}: no findings in the changed files{suffix}"));
            }
            return;
        }
        line(text, &format!("{subject}:"));
        show_some(&about, text);
        if !new.is_empty() {
            line(text, "errors in other files since the edit:");
            show_some(&new, text);
        }
        if let Some(old) = old_errors(old) {
            line(text, &format!("({old})"));
        }
    }
}

fn show_some(findings: &[&Finding], text: &mut String) {
    findings.iter().take(MAX_SHOWN).for_each(|finding| line(text, &shown_finding(finding)));
    if let Some(more) = findings.len().checked_sub(MAX_SHOWN).filter(|more| *more > 0) {
        line(text, &format!("({more} more; run_typecheck has all)"));
    }
}

fn old_errors(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("1 other error, not known to come from the edit".to_owned()),
        count => Some(format!("{count} other errors, not known to come from the edit")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    fn finding(file: &str, severity: Severity, message: &str) -> Finding {
        let value = serde_json::json!({
            "file": file, "line": 3, "severity": severity, "message": message,
        });
        serde_json::from_value(value).unwrap()
    }

    fn report(findings: Vec<Finding>, before: Option<&[Finding]>) -> String {
        let report =
            CheckReport { verdict: Verdict::Failed, findings, omitted: 0, incomplete: false };
        let before = before.map(errors);
        let package = PackageReport { command: "cargo check -p a".to_owned(), report, before };
        let mut text = String::new();
        package.show(&["a.rs".to_owned()].into(), Timing::InTime, &mut text);
        text
    }

    #[test]
    fn findings_are_those_of_the_changed_file_and_errors_that_are_new_elsewhere() {
        let (error, warning) = (Severity::Error, Severity::Warning);
        let own = finding("a.rs", warning, "unused");
        let (old, new) = (finding("b.rs", error, "old"), finding("b.rs", error, "new"));
        let noise = finding("b.rs", warning, "elsewhere");
        let all = vec![own, old.clone(), new, noise];
        assert_eq!(
            report(all.clone(), Some(std::slice::from_ref(&old))),
            "post-edit check (cargo check -p a):\na.rs:3:warning: unused\n\
             errors in other files since the edit:\nb.rs:3:error: new\n\
             (1 other error, not known to come from the edit)\n"
        );
        assert_eq!(
            report(all, None),
            "post-edit check (cargo check -p a):\na.rs:3:warning: unused\n\
             (2 other errors, not known to come from the edit)\n"
        );
        assert_eq!(report(vec![old.clone()], None), "");
        assert_eq!(report(vec![old.clone()], Some(&[old])), "");
    }

    #[test]
    fn a_broken_file_does_not_fill_the_reply() {
        let errors = (0..500).map(|n| finding("a.rs", Severity::Error, &format!("e{n}")));
        let text = report(errors.collect(), None);
        assert_eq!(text.lines().count(), MAX_SHOWN + 2, "{text}");
        assert!(text.ends_with("(480 more; run_typecheck has all)\n"), "{text}");
    }
}
