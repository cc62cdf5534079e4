//! What real tools left behind, as `tests/outputs/record.sh` recorded it in `/w`.

use carrel_fsroot::{MAX_READ_BYTES, Root};
use carrel_verify::ProjectTool;
use carrel_verify::parse::{ArtifactFile, Outcome, Termination};
use carrel_verify::plan::{Invocation, ReportFormat, TreeAccess};

/// The workspace in which everything was recorded.
pub(crate) const WORKSPACE: &str = "/w";

/// One recorded run.
pub(crate) struct Recorded {
    pub(crate) exit: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) artifacts: Vec<ArtifactFile>,
    pub(crate) argv: Vec<String>,
}

/// Loads `tests/outputs/NAME`.
pub(crate) fn load(name: &str) -> Recorded {
    let directory = format!("{}/tests/outputs/{name}", env!("CARGO_MANIFEST_DIR"));
    let root = Root::open(directory.as_ref()).expect(name);
    let read = |file: &str| root.read(file.as_ref(), MAX_READ_BYTES).unwrap_or_default();
    let text = |file: &str| String::from_utf8(read(file)).unwrap();
    let known = ["argv", "exit", "stdout", "stderr"];
    let names =
        root.list(".".as_ref()).unwrap().into_iter().map(|entry| entry.name.into_string().unwrap());
    let artifacts = names.filter(|name| !known.contains(&name.as_str()));
    // Reports of Maven lie in the project.
    let place = |name: &str| match name.strip_prefix("TEST-") {
        Some(_) => format!("java/target/surefire-reports/{name}"),
        None => name.to_owned(),
    };
    Recorded {
        exit: text("exit").trim().parse().unwrap(),
        stdout: read("stdout"),
        stderr: read("stderr"),
        artifacts: artifacts
            .map(|name| ArtifactFile { contents: read(&name), name: place(&name) })
            .collect(),
        argv: text("argv").trim().split(' ').map(str::to_owned).collect(),
    }
}

impl Recorded {
    /// The outcome as it was.
    pub(crate) fn outcome(&self) -> Outcome<'_> {
        self.outcome_after(Termination::Exited(self.exit))
    }

    /// The same output with another end.
    pub(crate) fn outcome_after(&self, termination: Termination) -> Outcome<'_> {
        Outcome {
            termination,
            stdout: &self.stdout,
            stderr: &self.stderr,
            truncated: false,
            artifacts: &self.artifacts,
            workspace: WORKSPACE,
        }
    }

    /// The command line as it was, with what a plan would add to it.
    pub(crate) fn invocation(
        &self,
        directory: &str,
        tool: ProjectTool,
        report: ReportFormat,
    ) -> Invocation {
        Invocation {
            argv: self.argv.clone(),
            directory: directory.to_owned(),
            environment: Vec::new(),
            report,
            artifacts: Vec::new(),
            tool,
            base: directory.to_owned(),
            module: (tool == ProjectTool::GoTest).then(|| "example.com/sample".to_owned()),
            install_hint: "install it".to_owned(),
            access: TreeAccess::ReadWrite,
        }
    }
}
