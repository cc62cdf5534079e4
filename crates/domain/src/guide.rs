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
                    "read the hook's log, named in the error's detail",
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
                    "workspace.root was changed since the workspace was made",
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
                causes: &["workspace.root names a directory of the system, a home or a repository"],
                remedies: &["name an own directory, such as ~/carrel"],
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
                    "delete the record named in the message; the next create adopts the directory",
                ],
            },
            Self::QuotaExceeded => Guide {
                causes: &["the workspace grew beyond workspace.quota_gb or workspace.quota_files"],
                remedies: &["remove what is not needed, or raise the quota"],
            },
            Self::KernelUnsupported => Guide {
                causes: &["Linux older than 5.6", "a container profile that forbids openat2"],
                remedies: &["use Linux 5.6 or later, and a container profile that allows openat2"],
            },
            Self::Contended => Guide {
                causes: &["other processes rename directories all the time"],
                remedies: &["try again"],
            },
            Self::SandboxUnavailable => Guide {
                causes: &["the setting asks for a boundary that cannot be set up"],
                remedies: &["set hooks.sandbox to false if hooks are trusted"],
            },
            Self::WorkflowMissing => Guide {
                causes: &["the path is wrong, or the file cannot be read"],
                remedies: &["name the file with --config"],
            },
            Self::SandboxViolation => Guide {
                causes: &[
                    "the path is absolute or climbs above the workspace",
                    "a symbolic link on the way leads outside, is absolute, or points at nothing",
                ],
                remedies: &["use a path relative to the workspace that stays inside it"],
            },
            Self::SensitivePath
            | Self::InvalidPath
            | Self::NotFound
            | Self::AlreadyExists
            | Self::NotADirectory
            | Self::IsADirectory
            | Self::NotARegularFile
            | Self::DirectoryNotEmpty
            | Self::NameTooLong
            | Self::LinkLoop
            | Self::TooDeep
            | Self::TooLarge
            | Self::CrossesMount
            | Self::Io
            | Self::InvalidIdentifier
            | Self::SpawnFailed
            | Self::WorkflowParse
            | Self::WorkflowNotAMap
            | Self::WorkflowInvalid
            | Self::TrackerMissing
            | Self::TrackerUnsupported
            | Self::TemplateParse
            | Self::Usage
            | Self::Internal => Guide { causes: &[], remedies: &[] },
        }
    }
}
