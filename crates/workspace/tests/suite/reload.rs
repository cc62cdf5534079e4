use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use carrel_config::{Environment, Scope, Workflow};
use carrel_workspace::{Commands, Create, Live};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::fmt::MakeWriter;

use crate::identifier;

/// Collects log lines.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Lines {
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

fn environment() -> Environment {
    Environment::from_pairs([("PATH", "/usr/bin:/bin")])
}

struct Edited {
    directory: tempfile::TempDir,
    file: PathBuf,
    live: Live,
}

impl Edited {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("WORKFLOW.md");
        std::fs::write(&file, text(&directory.path().join("one"))).unwrap();
        let workflow = Workflow::load(&file, &environment(), Scope::WorkspaceAndHooks).unwrap();
        let commands = Commands::new("/nonexistent".into());
        let live =
            Live::start(workflow, &environment(), commands, CancellationToken::new()).unwrap();
        Self { directory, file, live }
    }

    fn root(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&mut self, text: &str) {
        std::fs::write(&self.file, text).unwrap();
        self.live.check(environment);
    }
}

fn text(root: &Path) -> String {
    format!("---\nworkspace:\n  root: {}\n---\nDo it.\n", root.display())
}

#[tokio::test]
async fn a_broken_file_keeps_the_last_good_settings_and_complains_once() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).without_time().finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let mut edited = Edited::new();
    lines.take();
    edited.write("---\nworkspace: [broken\n---\n");
    for _ in 0..5 {
        edited.live.check(environment);
    }
    let log = lines.take();
    assert_eq!(
        log.matches("Workflow file cannot be used, keeping the last good one").count(),
        1,
        "{log}"
    );
    assert_eq!(edited.live.workspaces().path(), edited.root("one"));
    let create = Create::new(identifier("A"));
    edited.live.workspaces().create(create, edited.live.hooks()).await.unwrap();
    edited.write(&text(&edited.root("two")));
    assert_eq!(edited.live.workspaces().path(), edited.root("two"));
    assert!(lines.take().contains("Workflow file reloaded"));
}

#[tokio::test]
async fn a_changed_root_holds_new_workspaces_and_leaves_the_old_ones_where_they_are() {
    let lines = Lines::default();
    let subscriber = tracing_subscriber::fmt().with_writer(lines.clone()).without_time().finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let mut edited = Edited::new();
    let old = edited.live.workspaces().clone();
    for name in ["A", "B"] {
        old.create(Create::new(identifier(name)), edited.live.hooks()).await.unwrap();
    }
    lines.take();
    edited.write(&text(&edited.root("two")));
    edited.live.check(environment);
    let log = lines.take();
    let line = log.lines().find(|line| line.contains("Workspace root changed")).unwrap();
    for part in ["/one", "/two", "left_behind=2"] {
        assert!(line.contains(part), "{line}");
    }
    assert_eq!(log.matches("Workspace root changed").count(), 1);
    let created =
        edited.live.workspaces().create(Create::new(identifier("C")), edited.live.hooks());
    assert!(created.await.unwrap().path.starts_with(edited.root("two")));
    // Those who hold the old root go on there.
    let reused = old.create(Create::new(identifier("A")), edited.live.hooks()).await.unwrap();
    assert!(!reused.created && reused.path.starts_with(edited.root("one")));
}

#[tokio::test]
async fn a_root_that_cannot_be_used_leaves_the_old_one_in_place() {
    let mut edited = Edited::new();
    std::fs::write(edited.root("blocked"), "").unwrap();
    edited.write(&text(&edited.root("blocked")));
    assert_eq!(edited.live.workspaces().path(), edited.root("one"));
    // What stood in the way is gone; the file need not change for that.
    std::fs::remove_file(edited.root("blocked")).unwrap();
    edited.live.check(environment);
    assert_eq!(edited.live.workspaces().path(), edited.root("blocked"));
}
