//! The operator's guide to each error code: usual causes, remedies and an example.
//!
//! The table is exhaustive: a new code does not compile without an entry. Its texts appear on the code's page
//! below `docs/errors/`, and the command line appends the first remedy to its messages, so remedies are
//! phrases that start in lower case and end without a full stop.
//!
//! Examples show a real call and its message. A call that starts with `$` is a command line, one that starts
//! with an HTTP method is a request, and any other is a tool call.

use crate::code::Code;

/// The guide to one code. Causes and remedies are ordered, the most likely and most useful first.
struct Guide {
    causes: &'static [&'static str],
    remedies: &'static [&'static str],
    example: Example,
}

/// A call that fails with a code, and its message without the appended remedy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Example {
    pub(crate) call: &'static str,
    pub(crate) message: &'static str,
}

impl Code {
    /// Returns the usual causes, most likely first.
    pub fn causes(self) -> &'static [&'static str] {
        self.guide().causes
    }

    /// Returns the remedies, most useful first. Messages of the command line end with the first one.
    pub fn remedies(self) -> &'static [&'static str] {
        self.guide().remedies
    }

    pub(crate) fn example(self) -> Example {
        self.guide().example
    }

    #[expect(clippy::too_many_lines, reason = "it is a table, one entry for each code")]
    fn guide(self) -> Guide {
        match self {
            Self::SandboxViolation => Guide {
                causes: &[
                    "the path is absolute or climbs above the workspace",
                    "a symbolic link on the way leads outside, is absolute, or points at nothing",
                ],
                remedies: &["use a path relative to the workspace that stays inside it"],
                example: Example {
                    call: "$ carrel exec --cwd .. -- pwd",
                    message: "could not start in this directory of the workspace: path leaves the workspace, it climbs above the top with `..`: ..",
                },
            },
            Self::SensitivePath => Guide {
                causes: &[
                    "the name is one that holds credentials, such as `.ssh` or `.aws`",
                    "the name belongs to Carrel, such as `.carrel`",
                ],
                remedies: &["choose another name; this one is never listed, read or searched"],
                example: Example {
                    call: "GET /api/workspaces/{workspace_id}/files/content?path=.ssh/id_ed25519",
                    message: "path is not open to browsing: .ssh/id_ed25519",
                },
            },
            Self::InvalidPath => Guide {
                causes: &["the path contains a NUL byte", "the path does not end in a name"],
                remedies: &["give a path without NUL bytes that ends in a name"],
                example: Example {
                    call: "Write {\"file_path\": \"src/..\", \"content\": \"\"}",
                    message: "cannot make src/..: it does not end in a name",
                },
            },
            Self::NotFound => Guide {
                causes: &["the path is misspelt", "what was there has been moved or removed"],
                remedies: &["check the spelling of the path"],
                example: Example {
                    call: "$ carrel exec -- cargo test",
                    message: "no such program: cargo",
                },
            },
            Self::AlreadyExists => Guide {
                causes: &["an earlier step made it", "another process made it in the meantime"],
                remedies: &["choose another name, or remove what is there"],
                example: Example {
                    call: "Move {\"source\": \"a.txt\", \"destination\": \"b.txt\"}",
                    message: "b.txt exists already; set overwrite to replace it",
                },
            },
            Self::NotADirectory => Guide {
                causes: &["a file is where a directory is expected, or on the way to it"],
                remedies: &["name a directory, or move the file away"],
                example: Example {
                    call: "$ carrel exec --workspace notes.txt -- ls",
                    message: "--workspace notes.txt cannot be used: not a directory",
                },
            },
            Self::IsADirectory => Guide {
                causes: &["the path leads to a directory"],
                remedies: &["name a file inside the directory"],
                example: Example {
                    call: "Write {\"file_path\": \"src\", \"content\": \"x\"}",
                    message: "path is a directory: src",
                },
            },
            Self::NotARegularFile => Guide {
                causes: &["the path leads to a FIFO, a socket or a device"],
                remedies: &["name a regular file; nothing else is read or written"],
                example: Example {
                    call: "Read {\"file_path\": \"pipe\"}",
                    message: "not a regular file but a FIFO: pipe",
                },
            },
            Self::DirectoryNotEmpty => Guide {
                causes: &["the directory has entries, perhaps hidden ones"],
                remedies: &["empty the directory first, or remove it as a whole tree"],
                example: Example {
                    call: "Delete {\"path\": \"build\"}",
                    message: "build is a directory with entries; set recursive to delete it",
                },
            },
            Self::NameTooLong => Guide {
                causes: &[
                    "a single name has more than 255 bytes",
                    "the whole path has 4096 or more",
                ],
                remedies: &["use a shorter name"],
                example: Example {
                    call: "Write {\"file_path\": \"aaaa…\", \"content\": \"\"}",
                    message: "cannot make aaaa…: its name is too long",
                },
            },
            Self::LinkLoop => Guide {
                causes: &[
                    "symbolic links point at each other",
                    "a path runs through over 40 links",
                ],
                remedies: &["remove one of the links"],
                example: Example {
                    call: "Read {\"file_path\": \"loop\"}",
                    message: "too many symbolic links, or links in a circle: loop",
                },
            },
            Self::TooLarge => Guide {
                causes: &["the file is larger than one read returns"],
                remedies: &["read it in ranges"],
                example: Example {
                    call: "GET /api/workspaces/{workspace_id}/files/content?path=core.dump",
                    message: "file has 8589934592 bytes, more than the limit of 2097152: core.dump",
                },
            },
            Self::CrossesMount => Guide {
                causes: &["something is mounted inside the root or a workspace"],
                remedies: &["unmount it, or choose a root that has no mount points inside"],
                example: Example {
                    call: "$ carrel workspace rm ABC-1",
                    message: "another file system is mounted there: mnt",
                },
            },
            Self::PermissionDenied => Guide {
                causes: &[
                    "the root or a file in it belongs to another user",
                    "the file system is mounted read-only",
                ],
                remedies: &[
                    "check owner and mode of the root with `carrel workspace verify`",
                    "run Carrel as the user that owns the root",
                ],
                example: Example {
                    call: "$ carrel workspace create ABC-2",
                    message: "could not make /home/user/carrel/ABC-2: permission denied: ABC-2: Permission denied (os error 13)",
                },
            },
            Self::DiskFull => Guide {
                causes: &[
                    "the file system has no blocks or no inodes left",
                    "a quota of the file system is used up",
                ],
                remedies: &[
                    "look with `df -h` and `df -i`, and free space with `carrel workspace gc`",
                    "move workspace.root to a larger file system",
                ],
                example: Example {
                    call: "$ carrel workspace create ABC-2",
                    message: "could not write /home/user/carrel/.carrel/records/ABC-2.json: no space left on the file system: records/ABC-2.json",
                },
            },
            Self::QuotaExceeded => Guide {
                causes: &["the workspace grew beyond workspace.quota_gb or workspace.quota_files"],
                remedies: &["remove what is not needed, or raise the quota"],
                example: Example {
                    call: "$ carrel exec --workspace ~/carrel/Q-1 -- true",
                    message: "workspace Q-1 uses 55.9 MiB of 50.0 MiB",
                },
            },
            Self::Contended => Guide {
                causes: &["other processes rename directories all the time"],
                remedies: &["try again"],
                example: Example {
                    call: "Read {\"file_path\": \"src/main.rs\"}",
                    message: "directories kept changing; try again: src/main.rs",
                },
            },
            Self::KernelUnsupported => Guide {
                causes: &["Linux older than 5.11", "a container profile that forbids `openat2`"],
                remedies: &[
                    "use Linux 5.11 or later, and a container profile that allows `openat2`",
                ],
                example: Example {
                    call: "$ carrel workspace ls",
                    message: "the kernel refuses openat2, which needs Linux 5.6 or later and a container that allows it: /home/user/carrel",
                },
            },
            Self::Io => Guide {
                causes: &[
                    "the disk or the network file system fails",
                    "the process has too many files open",
                ],
                remedies: &["see to what the system reports, and try again"],
                example: Example {
                    call: "Read {\"file_path\": \"data.bin\"}",
                    message: "operation failed: data.bin: Input/output error (os error 5)",
                },
            },
            Self::InvalidIdentifier => Guide {
                causes: &[
                    "the identifier is empty, `.` or `..`",
                    "the identifier has more than 4096 bytes",
                    "every key that the identifier could have is taken",
                ],
                remedies: &["try an identifier with `carrel workspace key`"],
                example: Example {
                    call: "$ carrel workspace key ..",
                    message: "the identifier \"..\" names a directory, not a workspace; give one such as ABC-123",
                },
            },
            Self::WorkspaceEqualsRoot => Guide {
                causes: &["the root itself was given where a workspace is meant"],
                remedies: &["name a workspace inside the root"],
                example: Example {
                    call: "$ carrel workspace rm --path ~/carrel --root ~/carrel",
                    message: "the path is the root itself, not a workspace in it: /home/user/carrel",
                },
            },
            Self::WorkspaceOutsideRoot => Guide {
                causes: &[
                    "`workspace.root` was changed since the workspace was made",
                    "the path names something below a workspace, or elsewhere",
                ],
                remedies: &[
                    "name a direct child of the root, or correct workspace.root",
                    "use an absolute path for workspace.root",
                ],
                example: Example {
                    call: "$ carrel workspace rm --path /tmp/other/path",
                    message: "the path is not a direct child of the root: /tmp/other/path",
                },
            },
            Self::WorkspaceSymlinkEscape => Guide {
                causes: &["a symbolic link was put where the workspace directory belongs"],
                remedies: &["remove the link; it is never followed and never deleted for you"],
                example: Example {
                    call: "$ carrel workspace create ABC-3",
                    message: "a symbolic link stands between the root and the workspace: /home/user/carrel/ABC-3",
                },
            },
            Self::InvalidWorkspaceCwd => Guide {
                causes: &[
                    "the directory was replaced, removed or linked elsewhere since it was opened",
                    "the command was to start outside its workspace",
                ],
                remedies: &["create the workspace again, and start commands only inside it"],
                example: Example {
                    call: "$ carrel exec --workspace ~/carrel/ABC-1/src -- ls",
                    message: "/home/user/carrel/ABC-1/src lies inside a workspace; write --workspace /home/user/carrel/ABC-1 --cwd src",
                },
            },
            Self::WorkspaceOccupied => Guide {
                causes: &["a file or another kind of entry has the workspace's name"],
                remedies: &["move it out of the root; Carrel never deletes what it did not make"],
                example: Example {
                    call: "$ carrel workspace create FILE",
                    message: "a regular file stands where the workspace belongs: /home/user/carrel/FILE",
                },
            },
            Self::WorkspaceForeignOwner => Guide {
                causes: &["another user made the directory"],
                remedies: &["move it out of the root, or run Carrel as its owner"],
                example: Example {
                    call: "$ carrel workspace create ABC-4",
                    message: "the directory belongs to user 1001: /home/user/carrel/ABC-4",
                },
            },
            Self::WorkspaceForeignTracker => Guide {
                causes: &[
                    "two repositories or projects have issues of the same name and one workspace root",
                    "two data directories or databases have",
                ],
                remedies: &[
                    "give each a `workspace.root` of its own",
                    "remove the workspace with `carrel workspace rm` if it is of no use any more",
                ],
                example: Example {
                    call: "$ carrel run WORKFLOW.md",
                    message: "/home/user/carrel/CAR-1 is the workspace of an issue of the same name in another tracker (…)",
                },
            },
            Self::WorkspaceNotFound => Guide {
                causes: &["it was never made in this root, or was removed"],
                remedies: &["list what there is with `carrel workspace ls`"],
                example: Example {
                    call: "$ carrel workspace show NOPE-1",
                    message: "no workspace \"NOPE-1\" in /home/user/carrel",
                },
            },
            Self::WorkspaceBusy => Guide {
                causes: &["another process creates, removes or uses the workspace"],
                remedies: &["wait for it, or end the process that the message names"],
                example: Example {
                    call: "$ carrel workspace create ABC-8",
                    message: "workspace ABC-8 is in use (process 12152, creating)",
                },
            },
            Self::WorkspaceDirty => Guide {
                causes: &["files were changed, or commits not pushed"],
                remedies: &["commit and push the work, or leave out --keep-if-dirty"],
                example: Example {
                    call: "$ carrel workspace rm ABC-1 --keep-if-dirty",
                    message: "workspace ABC-1 has unsaved work: 2 changed files in .",
                },
            },
            Self::RootRefused => Guide {
                causes: &[
                    "`workspace.root` names a directory of the system, a home or a repository",
                ],
                remedies: &[
                    "~/carrel is a safe choice",
                    "name a directory that Carrel can make and own, such as /srv/carrel",
                ],
                example: Example {
                    call: "$ carrel workspace create ABC-1 --root ~/repo",
                    message: "/home/user/repo cannot hold workspaces: it is a git work tree",
                },
            },
            Self::RootUnsafe => Guide {
                causes: &["other users may write to the root, or own it"],
                remedies: &["run `chmod 700` on it, or name a directory of your own"],
                example: Example {
                    call: "$ carrel workspace create ABC-1 --root ~/open",
                    message: "/home/user/open is not safe as a root: everybody may write to it (mode 777)",
                },
            },
            Self::SchemaTooNew => Guide {
                causes: &["a newer version of Carrel has used this root"],
                remedies: &["use that version, or another root"],
                example: Example {
                    call: "$ carrel serve",
                    message: "the database has schema 14, and this version of carrel knows 12",
                },
            },
            Self::RecordUnreadable => Guide {
                causes: &["the record was edited by hand, or the disk is damaged"],
                remedies: &[
                    "delete the record of a workspace that the message names, so that the next create adopts the directory; put back a copy of a database, or move it away to begin with nothing",
                ],
                example: Example {
                    call: "$ carrel workspace show ABC-1",
                    message: "the record /home/user/carrel/.carrel/records/ABC-1.json cannot be read: expected value at line 1 column 1",
                },
            },
            Self::HookFailed => Guide {
                causes: &[
                    "a command in the hook ended with an error",
                    "the hook needs a variable that hooks do not get",
                ],
                remedies: &[
                    "read what it printed in the log",
                    "list the variables it needs under hooks.env",
                    "run the script by hand in an empty directory with `sh -lc`",
                ],
                example: Example {
                    call: "$ carrel workspace create ABC-2 --config clone.md",
                    message: "hook after_create failed with status 128: fatal: repository '/nowhere/app.git' does not exist, log /home/user/carrel/.carrel/logs/ABC-2/….log",
                },
            },
            Self::HookTimeout => Guide {
                causes: &[
                    "a slow network during clone or install",
                    "a large repository",
                    "an expensive build step",
                ],
                remedies: &[
                    "raise hooks.timeout_ms in the workflow file",
                    "clone with `--depth=1`",
                    "keep dependency caches outside the workspace",
                ],
                example: Example {
                    call: "$ carrel workspace create ABC-1 --config clone.md",
                    message: "hook after_create timed out after 60000 ms, log /home/user/carrel/.carrel/logs/ABC-1/….log",
                },
            },
            Self::SandboxUnavailable => Guide {
                causes: &[
                    "the kernel, a container or a security module refuses what the tier needs",
                    "the requested tier cannot do what the request needs",
                ],
                remedies: &[
                    "run `carrel doctor` to see what is missing and how to get it",
                    "let `tier` be `auto`, so that the best tier that is there is used",
                    "say `--sandbox off` if the command is trusted and needs no boundary",
                ],
                example: Example {
                    call: "$ carrel exec --tier full -- true",
                    message: "the sandbox could not be set up: creating a user namespace: No space left on device (os error 28)",
                },
            },
            Self::SpawnFailed => Guide {
                causes: &[
                    "the limit of processes or of open files is reached",
                    "the working directory is gone",
                    "Linux older than 5.11",
                ],
                remedies: &[
                    "see to what the system reports",
                    "raise the limits that `ulimit -u` and `ulimit -n` show",
                    "use Linux 5.11 or later",
                ],
                example: Example {
                    call: "$ carrel serve --bind 127.0.0.1:8080",
                    message: "could not listen on 127.0.0.1:8080, which another program may use; name another port",
                },
            },
            Self::CommandRefused => Guide {
                causes: &["the preset does not allow a command that the line contains"],
                remedies: &[
                    "follow what the message says would pass",
                    "run `carrel policy check` to try a command line without running it",
                ],
                example: Example {
                    call: "$ carrel exec --preset denylist -c 'echo a | sudo tee b'",
                    message: "`sudo tee b` is refused: it changes privileges; run the command without it",
                },
            },
            Self::NetworkRefused => Guide {
                causes: &["the request needs more network than `network_limit` allows"],
                remedies: &["ask for less, or raise `network_limit` in policy.toml"],
                example: Example {
                    call: "$ carrel exec --network full -- true",
                    message: "network full is more than the operator allows; ask for loopback, or set network_limit = \"full\" in policy.toml",
                },
            },
            Self::JobNotFound => Guide {
                causes: &["the id is wrong, or the job ended long ago and was forgotten"],
                remedies: &["list the jobs that there are"],
                example: Example {
                    call: "BashOutput {\"shell_id\": \"7\"}",
                    message: "unknown shell_id: 7",
                },
            },
            Self::TooManyJobs => Guide {
                causes: &["background jobs were started and never ended"],
                remedies: &["end one that is not needed any more, or wait for one to end"],
                example: Example {
                    call: "Bash {\"command\": \"npm run dev\", \"run_in_background\": true}",
                    message: "already 64 jobs are running; one has to end before another starts",
                },
            },
            Self::InvalidCursor => Guide {
                causes: &["the cursor does not come from a read of this log"],
                remedies: &["use the cursor of the last read, or begin at the start"],
                example: Example {
                    call: "BashOutput {\"shell_id\": \"job_1\", \"cursor\": 900}",
                    message: "cursor 900 is beyond the log, which has 0 to 512",
                },
            },
            Self::PolicyMissing => Guide {
                causes: &["the path is wrong, or the file cannot be read"],
                remedies: &["name the file with --policy or CARREL_POLICY, or remove the name"],
                example: Example {
                    call: "$ carrel exec --policy missing.toml -- true",
                    message: "could not read the policy file /home/user/missing.toml (named by --policy): No such file or directory (os error 2)",
                },
            },
            Self::PolicyUnsafe => Guide {
                causes: &[
                    "the file or its directory belongs to another user, or others may write to it",
                    "the file lies in the workspace that it applies to",
                ],
                remedies: &["change owner and mode as the message says, or move the file"],
                example: Example {
                    call: "$ carrel exec -- true",
                    message: "the policy is not safe from other users: /etc/carrel/policy.toml has mode 0666, which lets its group or everyone change it; after a look at what it says, run `chmod go-w /etc/carrel/policy.toml`",
                },
            },
            Self::PolicyInvalid => Guide {
                causes: &["a key is unknown, or its value has a wrong type or range"],
                remedies: &["correct what the message names; docs/policy.md lists every key"],
                example: Example {
                    call: "$ carrel exec -- true",
                    message: "/etc/carrel/policy.toml:1:1: netwrok is not a setting; did you mean network?",
                },
            },
            Self::WorkflowMissing => Guide {
                causes: &["the path is wrong, or the file cannot be read"],
                remedies: &[
                    "name the file behind `carrel run` or `carrel check`, or with --config of other commands",
                ],
                example: Example {
                    call: "$ carrel run",
                    message: "could not read the workflow file WORKFLOW.md: No such file or directory (os error 2)",
                },
            },
            Self::WorkflowParse => Guide {
                causes: &[
                    "wrong indentation, or a colon or quote inside a value that is not quoted",
                    "a key that is given twice",
                    "a tab where YAML wants spaces",
                ],
                remedies: &["correct the YAML between the two `---` lines"],
                example: Example {
                    call: "$ carrel check WORKFLOW.md",
                    message: "WORKFLOW.md:3:1: this is not valid YAML: while parsing a node, did not find expected node content",
                },
            },
            Self::WorkflowNotAMap => Guide {
                causes: &["the text between the two `---` lines is a list or a single value"],
                remedies: &["write settings as `name: value` between the two `---` lines"],
                example: Example {
                    call: "$ carrel check WORKFLOW.md",
                    message: "WORKFLOW.md:2:1: the front matter must be a map, found a list",
                },
            },
            Self::WorkflowInvalid => Guide {
                causes: &[
                    "a value of the wrong type or out of range",
                    "a variable that the file names and nobody has set",
                    "a setting that is not supported, such as `worker`",
                ],
                remedies: &["see docs/workflow.md for every setting and what it takes"],
                example: Example {
                    call: "$ carrel check WORKFLOW.md",
                    message: "WORKFLOW.md:6:15: hooks.timeout_ms must be a whole number greater than 0, found \"soon\"",
                },
            },
            Self::TrackerMissing => Guide {
                causes: &["`tracker.kind` is not set"],
                remedies: &["set tracker.kind; `local` needs no other service"],
                example: Example {
                    call: "$ carrel check WORKFLOW.md",
                    message: "WORKFLOW.md: tracker.kind is missing; set it to one of linear, github, gitlab, jira, asana, local",
                },
            },
            Self::TrackerUnsupported => Guide {
                causes: &["`tracker.kind` is misspelt"],
                remedies: &["see docs/workflow.md for the trackers there are"],
                example: Example {
                    call: "$ carrel check WORKFLOW.md",
                    message: "WORKFLOW.md:3:9: tracker.kind must be one of linear, github, gitlab, jira, asana, local, found \"lineer\"; did you mean linear?",
                },
            },
            Self::TemplateParse => Guide {
                causes: &[
                    "a tag or an output that is not closed",
                    "a filter or a tag that does not exist",
                ],
                remedies: &["correct the template below the second `---` line"],
                example: Example {
                    call: "$ carrel check WORKFLOW.md",
                    message: "WORKFLOW.md:5:10: the prompt is not a valid template: expected Identifier, at \"{{ issue.\"",
                },
            },
            Self::InvalidArguments => Guide {
                causes: &["the call does not follow the schema of the tool"],
                remedies: &[
                    "see the schema in `tools/list`, `carrel tool NAME --help` or docs/tools.md",
                ],
                example: Example {
                    call: "Edit {\"file_path\": \"a.txt\", \"old_string\": \"\", \"new_string\": \"y\"}",
                    message: "old_string must be non-empty",
                },
            },
            Self::UnknownTool => Guide {
                causes: &[
                    "the name is misspelt",
                    "the server runs with --read-only or another --toolset",
                ],
                remedies: &["list the tools with `tools/list` or `carrel tool`"],
                example: Example {
                    call: "$ carrel tool Raed file_path=a.txt",
                    message: "unknown tool `Raed`; did you mean `Read`?",
                },
            },
            Self::UnknownWorkspace => Guide {
                causes: &["the name is misspelt; names are case-sensitive"],
                remedies: &["pass one of the names in the message"],
                example: Example {
                    call: "Read {\"workspace\": \"apo\", \"file_path\": \"a.txt\"}",
                    message: "unknown workspace \"apo\"; configured: app, docs",
                },
            },
            Self::WorkspaceNotChosen => Guide {
                causes: &["`workspace` was left out"],
                remedies: &["pass `workspace` with one of the names in the message"],
                example: Example {
                    call: "Read {\"file_path\": \"a.txt\"}",
                    message: "multi-workspace sandbox: 2 workspaces configured (app, docs) — pass `workspace` to pick one",
                },
            },
            Self::WorkspacesInvalid => Guide {
                causes: &["two have one name or one directory, or one lies inside another"],
                remedies: &["correct --workspaces; each entry is `name=directory` or `directory`"],
                example: Example {
                    call: "$ carrel mcp --workspaces app=/srv/app,api=/srv/app/api",
                    message: "workspace[1] (api): /srv/app/api lies inside workspace \"app\"; one file would be in two workspaces",
                },
            },
            Self::ReadOnly => Guide {
                causes: &["the operator marked it read-only"],
                remedies: &["work in another workspace, or ask the operator"],
                example: Example {
                    call: "Write {\"file_path\": \"a.txt\", \"content\": \"x\"}",
                    message: "Write changes files, and workspace \"docs\" is read-only",
                },
            },
            Self::RunsLater => Guide {
                causes: &[
                    "the file is a git hook, a setting of an editor or an agent, or a start-up file",
                    "there are more directories than can be looked through for such files",
                ],
                remedies: &[
                    "move the directories that the message means into one directory, one level down",
                    "ask the operator, who can write it, or set `trust = \"report\"` in policy.toml",
                ],
                example: Example {
                    call: "Write {\"file_path\": \".git/hooks/pre-commit\", \"content\": \"…\"}",
                    message: ".git/hooks/pre-commit (git hook) would run later, outside the sandbox, so nothing was written. The operator can write it, or allow it with `trust = \"report\"` in policy.toml",
                },
            },
            Self::NotRead => Guide {
                causes: &["the file was not read, or only in part, or in another workspace"],
                remedies: &["read it first"],
                example: Example {
                    call: "$ carrel tool Edit '{\"file_path\": \"a.txt\", \"old_string\": \"x\", \"new_string\": \"y\"}'",
                    message: "refusing to edit a.txt: Read it first",
                },
            },
            Self::ChangedSinceRead => Guide {
                causes: &["a command, a formatter, an editor or another session wrote it"],
                remedies: &["read it again"],
                example: Example {
                    call: "Edit {\"file_path\": \"a.txt\", \"old_string\": \"x\", \"new_string\": \"y\"}",
                    message: "refusing to edit a.txt: it has changed since it was read; Read it again",
                },
            },
            Self::BinaryFile => Guide {
                causes: &["the file is a program, an archive or another binary format"],
                remedies: &["use a command that understands the format"],
                example: Example {
                    call: "Edit {\"file_path\": \"logo.png\", \"old_string\": \"x\", \"new_string\": \"y\"}",
                    message: "logo.png is no text but image/png",
                },
            },
            Self::InvalidRange => Guide {
                causes: &["the file is shorter, or the range ends before it begins"],
                remedies: &["ask for lines that the file has; the message says how many"],
                example: Example {
                    call: "Read {\"file_path\": \"a.txt\", \"offset\": 900}",
                    message: "read: offset 900 exceeds line count 42",
                },
            },
            Self::EditFindNotFound => Guide {
                causes: &["the text was copied inexactly, or the file is another one"],
                remedies: &["read the place again and copy the text exactly"],
                example: Example {
                    call: "Edit {\"file_path\": \"a.rs\", \"old_string\": \"fn mian\", \"new_string\": \"fn main\"}",
                    message: "old_string not found in a.rs",
                },
            },
            Self::EditMultiMatch => Guide {
                causes: &["the text is too short to be unique"],
                remedies: &["add lines around it, or set replace_all"],
                example: Example {
                    call: "Edit {\"file_path\": \"a.rs\", \"old_string\": \"return\", \"new_string\": \"break\"}",
                    message: "old_string matched 7 times in a.rs; add context to make it unique or set replace_all=true",
                },
            },
            Self::EditFindTooLarge => Guide {
                causes: &["a whole block was given where its first lines would do"],
                remedies: &["give a shorter text, or a range of lines"],
                example: Example {
                    call: "Edit {\"file_path\": \"a.rs\", \"old_string\": \"…\", \"new_string\": \"…\"}",
                    message: "old_string is too large: at most 1048576 bytes are allowed; name a shorter piece",
                },
            },
            Self::EditReplaceTooLarge => Guide {
                causes: &["a whole file was given as one edit"],
                remedies: &["split the edit, or replace a range of lines"],
                example: Example {
                    call: "Edit {\"file_path\": \"a.rs\", \"old_string\": \"x\", \"new_string\": \"…\"}",
                    message: "new_string is too large: at most 8388608 bytes are allowed; make several smaller edits",
                },
            },
            Self::EditBatchTooLarge => Guide {
                causes: &["too many edits in one call"],
                remedies: &["make several calls"],
                example: Example {
                    call: "MultiEdit {\"file_path\": \"a.rs\", \"edits\": [\"…\"]}",
                    message: "there are 500 edits, at most 200 are allowed at once",
                },
            },
            Self::EditLineRangeTooLarge => Guide {
                causes: &["the range is wrong, or the file is to be emptied"],
                remedies: &["use Write with empty content, or Delete"],
                example: Example {
                    call: "MultiEdit {\"file_path\": \"a.txt\", \"edits\": [{\"start_line\": 1, \"end_line\": 42, \"new_string\": \"\"}]}",
                    message: "edit 1: lines 1..42 are all lines of a.txt, which would become empty",
                },
            },
            Self::EditOverlap => Guide {
                causes: &["the ranges overlap"],
                remedies: &["join the edits into one"],
                example: Example {
                    call: "MultiEdit {\"file_path\": \"a.txt\", \"edits\": [{\"start_line\": 1, \"end_line\": 2, \"new_string\": \"x\"}, {\"start_line\": 2, \"end_line\": 3, \"new_string\": \"y\"}]}",
                    message: "edits 1 and 2 overlap",
                },
            },
            Self::EditDuplicatesContext => Guide {
                causes: &["the range ends too early"],
                remedies: &["extend the range, or leave those lines out of the text"],
                example: Example {
                    call: "MultiEdit {\"file_path\": \"a.rs\", \"edits\": [{\"start_line\": 10, \"end_line\": 12, \"new_string\": \"…\"}]}",
                    message: "edit 1: the new lines repeat lines 13..15 of a.rs, which follow the range; extend the range or leave them out",
                },
            },
            Self::EditNoChange => Guide {
                causes: &["both texts are the same"],
                remedies: &["leave the edit out"],
                example: Example {
                    call: "Edit {\"file_path\": \"a.txt\", \"old_string\": \"x\", \"new_string\": \"x\"}",
                    message: "nothing would change in a.txt: the new text is the same as the old",
                },
            },
            Self::PatchInvalid => Guide {
                causes: &["it is no unified diff, or was cut"],
                remedies: &["give a unified diff with `---`, `+++` and `@@` lines"],
                example: Example {
                    call: "ApplyPatch {\"patch\": \"hello\"}",
                    message: "invalid patch: no change found in the patch: it must hold `--- a/file` and `+++ b/file` lines before hunks, or begin with `*** Begin Patch`",
                },
            },
            Self::PatchFailed => Guide {
                causes: &["the files differ from those that the patch was made for"],
                remedies: &["read the files again and make the patch anew"],
                example: Example {
                    call: "ApplyPatch {\"patch\": \"…\"}",
                    message: "src/main.rs: hunk 2: line 41 does not match: the patch has \"let a = 1;\", the file has \"let a = 2;\"",
                },
            },
            Self::InvalidPattern => Guide {
                causes: &["a bracket is open, or a character needs a backslash"],
                remedies: &["correct the pattern, or set fixed_strings"],
                example: Example {
                    call: "Grep {\"pattern\": \"foo(\"}",
                    message: "unclosed group",
                },
            },
            Self::ProjectNotDetected => Guide {
                causes: &["no marker such as Cargo.toml, package.json or pyproject.toml was found"],
                remedies: &["name another path, or say the commands in carrel.toml"],
                example: Example {
                    call: "$ carrel tool run_tests",
                    message: "no supported project detected in workspace root",
                },
            },
            Self::LanguageNotChosen => Guide {
                causes: &["`language` was left out, or names one that is not there"],
                remedies: &["pass `language` with one of the names in the message, or `all`"],
                example: Example {
                    call: "$ carrel tool run_tests",
                    message: "polyglot workspace: 2 project types detected (node, rust) — pass `language` to pick one",
                },
            },
            Self::ScriptNotFound => Guide {
                causes: &["the name is misspelt"],
                remedies: &["pass one of the names in the message"],
                example: Example {
                    call: "run_script {\"name\": \"bulid\"}",
                    message: "run_script: no script named \"bulid\" in package.json; available: build, lint, test",
                },
            },
            Self::GitRefused => Guide {
                causes: &["an option that reads or writes elsewhere, or runs programs"],
                remedies: &["use the options in the message"],
                example: Example {
                    call: "git {\"operation\": \"fetch\", \"args\": [\"--upload-pack=evil\"]}",
                    message: "git fetch: `--upload-pack=evil` is not allowed: it names a program to run. Allowed flags: --all --atomic --depth=… …",
                },
            },
            Self::SecretUnknown => Guide {
                causes: &["the operator has not configured it"],
                remedies: &["list the names with secrets_available"],
                example: Example {
                    call: "secret {\"name\": \"NPM_TOKEN\"}",
                    message: "unknown secret: NPM_TOKEN (available: GITHUB_TOKEN)",
                },
            },
            Self::MaskedWrite => Guide {
                causes: &["it was copied from an output in which a secret was masked"],
                remedies: &["leave the masked line as it is, or write the real text"],
                example: Example {
                    call: "Write {\"file_path\": \".env\", \"content\": \"KEY=[masked secret db]\"}",
                    message: "refusing to write [masked secret db] to .env: it stands for a secret that was masked in an output, and the real value would be lost",
                },
            },
            Self::Timeout => Guide {
                causes: &["the work takes longer than the limit"],
                remedies: &["raise the timeout, or ask for less"],
                example: Example {
                    call: "shell_run {\"cmd\": \"sleep\", \"args\": [\"60\"], \"timeout_ms\": 1000}",
                    message: "TIMED OUT after 1000ms",
                },
            },
            Self::Cancelled => Guide {
                causes: &["the client cancelled the call, or the server stops"],
                remedies: &["call again"],
                example: Example {
                    call: "Grep {\"pattern\": \"TODO\"}",
                    message: "the search was cancelled",
                },
            },
            Self::InvalidRequest => Guide {
                causes: &["a field is missing, unknown, of the wrong type or out of its range"],
                remedies: &[
                    "the detail names the field; `/openapi.json` says what the route takes",
                ],
                example: Example {
                    call: "POST /api/workspaces {}",
                    message: "body is not as expected: missing field `name` at line 1 column 2",
                },
            },
            Self::Unauthenticated => Guide {
                causes: &[
                    "no bearer token was sent",
                    "the token is out of date, or was signed with another key",
                ],
                remedies: &[
                    "get a token with `carrel token new`, and send it as `Authorization: Bearer …`",
                ],
                example: Example {
                    call: "GET /api/tasks",
                    message: "the request carries no valid token",
                },
            },
            Self::KeysUnavailable => Guide {
                causes: &[
                    "the server at CARREL_JWKS_URL does not answer, or not with a set of keys",
                    "it has not answered for so long that the keys of then are not used any more",
                ],
                remedies: &[
                    "ask CARREL_JWKS_URL with curl from the machine of the server; `/readyz` says when the keys are there",
                ],
                example: Example {
                    call: "GET /api/tasks",
                    message: "the keys that the token would be verified with could not be fetched",
                },
            },
            Self::Forbidden => Guide {
                causes: &[
                    "the token is for another workspace",
                    "the token lacks the scope that the detail names",
                ],
                remedies: &["use a token for this workspace that has the scope"],
                example: Example {
                    call: "POST /api/workspaces/{workspace_id}/exec",
                    message: "the token lacks the scope exec",
                },
            },
            Self::UnknownRoute => Guide {
                causes: &["the path is misspelt"],
                remedies: &["`/openapi.json` lists every route"],
                example: Example { call: "GET /api/taks", message: "no route /api/taks" },
            },
            Self::MethodNotAllowed => Guide {
                causes: &["the route was asked with a method that it does not have"],
                remedies: &["the header `Allow` names the methods"],
                example: Example { call: "PUT /api/tasks", message: "the route does not take PUT" },
            },
            Self::TaskNotFound => Guide {
                causes: &[
                    "the id is wrong, or of a task of another workspace",
                    "the task was finished so long ago that it has been forgotten",
                ],
                remedies: &["list the tasks of the workspace with `GET /api/tasks`"],
                example: Example {
                    call: "GET /api/tasks/0198c0de-7a11-7000-8000-000000000001",
                    message: "no such task: 0198c0de-7a11-7000-8000-000000000001",
                },
            },
            Self::TaskFinished => Guide {
                causes: &["the task ended before the request came"],
                remedies: &["nothing has to be done; its detail says how it ended"],
                example: Example {
                    call: "POST /api/tasks/0198c0de-7a11-7000-8000-000000000001/cancel",
                    message: "task 0198c0de-7a11-7000-8000-000000000001 is already completed",
                },
            },
            Self::IdempotencyMismatch => Guide {
                causes: &["the same key was sent with another body or route"],
                remedies: &["take a new key for each new request"],
                example: Example {
                    call: "POST /api/tasks/submit",
                    message: "idempotency key \"build-7\" was used for another request",
                },
            },
            Self::Overloaded => Guide {
                causes: &[
                    "more work runs or waits than the limits allow",
                    "the rate limit of the workspace is used up",
                ],
                remedies: &["ask again after the seconds that `Retry-After` names"],
                example: Example {
                    call: "POST /api/tasks/submit",
                    message: "too many requests; try again in 3 s",
                },
            },
            Self::StoreUnavailable => Guide {
                causes: &["the database is down, restarts, or cannot be reached"],
                remedies: &["ask again; `/readyz` says when it is back"],
                example: Example {
                    call: "POST /api/tasks/submit",
                    message: "the database is not available",
                },
            },
            Self::QueueUnavailable => Guide {
                causes: &["the Redis server is down, restarts, or cannot be reached"],
                remedies: &[
                    "ask again with the same idempotency key; `/readyz` says when it is back",
                ],
                example: Example {
                    call: "POST /api/tasks/submit",
                    message: "Redis enqueue failed: connection refused",
                },
            },
            Self::WorkerUnreachable => Guide {
                causes: &["no worker of the volume runs, or the network to it is down"],
                remedies: &[
                    "start a worker with that volume, and ask again; its `/health` says that it is there",
                ],
                example: Example {
                    call: "GET /api/workspaces/{workspace_id}/files",
                    message: "workspace 0198c0de-7a11-7000-8000-000000000001 lies on another volume than this worker's",
                },
            },
            Self::ServerUnreachable => Guide {
                causes: &[
                    "no carrel serve or carrel run --port runs there",
                    "the address or the port is another one",
                    "a firewall or a proxy is in between",
                ],
                remedies: &[
                    "start `carrel serve` or `carrel run --port 8080`, or name the right one with --server or CARREL_SERVER",
                    "ask `/healthz` there with curl",
                ],
                example: Example {
                    call: "$ carrel task ls",
                    message: "http://127.0.0.1:8080 does not answer: no connection: client error (Connect): tcp connect error: Connection refused (os error 111)",
                },
            },
            Self::UpstreamFailed => Guide {
                causes: &[
                    "the other server has a failure of its own",
                    "the address leads to a server of another kind, or through a proxy that answers itself",
                ],
                remedies: &[
                    "check that the address is right, and try again later",
                    "look into the log of the server that was asked",
                ],
                example: Example {
                    call: "GET /api/workspaces/{workspace_id}/github/repos",
                    message: "GitHub API error: GitHub answered 502: Bad Gateway",
                },
            },
            Self::UpstreamLimited => Guide {
                causes: &["all workspaces that share a token have used up its rate limit together"],
                remedies: &["ask again after the seconds that `Retry-After` names"],
                example: Example {
                    call: "GET /api/workspaces/{workspace_id}/github/repos",
                    message: "GitHub API error: the rate limit is used up",
                },
            },
            Self::NotConfigured => Guide {
                causes: &[
                    "no source of tokens for GitHub is set: no app, no Composio, no token that workspaces may use",
                ],
                remedies: &[
                    "send a token in X-GitHub-Token, or keep one as a credential of the workspace",
                    "set GITHUB_APP_ID with its key and CARREL_GITHUB_ALLOW, or COMPOSIO_API_KEY",
                ],
                example: Example {
                    call: "GET /api/workspaces/{workspace_id}/github/repos",
                    message: "this server knows no token for GitHub; send one in X-GitHub-Token, or name a stored credential",
                },
            },
            Self::NotConnected => Guide {
                causes: &[
                    "the app is not installed for the owner, or CARREL_GITHUB_ALLOW does not name the workspace",
                    "the workspace is not connected at Composio",
                ],
                remedies: &[
                    "send a token in X-GitHub-Token, or keep one as a credential of the workspace",
                    "have the operator name the workspace and the owner in CARREL_GITHUB_ALLOW",
                ],
                example: Example {
                    call: "GET /api/workspaces/{workspace_id}/github/repos",
                    message: "workspace 0198c0de-7a11-7000-8000-000000000001 is not connected to GitHub; send a token in X-GitHub-Token, name a stored credential",
                },
            },
            Self::IssueNotFound => Guide {
                causes: &[
                    "the identifier is misspelt",
                    "the issue is in the data directory of another --data",
                    "the conductor does not work on the issue, because it is closed or in no active state",
                ],
                remedies: &["list the issues with `carrel issue ls`"],
                example: Example {
                    call: "GET /api/v1/CAR-99",
                    message: "CAR-99 is not among the issues that are worked on; it may not be in an active state",
                },
            },
            Self::IssueConflict => Guide {
                causes: &[
                    "an agent works on the issue, and the request is for one that is idle",
                    "the issue is not blocked, or its agent has asked nothing",
                ],
                remedies: &["look where the issue stands with `GET /api/v1/{issue}`"],
                example: Example {
                    call: "POST /api/v1/CAR-1/unblock",
                    message: "CAR-1 is not blocked",
                },
            },
            Self::ConductorUnavailable => Guide {
                causes: &[
                    "the server is `carrel serve`, which works no issues off",
                    "the conductor is ending, or cannot write its journal",
                ],
                remedies: &[
                    "start one with `carrel run WORKFLOW.md --port 8080`",
                    "ask again in a moment",
                ],
                example: Example {
                    call: "GET /api/v1/state",
                    message: "the conductor cannot be asked: this server has none; start one with `carrel run --port`",
                },
            },
            Self::RunFailed => Guide {
                causes: &[
                    "the agent ended with an error, or could not be started",
                    "a hook failed before the agent began",
                    "the tracker did not answer",
                ],
                remedies: &["read the log lines above, and the transcript that they name"],
                example: Example {
                    call: "$ carrel run WORKFLOW.md --once",
                    message: "not everything went well: CAR-1: hook before_run failed with status 1",
                },
            },
            Self::VerifyFailed => Guide {
                causes: &["the findings on stdout say what is wrong"],
                remedies: &["follow the fix of each finding"],
                example: Example {
                    call: "$ carrel workspace verify",
                    message: "findings that stop work or endanger it: 2",
                },
            },
            Self::CleanUpIncomplete => Guide {
                causes: &["something could not be removed, or belongs to another user"],
                remedies: &["mend what the list of failures names, and clean up again"],
                example: Example {
                    call: "$ carrel workspace gc",
                    message: "steps of the clean-up that failed: 1",
                },
            },
            Self::Usage => Guide {
                causes: &["an argument is missing, unknown or of the wrong form"],
                remedies: &["read `carrel --help`, or `--help` behind the command"],
                example: Example {
                    call: "$ carrel task ls",
                    message: "there is no token; set CARREL_TOKEN, or name a file with --token-file; `carrel token new` makes one",
                },
            },
            Self::Internal => Guide {
                causes: &["a defect in Carrel, or a machine without memory"],
                remedies: &["run it again with `-vv`, and report what it logs"],
                example: Example {
                    call: "GET /api/tasks",
                    message: "the server could not do this",
                },
            },
        }
    }
}
