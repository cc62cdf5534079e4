//! The tools `run_lint` and `run_typecheck`.

use std::borrow::Cow;

use carrel_domain::ToolGroup;
use carrel_sandbox::Denial;
use carrel_verify::parse::{self, CheckReport, Finding, Severity};
use carrel_verify::plan::{TreeAccess, plan_check};
use carrel_verify::{Profile, ProfileField};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::changed_files::{ChangedFiles, TreeState};
use super::effects;
use super::project_choice::{ProjectChoice, ProjectQuery};
use super::project_command::{Bounds, FinishedCommand, run};
use super::run_tests::{no_plan, word, worst};
use crate::response::Reply;
use crate::shell::{NO_SANDBOX, NetworkChoice};
use crate::text::line;
use crate::tool::{About, Tool, ToolResult, WorkspaceChoice};
use crate::tool_context::ToolContext;

const MAX_SHOWN: usize = 500;

/// The name of what a check has beside the guarantees of every command.
const READ_ONLY_TREE: &str = "read_only_tree";

pub(super) struct RunLint;

pub(super) struct RunTypecheck;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// Only this file or directory; its nearest project is used.
    #[schemars(extend("x-brief" = ""))]
    path: Option<String>,
    /// Only this package, where the tool knows packages by name.
    #[schemars(extend("x-brief" = ""))]
    package: Option<String>,
    /// The language, if the project has several; `all` for each in turn.
    #[schemars(extend("x-brief" = ""))]
    language: Option<String>,
    /// Timeout in seconds; 120 by default, at most 600.
    #[schemars(extend("x-brief" = ""))]
    timeout: Option<u64>,
    /// The network it gets; at most what the operator allows.
    #[schemars(extend("x-brief" = ""))]
    network: Option<NetworkChoice>,
}

/// The facts about a check.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CheckFacts {
    /// `passed`, `failed` or `could_not_run`; the worst of all sections.
    verdict: &'static str,
    sections: Vec<CheckSection>,
}

/// The facts about the check of one project.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct CheckSection {
    language: &'static str,
    /// The project, relative to the workspace.
    directory: String,
    /// `passed`, `failed` or `could_not_run`.
    verdict: &'static str,
    /// The reason for `could_not_run`.
    reason: Option<String>,
    /// The findings: file, line, column, range, severity, rule, and whether the tool can fix it.
    #[schemars(with = "Vec<Map<String, Value>>")]
    findings: Vec<Finding>,
    /// Number of findings that are not in the reply.
    omitted: usize,
    /// True if the report exceeded a limit and was cut, so that there are more findings.
    incomplete: bool,
    /// Files that a compiler changed in the tree, which is read-only for all other checks.
    changed_files: Vec<String>,
    /// Operations that the sandbox denied.
    #[schemars(with = "Vec<Map<String, Value>>")]
    denials: Vec<Denial>,
    /// Guarantees that the sandbox of the command did not have, by name; `read_only_tree` if it could write files.
    not_enforced: Vec<Cow<'static, str>>,
    command: Vec<String>,
    /// For `BashOutput`, which returns the whole output.
    shell_id: Option<String>,
}

struct ProjectCheck {
    profile: Profile,
    report: CheckReport,
    ran: FinishedCommand,
    access: TreeAccess,
    /// Of a compiler that builds in the tree; other checks have a read-only one.
    changed: ChangedFiles,
}

async fn check(context: &ToolContext, input: Input, field: ProfileField) -> ToolResult<CheckFacts> {
    let bounds = Bounds::of_checks(input.timeout, input.network);
    let query = ProjectQuery { path: input.path, package: input.package, language: input.language };
    let chosen = ProjectChoice::of(context, query).await?;
    let mut all = Vec::new();
    for profile in &chosen.profiles {
        let invocation =
            plan_check(profile, field, chosen.scope(profile)).map_err(|error| no_plan(&error))?;
        let builds = invocation.access == TreeAccess::ReadWrite;
        let before = if builds { TreeState::of(context).await } else { None };
        let (ran, report) = if field == ProfileField::Lint {
            let files = effects::files_of(chosen.scope(profile), profile);
            effects::lint(context, &invocation, files, bounds).await?
        } else {
            let ran = run(context, &invocation, bounds).await?;
            let report = parse::check(&invocation, &ran.outcome());
            (ran, report)
        };
        let changed = if builds {
            TreeState::changes(before, context).await
        } else {
            ChangedFiles::default()
        };
        all.push(ProjectCheck {
            profile: profile.clone(),
            report,
            ran,
            access: invocation.access,
            changed,
        });
    }
    Ok(reply(&all))
}

