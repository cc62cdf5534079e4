//! The tests of a candidate of a try: those that the project's files name, or those of a line for the shell.

use std::sync::Arc;
use std::time::Duration;

use carrel_domain::{Failure, NetworkRequest};
use carrel_fsroot::Root;
use carrel_verify::parse::{TestReport, check_unreported_files};
use carrel_verify::plan::{Target, plan_test_line, plan_tests};
use carrel_verify::{choose_projects, detect_all, parse};

use super::project_choice::{ProjectChoice, ProjectQuery};
use super::project_command::{Bounds, FinishedCommand, run};
use super::record_coverage::Coverage;
use super::run_tests::{no_plan, test};
use crate::blocking::blocking;
use crate::tool_context::ToolContext;

/// A run of tests that has ended.
#[derive(Debug)]
pub(crate) struct CandidateTests {
    pub(crate) report: TestReport,
    /// The output of all commands.
    pub(crate) output: Vec<u8>,
}

/// Runs the tests of a candidate; `line` stands for those of the project.
pub(crate) async fn candidate_tests(
    context: &ToolContext,
    line: Option<&str>,
    network: NetworkRequest,
    timeout: Duration,
) -> Result<CandidateTests, Failure> {
    let bounds = Bounds { timeout, network };
    let Some(line) = line else { return of_project(context, bounds).await };
    let invocation = plan_test_line(line);
    let ran = run(context, &invocation, bounds).await?;
    let mut report = parse::tests(&invocation, &ran.outcome());
    if !report.silent.is_empty() {
        let workspace = Arc::clone(context.workspace());
        report = blocking(move || {
            check_unreported_files(&mut report, workspace.files());
            Ok(report)
        })
        .await?;
    }
    Ok(CandidateTests { report, output: output(&[ran]) })
}

async fn of_project(context: &ToolContext, bounds: Bounds) -> Result<CandidateTests, Failure> {
    let chosen = ProjectChoice::of(context, ProjectQuery::default()).await?;
    let (mut reports, mut whole) = (Vec::new(), Vec::new());
    for profile in &chosen.profiles {
        let target = Target { scope: chosen.scope(profile), ..Target::default() };
        let tested = test(context, profile, &target, bounds, Coverage::of(false)).await?;
        whole.extend(output(tested.commands()));
        reports.push(tested.report);
    }
    let report = TestReport::merge(reports).ok_or_else(no_project)?;
    Ok(CandidateTests { report, output: whole })
}

/// Fails if the files of a tree name no tests, so that a try has to say how candidates are verified.
pub(crate) fn check_has_tests(tree: &Root) -> Result<(), Failure> {
    let survey = detect_all(tree);
    let chosen = choose_projects(&survey.profiles, None).map_err(|error| {
        let Failure { code, detail, .. } = no_project();
        Failure {
            code,
            detail,
            message: format!("{error}; say with --verify how a candidate is verified"),
        }
    })?;
    for profile in chosen {
        plan_tests(profile, &Target::default()).map_err(|error| no_plan(&error))?;
    }
    Ok(())
}

fn no_project() -> Failure {
    let message = "no project with tests was found; say with --verify how a candidate is verified";
    Failure::new(carrel_domain::Code::ProjectNotDetected, message)
}

fn output(commands: &[FinishedCommand]) -> Vec<u8> {
    let mut all = Vec::new();
    for command in commands {
        all.extend(format!("$ {}\n", command.argv.join(" ")).into_bytes());
        all.extend(&command.stdout);
        all.extend(&command.stderr);
    }
    all
}
