//! The tools `run_failing_tests` and `last_test_failures`.

use carrel_domain::ToolGroup;
use carrel_verify::plan::{Selector, Target};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::last_test_runs::LastRun;
use super::lint_and_typecheck::shown as shown_finding;
use super::project_choice::{ProjectChoice, ProjectQuery};
use super::project_command::Bounds;
use super::record_coverage::Coverage;
use super::run_tests::{TestFacts, record_excerpts, reply, show_failure, test};
use crate::reply_limit::shorten;
use crate::response::Reply;
use crate::shell::NetworkChoice;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult, WorkspaceChoice};
use crate::tool_context::ToolContext;

const USUAL_RERUNS: usize = 50;
const MAX_RERUNS: usize = 200;
const USUAL_SHOWN: usize = 50;
const MAX_SHOWN: usize = 500;

const NO_RUN: &str = "no run_tests call yet in this session";

/// Said of results that may be of other content.
const RESTORED_SINCE: &str =
    "[files were put back by a restore or undo since; run_tests tells how they do now]";

pub(super) struct RunFailingTests;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RerunInput {
    /// The language, if the last run had several.
    #[schemars(extend("x-brief" = ""))]
    language: Option<String>,
    /// Maximum number of tests; 50 by default, at most 200.
    #[schemars(extend("x-brief" = ""))]
    limit: Option<usize>,
    /// Timeout in seconds; 300 by default, at most 1800.
    #[schemars(extend("x-brief" = ""))]
    timeout: Option<u64>,
    /// The network they get; at most what the operator allows, and `loopback` by default if that is allowed.
    #[schemars(extend("x-brief" = ""))]
    network: Option<NetworkChoice>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RerunFacts {
    rerun: usize,
    /// Their results; absent if there was nothing to run.
    #[serde(flatten)]
    result: Option<TestFacts>,
}

impl Tool for RunFailingTests {
    type Input = RerunInput;
    type Facts = RerunFacts;

    const ABOUT: About = About {
        name: "run_failing_tests",
        title: "Rerun failed tests",
        group: ToolGroup::Verify,
        workspaces: WorkspaceChoice::OneOrAll,
        description: "Reruns exactly the tests that failed in the last run_tests of this \
            session.",
        ..About::EXECUTE
    };

    async fn call(context: &ToolContext, input: RerunInput) -> ToolResult<RerunFacts> {
        context.refuse_frozen().await?;
        let nothing = |text: String| Ok(Reply::text(text, RerunFacts { rerun: 0, result: None }));
        let Some(last) = context.session.state().last_runs.of(context.workspace().name()) else {
            return nothing(NO_RUN.to_owned());
        };
        let language = input.language.as_deref().map(|name| name.trim().to_lowercase());
        let wanted = |run: &&LastRun| {
            language.as_deref().is_none_or(|name| name == "all" || name == run.language())
        };
        let failed: Vec<_> = last.iter().filter(wanted).cloned().collect();
        if let Some(mut text) = nothing_to_rerun(&last, &failed, language.as_deref()) {
            if is_outdated(context, &last) {
                line(&mut text, RESTORED_SINCE);
            }
            return nothing(text);
        }
        let limit = input.limit.filter(|limit| *limit > 0).unwrap_or(USUAL_RERUNS).min(MAX_RERUNS);
        let bounds = Bounds::of_tests(input.timeout, input.network);
        Box::pin(rerun(context, last, failed, limit, bounds)).await
    }
}

fn nothing_to_rerun(
    last: &[LastRun],
    failed: &[LastRun],
    language: Option<&str>,
) -> Option<String> {
    let names = || last.iter().map(LastRun::language).collect::<Vec<_>>().join(", ");
    if failed.is_empty() {
        let language = language.unwrap_or_default();
        return Some(format!(
            "run_failing_tests: the last run_tests had no {language} tests (it had: {})",
            names()
        ));
    }
    if failed.iter().any(|run| run.report.failures.iter().any(|failure| failure.rerun.is_some())) {
        return None;
    }
    let run = failed.first()?;
    Some(if run.is_blind() || !run.report.failures.is_empty() {
        format!(
            "run_failing_tests: the last {} run names no test that could be run again; rerun run_tests",
            run.language()
        )
    } else {
        format!("last run_tests had no failures — nothing to rerun ({})", run.language())
    })
}

async fn rerun(
    context: &ToolContext,
    mut last: Vec<LastRun>,
    failed: Vec<LastRun>,
    limit: usize,
    bounds: Bounds,
) -> ToolResult<RerunFacts> {
    let chosen = ProjectChoice::of(
        context,
        ProjectQuery { language: Some("all".into()), ..ProjectQuery::default() },
    )
    .await?;
    let mut all = Vec::new();
    let mut count = 0;
    for run in &failed {
        let selectors: Vec<Selector> = run
            .report
            .failures
            .iter()
            .filter_map(|failure| failure.rerun.clone())
            .take(limit - count.min(limit))
            .collect();
        if selectors.is_empty() {
            continue;
        }
        let nearest = ProjectChoice::of(
            context,
            ProjectQuery {
                path: Some(run.directory.clone()),
                language: Some(run.language().to_owned()),
                package: None,
            },
        );
        let profiles = match nearest.await {
            Ok(nearest) => nearest.profiles,
            Err(_) => chosen.profiles.clone(),
        };
        for profile in profiles.iter().filter(|profile| profile.root == run.directory) {
            let target = Target { rerun: &selectors, ..Target::default() };
            let tested = test(context, profile, &target, bounds, Coverage::Off).await?;
            count += selectors.len();
            remember(&mut last, &LastRun::of(&tested));
            all.push(tested);
        }
    }
    context.session.state().last_runs.set(context.workspace().name(), last);
    let Reply { content, facts, data: _ } = reply(context, &all, context.reply_limit(None));
    let failures = all.iter().flat_map(|tested| &tested.report.failures);
    record_excerpts(context, &content, failures).await;
    Ok(Reply::new(content, RerunFacts { rerun: count, result: Some(facts) }))
}

fn remember(last: &mut [LastRun], now: &LastRun) {
    let same =
        |run: &&mut LastRun| run.language() == now.language() && run.directory == now.directory;
    if let Some(run) = last.iter_mut().find(same) {
        *run = now.clone();
    }
}

/// Returns whether files of the workspace were put back since the runs, by whichever process.
fn is_outdated(context: &ToolContext, last: &[LastRun]) -> bool {
    let restored_at = context.workspace().handle().restored_at();
    last.iter().any(|run| run.is_before(restored_at))
}

pub(super) struct LastTestFailures;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct LastInput {
    /// Maximum number of failures; 50 by default, at most 500.
    #[schemars(extend("x-brief" = ""))]
    limit: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LastFacts {
    /// Number of failed tests; null if none were run.
    failures: Option<usize>,
    shown: usize,
    /// Files were put back by a restore or undo since the run, so that the results may be of other content.
    restored_since: bool,
}

impl Tool for LastTestFailures {
    type Input = LastInput;
    type Facts = LastFacts;

