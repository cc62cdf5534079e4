use std::os::unix::net::UnixListener;
use std::path::Path;

use carrel_config::{ValidationScope, Workflow};
use carrel_domain::{Code, Coded as _};
use pretty_assertions::assert_eq;

use crate::{environment, message, narrow, parse, warnings};

fn code(text: &str, scope: ValidationScope) -> Code {
    parse(text, scope).expect_err(text).code()
}

#[test]
fn each_kind_of_fault_has_its_code() {
    for (text, expected) in [
        ("no front matter", Code::TrackerMissing),
        ("---\ntracker: {kind: }\n---\n", Code::TrackerMissing),
        ("---\ntracker: {kind: local}\npolling: {interval_ms: 0}\n---\n", Code::WorkflowInvalid),
        ("---\ntracker: {kind: local}\n---\n{{ x", Code::TemplateParse),
    ] {
        assert_eq!(code(text, ValidationScope::Everything), expected, "{text}");
    }
}

#[test]
fn a_fault_names_file_line_and_column() {
    let error = narrow("workspace:\n  quota_gb: 1\n\nhooks:\n  timeout_ms: soon").unwrap_err();
    assert_eq!(
        error.to_string(),
        "/w/WORKFLOW.md:6:15: hooks.timeout_ms must be a whole number greater than 0, found \"soon\""
    );
    let detail = error.detail();
    assert_eq!(
        (&detail["line"], &detail["column"], &detail["key"]),
        (&6.into(), &15.into(), &"hooks.timeout_ms".into())
    );
}

#[test]
fn all_faults_are_reported_together_in_the_order_of_the_file() {
    let error =
        narrow("hooks: {timeout_ms: 0, sandbox: maybe}\nworkspace: {root: ''}").unwrap_err();
    let keys: Vec<_> = error.problems().iter().map(|p| p.diagnostic.key.as_deref()).collect();
    assert_eq!(keys, [Some("hooks.timeout_ms"), Some("hooks.sandbox"), Some("workspace.root")]);
}

#[test]
fn the_narrow_scope_needs_no_tracker_and_forgives_the_rest() {
    let text = "---\ntracker: 5\npolling: {interval_ms: x}\nagnet: {}\n---\n{{ broken";
    let workflow = parse(text, ValidationScope::WorkspaceAndHooks).unwrap();
    assert_eq!(workflow.config.conductor, None);
    let warnings = warnings(&workflow);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert_eq!(warnings[0], "W.md:4:1: agnet is not a setting and is ignored; did you mean agent?");
    assert!(warnings[1].starts_with("W.md:6:4: the prompt is not a valid template"));
    assert_eq!(code("---\na: [\n---\n", ValidationScope::WorkspaceAndHooks), Code::WorkflowParse);
}

#[test]
fn remote_workers_are_refused_in_every_scope() {
    for scope in [ValidationScope::Everything, ValidationScope::WorkspaceAndHooks] {
        let error = parse("---\nworker:\n  ssh_hosts: [a]\n---\n", scope).unwrap_err();
        assert!(error.to_string().contains("worker is not supported"), "{error}");
    }
}

#[test]
fn line_ends_and_letters_survive() {
    for end in ["\n", "\r\n", "\r"] {
        let text = ["---", "hooks: {before_run: echo Å х 入}", "---", "Å х 入", "two"].join(end);
        let workflow = parse(&text, ValidationScope::WorkspaceAndHooks).unwrap();
        assert_eq!(workflow.config.hooks.before_run.as_deref(), Some("echo Å х 入"));
        assert_eq!(workflow.prompt.source(), "Å х 入\ntwo");
    }
}

#[test]
fn a_byte_order_mark_gives_a_warning() {
    let workflow =
        parse("\u{feff}---\nhooks: {timeout_ms: 5}\n---\nx", ValidationScope::WorkspaceAndHooks);
    let workflow = workflow.unwrap();
    assert_eq!(workflow.config.hooks.timeout.as_millis(), 5);
    assert!(warnings(&workflow)[0].starts_with("W.md:1:1: the file begins with a byte order mark"));
}

#[test]
fn paths_are_absolute_and_start_at_the_file() {
    let path = Path::new("some/WORKFLOW.md");
    let workflow =
        Workflow::parse(b"", path, &environment(), ValidationScope::WorkspaceAndHooks).unwrap();
    assert!(workflow.path.is_absolute());
    assert!(workflow.path.ends_with(path));
    assert_eq!(workflow.path.parent(), Some(workflow.directory.as_path()));
}

#[test]
fn directories_devices_and_sockets_are_not_workflow_files() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    for path in [directory.path(), Path::new("/dev/zero"), &socket] {
        let result = Workflow::load(path, &environment(), ValidationScope::Everything);
        assert!(message(result).ends_with("is not a regular file"), "{}", path.display());
    }
}
