//! What an operator does about an error: its usual causes, and the ways out.

use crate::code::Code;

/// The causes and remedies of a code, most likely first.
struct Guide {
    causes: &'static [&'static str],
    remedies: &'static [&'static str],
}

impl Code {
    /// Returns the usual causes, most likely first.
    pub fn causes(self) -> &'static [&'static str] {
        self.guide().causes
    }

    /// Returns what to do, most useful first. Messages end with the first one.
    pub fn remedies(self) -> &'static [&'static str] {
        self.guide().remedies
    }

    #[expect(clippy::too_many_lines, reason = "it is a table, one entry for each code")]
    fn guide(self) -> Guide {
        match self {
            Self::PermissionDenied => Guide {
                causes: &[
                    "the root or a file in it belongs to another user",
                    "the file system is mounted read-only",
                ],
                remedies: &[
                    "check owner and mode of the root with `carrel workspace verify`",
                    "run Carrel as the user that owns the root",
                ],
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
            },
            Self::WorkspaceSymlinkEscape => Guide {
                causes: &["a symbolic link was put where the workspace directory belongs"],
                remedies: &["remove the link; it is never followed and never deleted for you"],
            },
            Self::WorkspaceEqualsRoot => Guide {
                causes: &["the root itself was given where a workspace is meant"],
                remedies: &["name a workspace inside the root"],
            },
            Self::InvalidWorkspaceCwd => Guide {
                causes: &[
                    "the directory was replaced, removed or linked elsewhere since it was opened",
                    "the command was to start outside its workspace",
                ],
                remedies: &["create the workspace again, and start commands only inside it"],
            },
            Self::WorkspaceOccupied => Guide {
                causes: &["a file or another kind of entry has the workspace's name"],
                remedies: &["move it out of the root; Carrel never deletes what it did not make"],
            },
            Self::WorkspaceForeignOwner => Guide {
                causes: &["another user made the directory"],
                remedies: &["move it out of the root, or run Carrel as its owner"],
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
            },
            Self::WorkspaceBusy => Guide {
                causes: &["another process creates, removes or uses the workspace"],
                remedies: &["wait for it, or end the process that the message names"],
            },
            Self::WorkspaceNotFound => Guide {
                causes: &["it was never made in this root, or was removed"],
                remedies: &["list what there is with `carrel workspace ls`"],
            },
            Self::WorkspaceDirty => Guide {
                causes: &["files were changed, or commits not pushed"],
                remedies: &["commit and push the work, or leave out --keep-if-dirty"],
            },
            Self::RootRefused => Guide {
                causes: &[
                    "`workspace.root` names a directory of the system, a home or a repository",
                ],
                remedies: &[
                    "~/carrel is a safe choice",
                    "name a directory that Carrel can make and own, such as /srv/carrel",
                ],
            },
            Self::RootUnsafe => Guide {
                causes: &["other users may write to the root, or own it"],
                remedies: &["run `chmod 700` on it, or name a directory of your own"],
            },
            Self::SchemaTooNew => Guide {
                causes: &["a newer version of Carrel has used this root"],
                remedies: &["use that version, or another root"],
            },
            Self::RecordUnreadable => Guide {
                causes: &["the record was edited by hand, or the disk is damaged"],
                remedies: &[
                    "delete the record of a workspace that the message names, so that the next create adopts the directory; put back a copy of a database, or move it away to begin with nothing",
                ],
            },
            Self::QuotaExceeded => Guide {
                causes: &["the workspace grew beyond workspace.quota_gb or workspace.quota_files"],
                remedies: &["remove what is not needed, or raise the quota"],
            },
            Self::KernelUnsupported => Guide {
                causes: &["Linux older than 5.11", "a container profile that forbids `openat2`"],
                remedies: &[
                    "use Linux 5.11 or later, and a container profile that allows `openat2`",
                ],
            },
            Self::Contended => Guide {
                causes: &["other processes rename directories all the time"],
                remedies: &["try again"],
            },
            Self::SandboxUnavailable => Guide {
                causes: &[
                    "the kernel, a container or a security module refuses what the tier needs",
                    "the tier that was asked for cannot do what the request asks for",
                ],
                remedies: &[
                    "run `carrel doctor` to see what is missing and how to get it",
                    "let `tier` be `auto`, so that the best tier that is there is used",
                    "say `--sandbox off` if the command is trusted and needs no boundary",
                ],
            },
            Self::CommandRefused => Guide {
                causes: &["the preset does not allow a command that the line contains"],
                remedies: &[
                    "follow what the message says would pass",
                    "run `carrel policy check` to try a command line without running it",
                ],
            },
            Self::NetworkRefused => Guide {
                causes: &["the request asks for more network than `network_limit` allows"],
                remedies: &["ask for less, or raise `network_limit` in policy.toml"],
            },
            Self::JobNotFound => Guide {
                causes: &["the id is wrong, or the job ended long ago and was forgotten"],
                remedies: &["list the jobs that there are"],
            },
            Self::TooManyJobs => Guide {
                causes: &["background jobs were started and never ended"],
                remedies: &["end one that is not needed any more, or wait for one to end"],
            },
            Self::InvalidCursor => Guide {
                causes: &["the cursor does not come from a read of this log"],
                remedies: &["use the cursor of the last read, or begin at the start"],
            },
            Self::PolicyMissing => Guide {
                causes: &["the path is wrong, or the file cannot be read"],
                remedies: &["name the file with --policy or CARREL_POLICY, or remove the name"],
            },
            Self::PolicyUnsafe => Guide {
                causes: &[
                    "the file or its directory belongs to another user, or others may write to it",
                    "the file lies in the workspace that it applies to",
                ],
                remedies: &["change owner and mode as the message says, or move the file"],
            },
            Self::PolicyInvalid => Guide {
                causes: &["a key is unknown, or its value has a wrong type or range"],
                remedies: &["correct what the message names; docs/policy.md lists every key"],
            },
            Self::WorkflowMissing => Guide {
                causes: &["the path is wrong, or the file cannot be read"],
                remedies: &[
                    "name the file behind `carrel run` or `carrel check`, or with --config of other commands",
                ],
            },
            Self::SandboxViolation => Guide {
                causes: &[
                    "the path is absolute or climbs above the workspace",
                    "a symbolic link on the way leads outside, is absolute, or points at nothing",
                ],
                remedies: &["use a path relative to the workspace that stays inside it"],
            },
            Self::SensitivePath => Guide {
                causes: &[
                    "the name is one that holds credentials, such as `.ssh` or `.aws`",
                    "the name belongs to Carrel, such as `.carrel`",
                ],
                remedies: &["choose another name; this one is never listed, read or searched"],
            },
            Self::InvalidPath => Guide {
                causes: &["the path contains a NUL byte", "the path does not end in a name"],
                remedies: &["give a path without NUL bytes that ends in a name"],
            },
            Self::NotFound => Guide {
                causes: &["the path is misspelt", "what was there has been moved or removed"],
                remedies: &["check the spelling of the path"],
            },
            Self::AlreadyExists => Guide {
                causes: &["an earlier step made it", "another process made it in the meantime"],
                remedies: &["choose another name, or remove what is there"],
            },
            Self::NotADirectory => Guide {
                causes: &["a file stands where a directory is expected, or on the way to it"],
                remedies: &["name a directory, or move the file away"],
            },
            Self::IsADirectory => Guide {
                causes: &["the path leads to a directory"],
                remedies: &["name a file inside the directory"],
            },
            Self::NotARegularFile => Guide {
                causes: &["the path leads to a FIFO, a socket or a device"],
                remedies: &["name a regular file; nothing else is read or written"],
            },
            Self::DirectoryNotEmpty => Guide {
                causes: &["the directory has entries, perhaps hidden ones"],
                remedies: &["empty the directory first, or remove it as a whole tree"],
            },
            Self::NameTooLong => Guide {
                causes: &[
                    "a single name has more than 255 bytes",
                    "the whole path has 4096 or more",
                ],
                remedies: &["use a shorter name"],
            },
            Self::LinkLoop => Guide {
                causes: &[
                    "symbolic links point at each other",
                    "a path runs through over 40 links",
                ],
                remedies: &["remove one of the links"],
            },
            Self::TooLarge => Guide {
                causes: &["the file is larger than one read returns"],
                remedies: &["read it in ranges"],
            },
            Self::CrossesMount => Guide {
                causes: &["something is mounted inside the root or a workspace"],
                remedies: &["unmount it, or choose a root that has no mount points inside"],
            },
            Self::Io => Guide {
                causes: &[
                    "the disk or the network file system fails",
                    "the process has too many files open",
                ],
                remedies: &["see to what the system reports, and try again"],
            },
            Self::InvalidIdentifier => Guide {
                causes: &[
                    "the identifier is empty, `.` or `..`",
                    "the identifier has more than 4096 bytes",
                    "every key that the identifier could have is taken",
                ],
                remedies: &["try an identifier with `carrel workspace key`"],
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
            },
            Self::WorkflowParse => Guide {
                causes: &[
                    "wrong indentation, or a colon or quote inside a value that is not quoted",
                    "a key that is given twice",
                    "a tab where YAML wants spaces",
                ],
                remedies: &["correct the YAML between the two `---` lines"],
            },
            Self::WorkflowNotAMap => Guide {
                causes: &["the text between the two `---` lines is a list or a single value"],
                remedies: &["write settings as `name: value` between the two `---` lines"],
            },
            Self::WorkflowInvalid => Guide {
                causes: &[
                    "a value of the wrong type or out of range",
                    "a variable that the file names and nobody has set",
                    "a setting that is not supported, such as `worker`",
                ],
                remedies: &["see docs/workflow.md for every setting and what it takes"],
            },
            Self::TrackerMissing => Guide {
                causes: &["`tracker.kind` is not set"],
                remedies: &["set tracker.kind; `local` needs no other service"],
            },
            Self::TrackerUnsupported => Guide {
                causes: &["`tracker.kind` is misspelt"],
                remedies: &["see docs/workflow.md for the trackers there are"],
            },
            Self::TemplateParse => Guide {
                causes: &[
                    "a tag or an output that is not closed",
                    "a filter or a tag that does not exist",
                ],
                remedies: &["correct the template below the second `---` line"],
            },
            Self::InvalidArguments => Guide {
                causes: &["the call does not follow the schema of the tool"],
                remedies: &[
                    "see the schema in `tools/list`, `carrel tool NAME --help` or docs/tools.md",
                ],
            },
            Self::UnknownTool => Guide {
                causes: &[
                    "the name is misspelt",
                    "the server runs with --read-only or another --toolset",
                ],
                remedies: &["list the tools with `tools/list` or `carrel tool`"],
            },
            Self::UnknownWorkspace => Guide {
                causes: &["the name is misspelt; names are case-sensitive"],
                remedies: &["pass one of the names in the message"],
            },
            Self::WorkspaceNotChosen => Guide {
                causes: &["`workspace` was left out"],
                remedies: &["pass `workspace` with one of the names in the message"],
            },
            Self::WorkspacesInvalid => Guide {
                causes: &["two have one name or one directory, or one lies inside another"],
                remedies: &["correct --workspaces; each entry is `name=directory` or `directory`"],
            },
            Self::ReadOnly => Guide {
                causes: &["the operator marked it read-only"],
                remedies: &["work in another workspace, or ask the operator"],
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
            },
            Self::NotRead => Guide {
                causes: &["the file was not read, or only in part, or in another workspace"],
                remedies: &["read it first"],
            },
            Self::ChangedSinceRead => Guide {
                causes: &["a command, a formatter, an editor or another session wrote it"],
                remedies: &["read it again"],
            },
            Self::BinaryFile => Guide {
                causes: &["the file is a program, an archive or another binary format"],
                remedies: &["use a command that understands the format"],
            },
            Self::InvalidRange => Guide {
                causes: &["the file is shorter, or the range ends before it begins"],
                remedies: &["ask for lines that the file has; the message says how many"],
            },
            Self::EditFindNotFound => Guide {
                causes: &["the text was copied inexactly, or the file is another one"],
                remedies: &["read the place again and copy the text exactly"],
            },
            Self::EditMultiMatch => Guide {
                causes: &["the text is too short to be unique"],
                remedies: &["add lines around it, or set replace_all"],
            },
            Self::EditFindTooLarge => Guide {
                causes: &["a whole block was given where its first lines would do"],
                remedies: &["give a shorter text, or a range of lines"],
            },
            Self::EditReplaceTooLarge => Guide {
                causes: &["a whole file was given as one edit"],
                remedies: &["split the edit, or replace a range of lines"],
            },
            Self::EditBatchTooLarge => {
                Guide { causes: &["too many edits in one call"], remedies: &["make several calls"] }
            }
            Self::EditLineRangeTooLarge => Guide {
                causes: &["the range is wrong, or the file is to be emptied"],
                remedies: &["use Write with empty content, or Delete"],
            },
            Self::EditOverlap => {
                Guide { causes: &["the ranges overlap"], remedies: &["join the edits into one"] }
            }
            Self::EditDuplicatesContext => Guide {
                causes: &["the range ends too early"],
                remedies: &["extend the range, or leave those lines out of the text"],
            },
            Self::EditNoChange => {
                Guide { causes: &["both texts are the same"], remedies: &["leave the edit out"] }
            }
            Self::PatchInvalid => Guide {
                causes: &["it is no unified diff, or was cut"],
                remedies: &["give a unified diff with `---`, `+++` and `@@` lines"],
            },
            Self::PatchFailed => Guide {
                causes: &["the files differ from those that the patch was made for"],
                remedies: &["read the files again and make the patch anew"],
            },
            Self::InvalidPattern => Guide {
                causes: &["a bracket is open, or a character needs a backslash"],
                remedies: &["correct the pattern, or set fixed_strings"],
            },
            Self::ProjectNotDetected => Guide {
                causes: &["no marker such as Cargo.toml, package.json or pyproject.toml was found"],
                remedies: &["name another path, or say the commands in carrel.toml"],
            },
            Self::LanguageNotChosen => Guide {
                causes: &["`language` was left out, or names one that is not there"],
                remedies: &["pass `language` with one of the names in the message, or `all`"],
            },
            Self::ScriptNotFound => Guide {
                causes: &["the name is misspelt"],
                remedies: &["pass one of the names in the message"],
            },
            Self::GitRefused => Guide {
                causes: &["an option that reads or writes elsewhere, or runs programs"],
                remedies: &["use the options in the message"],
            },
            Self::SecretUnknown => Guide {
                causes: &["the operator has not configured it"],
                remedies: &["list the names with secrets_available"],
            },
            Self::MaskedWrite => Guide {
                causes: &["it was copied from an output in which a secret was masked"],
                remedies: &["leave the masked line as it is, or write the real text"],
            },
            Self::Timeout => Guide {
                causes: &["the work takes longer than the limit"],
                remedies: &["raise the timeout, or ask for less"],
            },
            Self::Cancelled => Guide {
                causes: &["the client cancelled the call, or the server stops"],
                remedies: &["call again"],
            },
            Self::InvalidRequest => Guide {
                causes: &["a field is missing, unknown, of the wrong type or out of its range"],
                remedies: &[
                    "the detail names the field; `/openapi.json` says what the route takes",
                ],
            },
            Self::Unauthenticated => Guide {
                causes: &[
                    "no bearer token was sent",
                    "the token is out of date, or was signed with another key",
                ],
                remedies: &[
                    "get a token with `carrel token new`, and send it as `Authorization: Bearer …`",
                ],
            },
            Self::Forbidden => Guide {
                causes: &[
                    "the token is for another workspace",
                    "the token lacks the scope that the detail names",
                ],
                remedies: &["use a token for this workspace that has the scope"],
            },
            Self::UnknownRoute => Guide {
                causes: &["the path is misspelt"],
                remedies: &["`/openapi.json` lists every route"],
            },
            Self::MethodNotAllowed => Guide {
                causes: &["the route was asked with a method that it does not have"],
                remedies: &["the header `Allow` names the methods"],
            },
            Self::TaskNotFound => Guide {
                causes: &[
                    "the id is wrong, or of a task of another workspace",
                    "the task was finished so long ago that it has been forgotten",
                ],
                remedies: &["list the tasks of the workspace with `GET /api/tasks`"],
            },
            Self::IssueNotFound => Guide {
                causes: &[
                    "the identifier is misspelt",
                    "the issue is in the data directory of another --data",
                    "nobody works on the issue, because it is closed or in no active state",
                ],
                remedies: &["list the issues with `carrel issue ls`"],
            },
            Self::IssueConflict => Guide {
                causes: &[
                    "an agent works on the issue, and the order is for one that nobody works on",
                    "the issue is not blocked, or its agent has asked nothing",
                ],
                remedies: &["look where the issue stands with `GET /api/v1/{issue}`"],
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
            },
            Self::RunFailed => Guide {
                causes: &[
                    "the agent ended with an error, or could not be started",
                    "a hook failed before the agent began",
                    "the tracker did not answer",
                ],
                remedies: &["read the log lines above, and the transcript that they name"],
            },
            Self::TaskFinished => Guide {
                causes: &["the task ended before the request came"],
                remedies: &["nothing has to be done; its detail says how it ended"],
            },
            Self::IdempotencyMismatch => Guide {
                causes: &["the same key was sent with another body or route"],
                remedies: &["take a new key for each new request"],
            },
            Self::Overloaded => Guide {
                causes: &[
                    "more work runs or waits than the limits allow",
                    "the rate limit of the workspace is used up",
                ],
                remedies: &["ask again after the seconds that `Retry-After` names"],
            },
            Self::StoreUnavailable => Guide {
                causes: &["the database is down, restarts, or cannot be reached"],
                remedies: &["ask again; `/readyz` says when it is back"],
            },
            Self::QueueUnavailable => Guide {
                causes: &["the Redis server is down, restarts, or cannot be reached"],
                remedies: &[
                    "ask again with the same idempotency key; `/readyz` says when it is back",
                ],
            },
            Self::KeysUnavailable => Guide {
                causes: &[
                    "the server at CARREL_JWKS_URL does not answer, or not with a set of keys",
                    "it has not answered for so long that the keys of then are not used any more",
                ],
                remedies: &[
                    "ask CARREL_JWKS_URL with curl from the machine of the server; `/readyz` says when the keys are there",
                ],
            },
            Self::UpstreamLimited => Guide {
                causes: &["all workspaces that share a token have used up its rate limit together"],
                remedies: &["ask again after the seconds that `Retry-After` names"],
            },
            Self::NotConfigured => Guide {
                causes: &[
                    "no source of tokens for GitHub is set: no app, no Composio, no token that workspaces may use",
                ],
                remedies: &[
                    "send a token in X-GitHub-Token, or keep one as a credential of the workspace",
                    "set GITHUB_APP_ID with its key and CARREL_GITHUB_ALLOW, or COMPOSIO_API_KEY",
                ],
            },
            Self::NotConnected => Guide {
                causes: &[
                    "the app is not installed for the owner, or CARREL_GITHUB_ALLOW does not name the workspace",
                    "nobody has connected the workspace at Composio",
                ],
                remedies: &[
                    "send a token in X-GitHub-Token, or keep one as a credential of the workspace",
                    "have the operator name the workspace and the owner in CARREL_GITHUB_ALLOW",
                ],
            },
            Self::ServerUnreachable => Guide {
                causes: &[
                    "no carrel serve or carrel run --port runs there",
                    "the address or the port is another one",
                    "a firewall or a proxy stands between",
                ],
                remedies: &[
                    "start `carrel serve` or `carrel run --port 8080`, or name the right one with --server or CARREL_SERVER",
                    "ask `/healthz` there with curl",
                ],
            },
            Self::UpstreamFailed => Guide {
                causes: &[
                    "the other server has trouble of its own",
                    "the address leads to a server of another kind, or through a proxy that answers itself",
                ],
                remedies: &[
                    "check that the address is right, and try again later",
                    "look into the log of the server that was asked",
                ],
            },
            Self::WorkerUnreachable => Guide {
                causes: &["no worker of the volume runs, or the network to it is down"],
                remedies: &[
                    "start a worker with that volume, and ask again; its `/health` says that it is there",
                ],
            },
            Self::VerifyFailed => Guide {
                causes: &["the findings on stdout say what is wrong"],
                remedies: &["follow the fix of each finding"],
            },
            Self::CleanUpIncomplete => Guide {
                causes: &["something could not be removed, or belongs to somebody else"],
                remedies: &["mend what the list of failures names, and clean up again"],
            },
            Self::Usage => Guide {
                causes: &["an argument is missing, unknown or of the wrong form"],
                remedies: &["read `carrel --help`, or `--help` behind the command"],
            },
            Self::Internal => Guide {
                causes: &["a defect in Carrel, or a machine without memory"],
                remedies: &["run it again with `-vv`, and report what it logs"],
            },
        }
    }
}