    const ABOUT: About = About {
        name: "last_test_failures",
        title: "Show failed tests",
        group: ToolGroup::Verify,
        workspaces: WorkspaceChoice::OneOrAll,
        description: "Shows the failures of the last run again, without running anything.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: LastInput) -> ToolResult<LastFacts> {
        let limit = input.limit.filter(|limit| *limit > 0).unwrap_or(USUAL_SHOWN).min(MAX_SHOWN);
        let Some(last) = context.session.state().last_runs.of(context.workspace().name()) else {
            return Ok(Reply::text(
                NO_RUN,
                LastFacts { failures: None, shown: 0, restored_since: false },
            ));
        };
        let mut text = String::new();
        let mut failures = 0;
        let mut shown = 0;
        for run in &last {
            let all = &run.report.failures;
            failures += all.len();
            line(&mut text, &heading(run));
            for finding in run.report.build_errors.iter().take(limit) {
                line(&mut text, &shown_finding(finding));
            }
            for (index, failure) in all.iter().take(limit - shown.min(limit)).enumerate() {
                show_failure(&mut text, index + 1, failure);
                shown += 1;
            }
        }
        if failures > shown {
            let left = failures - shown;
            let more = "more entries truncated; pass a larger limit to see them";
            line(&mut text, &format!("\n({left} {more})"));
        }
        let guard = context.cut_guard();
        let mut text =
            shorten(&guard, text, context.reply_limit(None), "a smaller limit shows less of it");
        let restored_since = is_outdated(context, &last);
        if restored_since {
            line(&mut text, RESTORED_SINCE);
        }
        let facts = LastFacts { failures: Some(failures), shown, restored_since };
        let reply = Reply::text(text, facts);
        let failures = last.iter().flat_map(|run| &run.report.failures);
        record_excerpts(context, &reply.content, failures).await;
        Ok(reply)
    }
}

fn heading(run: &LastRun) -> String {
    let language = run.language();
    let age = run.age();
    let unbuilt = run.report.build_errors.len();
    match (run.report.failures.len(), run.is_blind()) {
        (0, true) if unbuilt > 0 => {
            format!("{unbuilt} build error(s) from last run_tests call ({language}, {age}):")
        }
        (0, true) => {
            format!("no structured failures available for {language} (last run_tests {age})")
        }
        (0, false) => {
            let passed = run.report.counts.passed;
            format!("last run_tests had no failures ({passed} tests passed, {language}, {age})")
        }
        (count, _) => {
            format!("{count} test failure(s) from last run_tests call ({language}, {age}):")
        }
    }
}
