//! Tools that detect a project, install its dependencies and run its tests, linters, type checkers and formatters.
//!
//! The crate `verify` detects projects, plans commands and parses reports; the modules here run the commands in
//! the sandbox. A tool that is missing or breaks is `could_not_run` and never counts as passed.

mod candidate_tests;
mod changed_files;
pub(crate) mod compiler_check;
mod coverage_store;
pub(crate) mod edit_feedback;
mod effects;
mod failing_tests;
mod format;
mod install;
mod last_test_runs;
mod lint_and_typecheck;
mod profile;
mod project_choice;
mod project_command;
mod record_coverage;
mod run_script;
mod run_tests;
mod server_check;
mod tests_covering;
mod writer_turn;

pub(crate) use candidate_tests::{CandidateTests, candidate_tests, check_has_tests};
pub(crate) use compiler_check::{CompilerChecks, LateCheck};
pub(crate) use coverage_store::CoverageStore;
pub(crate) use last_test_runs::LastRuns;
pub(crate) use server_check::{LateServerCheck, ServerChecks};

use crate::registry::Catalogue;

pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add::<profile::ShowProfile>();
    catalogue.add::<run_tests::RunTests>();
    catalogue.add::<lint_and_typecheck::RunLint>();
    catalogue.add::<lint_and_typecheck::RunTypecheck>();
    catalogue.add::<failing_tests::RunFailingTests>();
    catalogue.add::<failing_tests::LastTestFailures>();
    catalogue.add::<run_script::RunScript>();
    catalogue.add::<format::Format>();
    catalogue.add::<install::Install>();
    catalogue.add::<tests_covering::TestsCovering>();
}