fn reply(all: &[ProjectCheck]) -> Reply<CheckFacts> {
    let mut text = String::new();
    for checked in all {
        if all.len() > 1 {
            let Profile { ecosystem, root, .. } = &checked.profile;
            line(&mut text, &format!("=== {} in {root} ===", ecosystem.as_str()));
        }
        checked.show(&mut text);
    }
    let verdict = worst(all.iter().map(|checked| &checked.report.verdict));
    Reply::text(
        text,
        CheckFacts { verdict, sections: all.iter().map(ProjectCheck::section).collect() },
    )
}

impl ProjectCheck {
    fn section(&self) -> CheckSection {
        let (verdict, reason) = word(&self.report.verdict);
        let findings: Vec<_> = self.report.findings.iter().take(MAX_SHOWN).cloned().collect();
        CheckSection {
            language: self.profile.ecosystem.as_str(),
            directory: self.profile.root.clone(),
            verdict,
            reason,
            omitted: self.report.omitted + self.report.findings.len() - findings.len(),
            incomplete: self.report.incomplete,
            findings,
            changed_files: self.changed.listed.clone(),
            denials: self.ran.denials().to_vec(),
            not_enforced: self.not_enforced(),
            command: self.ran.argv.clone(),
            shell_id: self.ran.shell_id.clone(),
        }
    }

    /// Returns nothing for a command that could not start.
    fn not_enforced(&self) -> Vec<Cow<'static, str>> {
        let Some(facts) = &self.ran.facts else { return Vec::new() };
        let sandbox = &facts.sandbox;
        let can_write = self.access == TreeAccess::ReadWrite || sandbox.tier == NO_SANDBOX;
        let tree = can_write.then_some(READ_ONLY_TREE.into());
        tree.into_iter().chain(sandbox.not_enforced.iter().cloned()).collect()
    }

    fn show(&self, text: &mut String) {
        let (verdict, reason) = word(&self.report.verdict);
        for finding in self.report.findings.iter().take(MAX_SHOWN) {
            line(text, &shown(finding));
        }
        let count = self.report.findings.len() + self.report.omitted;
        match reason {
            // Nothing was checked, so there is no count.
            Some(reason) => line(text, &format!("{verdict}: {reason}")),
            None if self.report.incomplete => line(
                text,
                &format!("{count} findings and more: the report exceeded its limit and was cut"),
            ),
            None => line(text, &format!("{count} findings")),
        }
        if let Some(changed) = self.changed.line() {
            line(text, &changed);
        }
        self.ran.add_notes(text);
        line(text, &format!("command: {}", self.ran.argv.join(" ")));
        line(text, &format!("exit: {}", self.ran.exit));
    }
}

/// Shows a finding on one line: `file:line:column:rule: message`.
pub(super) fn shown(finding: &Finding) -> String {
    let mut parts = Vec::new();
    parts.extend(finding.file.clone());
    parts.extend(finding.line.map(|line| line.to_string()));
    parts.extend(finding.column.map(|column| column.to_string()));
    let rule = finding.rule.clone().unwrap_or_else(|| severity(finding.severity).to_owned());
    parts.push(rule);
    format!("{}: {}", parts.join(":"), crate::shell::strip_control(&finding.message))
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    }
}

impl Tool for RunLint {
    type Input = Input;
    type Facts = CheckFacts;

    const ABOUT: About = About {
        name: "run_lint",
        title: "Run the linter",
        group: ToolGroup::Verify,
        workspaces: WorkspaceChoice::OneOrAll,
        description: "Runs the project's linter: `file:line:column:rule: message`. One that is \
            missing or breaks is could_not_run, never zero findings.",
        ..About::EXECUTE
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<CheckFacts> {
        check(context, input, ProfileField::Lint).await
    }
}

impl Tool for RunTypecheck {
    type Input = Input;
    type Facts = CheckFacts;

    const ABOUT: About = About {
        name: "run_typecheck",
        title: "Check types",
        group: ToolGroup::Verify,
        workspaces: WorkspaceChoice::OneOrAll,
        description: "Runs the project's type checker or compiler, with findings as in run_lint.",
        ..About::EXECUTE
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<CheckFacts> {
        check(context, input, ProfileField::Typecheck).await
    }
}
