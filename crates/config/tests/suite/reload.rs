#![expect(
    clippy::disallowed_methods,
    reason = "the tests edit a workflow file as an operator does"
)]

use std::fs;
use std::path::PathBuf;

use carrel_config::{Environment, ReloadOutcome, Reloader, ValidationScope, Workflow};
use carrel_domain::Coded as _;
use pretty_assertions::assert_eq;
use tempfile::TempDir;

use crate::environment;

struct Edited {
    directory: TempDir,
    reloader: Reloader,
}

impl Edited {
    fn new(timeout: u32) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let path = directory.path().join("WORKFLOW.md");
        fs::write(&path, file(timeout)).expect("the file can be written");
        let workflow = Workflow::load(&path, &environment(), ValidationScope::WorkspaceAndHooks)
            .expect("the file is good");
        Self { directory, reloader: Reloader::new(workflow) }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("WORKFLOW.md")
    }

    fn write(&self, text: &str) {
        fs::write(self.path(), text).expect("the file can be written");
    }

    /// Looks once and says what happened in a word.
    fn check(&mut self) -> String {
        match self.reloader.check(environment) {
            ReloadOutcome::Unchanged => "unchanged".to_owned(),
            ReloadOutcome::Reloaded { old, new } => {
                format!("{} to {}", timeout_of(&old), timeout_of(&new))
            }
            ReloadOutcome::Failed { error, first_time: true } => format!("new {:?}", error.code()),
            ReloadOutcome::Failed { error, first_time: false } => {
                format!("same {:?}", error.code())
            }
        }
    }

    fn current(&self) -> u128 {
        timeout_of(&self.reloader.current())
    }
}

fn timeout_of(workflow: &Workflow) -> u128 {
    workflow.config.hooks.timeout.as_millis()
}

fn file(timeout: u32) -> String {
    format!("---\nhooks: {{timeout_ms: {timeout}}}\n---\n")
}

#[test]
fn a_file_that_does_not_change_is_not_reloaded() {
    let mut edited = Edited::new(100);
    assert_eq!([edited.check(), edited.check()], ["unchanged", "unchanged"]);
    edited.write(&file(100));
    assert_eq!(edited.check(), "unchanged");
}

#[test]
fn item_003_a_change_is_seen_even_with_the_same_size_and_time() {
    let mut edited = Edited::new(100);
    let before = fs::metadata(edited.path()).unwrap().modified().unwrap();
    assert_eq!(edited.check(), "unchanged");
    edited.write(&file(200));
    fs::File::options().write(true).open(edited.path()).unwrap().set_modified(before).unwrap();
    assert_eq!(edited.check(), "100 to 200");
    assert_eq!(edited.current(), 200);
}

#[test]
fn a_broken_file_keeps_the_last_good_one_and_is_reported_once() {
    let mut edited = Edited::new(100);
    edited.write("---\nhooks: [\n---\n");
    assert_eq!([edited.check(), edited.check()], ["new WorkflowParse", "same WorkflowParse"]);
    assert_eq!(edited.current(), 100);
    edited.write(&file(0));
    assert_eq!([edited.check(), edited.check()], ["new WorkflowInvalid", "same WorkflowInvalid"]);
    edited.write(&format!("{}\n# the same fault again", file(0)));
    assert_eq!(edited.check(), "same WorkflowInvalid");
    assert!(edited.reloader.failure().is_some());
    edited.write(&file(300));
    assert_eq!([edited.check(), edited.check()], ["100 to 300", "unchanged"]);
    assert!(edited.reloader.failure().is_none());
}

#[test]
fn a_file_put_back_as_it_was_counts_as_reloaded() {
    let mut edited = Edited::new(100);
    edited.write("---\n- x\n---\n");
    assert_eq!(edited.check(), "new WorkflowNotAMap");
    edited.write(&file(100));
    assert_eq!([edited.check(), edited.check()], ["100 to 100", "unchanged"]);
}

#[test]
fn a_deleted_file_is_a_failure_until_it_is_back() {
    let mut edited = Edited::new(100);
    fs::remove_file(edited.path()).unwrap();
    assert_eq!([edited.check(), edited.check()], ["new WorkflowMissing", "same WorkflowMissing"]);
    fs::create_dir(edited.path()).unwrap();
    assert_eq!([edited.check(), edited.check()], ["new WorkflowMissing", "same WorkflowMissing"]);
    fs::remove_dir(edited.path()).unwrap();
    edited.write(&file(100));
    assert_eq!([edited.check(), edited.check()], ["100 to 100", "unchanged"]);
}

#[test]
fn item_003_a_file_replaced_by_renaming_is_reloaded() {
    let mut edited = Edited::new(100);
    let beside = edited.directory.path().join("new");
    fs::write(&beside, file(200)).unwrap();
    fs::rename(&beside, edited.path()).unwrap();
    assert_eq!(edited.check(), "100 to 200");
}

#[test]
fn the_environment_is_read_again_with_a_changed_file_only() {
    let mut edited = Edited::new(100);
    let mut asked = 0;
    let mut look = |edited: &mut Edited| {
        edited.reloader.check(|| {
            asked += 1;
            Environment::default()
        });
    };
    look(&mut edited);
    edited.write(&file(200));
    look(&mut edited);
    look(&mut edited);
    assert_eq!(asked, 1);
}

#[test]
fn handles_see_the_new_workflow() {
    let mut edited = Edited::new(100);
    let handle = edited.reloader.handle();
    edited.write(&file(200));
    edited.check();
    assert_eq!(timeout_of(&handle.load()), 200);
}

#[test]
fn the_scope_of_the_first_load_is_kept() {
    let mut edited = Edited::new(100);
    edited.write("no tracker is needed here");
    assert_eq!(edited.check(), "100 to 60000");
    assert_eq!(edited.reloader.current().scope, ValidationScope::WorkspaceAndHooks);
}
