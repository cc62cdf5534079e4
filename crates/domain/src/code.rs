//! Stable error codes, the same over REST, MCP and the command line.

use serde::Serialize;
use serde_json::Value;

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $kind:literal, $status:literal;)+) => {
        /// What went wrong, as a name that programs may rely on.
        ///
        /// Each code has a page of the same name below `docs/errors/`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[doc = $doc])+ $variant,)+ }

        impl Code {
            /// Every code there is.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the stable name, such as `E_SANDBOX_VIOLATION`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// Returns the code with this stable name.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|code| code.name() == name)
            }

            /// Returns the kind, such as `sandbox_violation`.
            pub const fn kind(self) -> &'static str {
                match self { $(Self::$variant => $kind),+ }
            }

            /// Returns the HTTP status that carries this code.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status),+ }
            }

            /// Returns what the code means, as its documentation page says it.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+)),+ }
            }
        }
    };
}

codes! {
    /// A path leaves its workspace: it is absolute, climbs above it with `..`, or a link leads outside or nowhere.
    SandboxViolation = "E_SANDBOX_VIOLATION", "sandbox_violation", 403;
    /// A path names something that browsing never shows, such as `.ssh`.
    SensitivePath = "E_SENSITIVE_PATH", "sensitive_path", 403;
    /// A path is not usable as one: it is empty or contains a NUL byte.
    InvalidPath = "E_INVALID_PATH", "invalid_path", 422;
    /// Nothing is at the path.
    NotFound = "E_NOT_FOUND", "not_found", 404;
    /// Something is at the path already.
    AlreadyExists = "E_ALREADY_EXISTS", "already_exists", 409;
    /// A directory was expected and something else is there.
    NotADirectory = "E_NOT_A_DIRECTORY", "not_a_directory", 422;
    /// A file was expected and a directory is there.
    IsADirectory = "E_IS_A_DIRECTORY", "is_a_directory", 422;
    /// A regular file was expected and a FIFO, socket or device is there.
    NotARegularFile = "E_NOT_A_REGULAR_FILE", "not_a_regular_file", 422;
    /// The directory still has entries.
    DirectoryNotEmpty = "E_DIRECTORY_NOT_EMPTY", "directory_not_empty", 409;
    /// A name or path is longer than the file system takes.
    NameTooLong = "E_NAME_TOO_LONG", "name_too_long", 422;
    /// Links lead in a circle.
    LinkLoop = "E_LINK_LOOP", "link_loop", 422;
    /// A file is larger than the limit for this operation.
    TooLarge = "E_TOO_LARGE", "too_large", 413;
    /// The path runs into another mounted file system.
    CrossesMount = "E_CROSSES_MOUNT", "crosses_mount", 409;
    /// The operating system denied access.
    PermissionDenied = "E_PERMISSION_DENIED", "permission_denied", 403;
    /// The file system has no room left.
    DiskFull = "E_DISK_FULL", "disk_full", 507;
    /// The workspace has used up its own limit of bytes or files.
    QuotaExceeded = "E_QUOTA_EXCEEDED", "quota_exceeded", 507;
    /// Other processes kept changing the tree; the operation was given up after several tries.
    Contended = "E_CONTENDED", "contended", 503;
    /// The kernel lacks something that Carrel needs and has no substitute for.
    KernelUnsupported = "E_KERNEL_UNSUPPORTED", "kernel_unsupported", 500;
    /// A file operation failed for a reason that has no code of its own.
    Io = "E_IO", "io", 500;

    /// The text cannot name a workspace.
    InvalidIdentifier = "E_INVALID_IDENTIFIER", "invalid_identifier", 422;
    /// The path is the root itself, not a workspace in it.
    WorkspaceEqualsRoot = "E_WORKSPACE_EQUALS_ROOT", "workspace_equals_root", 403;
    /// The path is not a direct child of the root.
    WorkspaceOutsideRoot = "E_WORKSPACE_OUTSIDE_ROOT", "workspace_outside_root", 403;
    /// A symbolic link stands between the root and the workspace.
    WorkspaceSymlinkEscape = "E_WORKSPACE_SYMLINK_ESCAPE", "workspace_symlink_escape", 403;
    /// A command may not start in this directory.
    InvalidWorkspaceCwd = "E_INVALID_WORKSPACE_CWD", "invalid_workspace_cwd", 403;
    /// Something that is not a directory stands where the workspace belongs.
    WorkspaceOccupied = "E_WORKSPACE_OCCUPIED", "workspace_occupied", 409;
    /// The directory belongs to another user.
    WorkspaceForeignOwner = "E_WORKSPACE_FOREIGN_OWNER", "workspace_foreign_owner", 403;
    /// The workspace is that of an issue of another tracker.
    WorkspaceForeignTracker = "E_WORKSPACE_FOREIGN_TRACKER", "workspace_foreign_tracker", 409;
    /// No workspace has this identifier.
    WorkspaceNotFound = "E_WORKSPACE_NOT_FOUND", "workspace_not_found", 404;
    /// Another process holds the workspace.
    WorkspaceBusy = "E_WORKSPACE_BUSY", "workspace_busy", 409;
    /// The workspace has work that is saved nowhere else.
    WorkspaceDirty = "E_WORKSPACE_DIRTY", "workspace_dirty", 409;
    /// The directory cannot be a root for workspaces.
    RootRefused = "E_ROOT_REFUSED", "root_refused", 422;
    /// Other users could change the root or what is in it.
    RootUnsafe = "E_ROOT_UNSAFE", "root_unsafe", 403;
    /// The root's records were written by a newer version of Carrel.
    SchemaTooNew = "E_SCHEMA_TOO_NEW", "schema_too_new", 409;
    /// A record of the server cannot be read.
    RecordUnreadable = "E_RECORD_UNREADABLE", "record_unreadable", 500;

    /// A hook ended with an error.
    HookFailed = "E_HOOK_FAILED", "workspace_hook_failed", 500;
    /// A hook ran into its deadline.
    HookTimeout = "E_HOOK_TIMEOUT", "workspace_hook_timeout", 504;
    /// The boundary that was asked for cannot be set up here, and nothing runs without it.
    SandboxUnavailable = "E_SANDBOX_UNAVAILABLE", "sandbox_unavailable", 503;
    /// A program could not be started.
    SpawnFailed = "E_SPAWN_FAILED", "spawn_failed", 500;
    /// The policy does not allow the command.
    CommandRefused = "E_COMMAND_REFUSED", "command_refused", 403;
    /// More network was asked for than the policy allows.
    NetworkRefused = "E_NETWORK_REFUSED", "network_refused", 403;
    /// No background job has this id.
    JobNotFound = "E_JOB_NOT_FOUND", "job_not_found", 404;
    /// So many background jobs run already that another one is refused.
    TooManyJobs = "E_TOO_MANY_JOBS", "too_many_jobs", 429;
    /// A place in a log was asked for that the log does not have.
    InvalidCursor = "E_INVALID_CURSOR", "invalid_cursor", 422;

    /// The operator's policy file is missing or cannot be read.
    PolicyMissing = "E_POLICY_MISSING", "policy_missing", 404;
    /// Others than the operator could change the policy file.
    PolicyUnsafe = "E_POLICY_UNSAFE", "policy_unsafe", 403;
    /// The operator's policy file says something wrong.
    PolicyInvalid = "E_POLICY_INVALID", "policy_invalid", 422;

    /// The workflow file is missing or cannot be read.
    WorkflowMissing = "E_WORKFLOW_MISSING", "missing_workflow_file", 404;
    /// The front matter of the workflow file is not valid YAML.
    WorkflowParse = "E_WORKFLOW_PARSE", "workflow_parse_error", 422;
    /// The front matter of the workflow file is not a map.
    WorkflowNotAMap = "E_WORKFLOW_NOT_A_MAP", "workflow_front_matter_not_a_map", 422;
    /// A setting of the workflow file has a wrong type or value.
    WorkflowInvalid = "E_WORKFLOW_INVALID", "invalid_workflow_config", 422;
    /// The workflow file names no tracker.
    TrackerMissing = "E_TRACKER_MISSING", "missing_tracker_kind", 422;
    /// The workflow file names a tracker that does not exist.
    TrackerUnsupported = "E_TRACKER_UNSUPPORTED", "unsupported_tracker_kind", 422;
    /// The prompt of the workflow file is not a valid template.
    TemplateParse = "E_TEMPLATE_PARSE", "template_parse_error", 422;

    /// An argument of a tool is missing, unknown or of the wrong type.
    InvalidArguments = "E_INVALID_ARGUMENTS", "invalid_arguments", 422;
    /// No tool has this name, or the mode of the server leaves it out.
    UnknownTool = "E_UNKNOWN_TOOL", "unknown_tool", 404;
    /// No workspace of this server has this name.
    UnknownWorkspace = "E_UNKNOWN_WORKSPACE", "unknown_workspace", 404;
    /// The server has several workspaces and the call names none.
    WorkspaceNotChosen = "E_WORKSPACE_NOT_CHOSEN", "workspace_not_chosen", 422;
    /// The workspaces that the server was started with cannot be used together.
    WorkspacesInvalid = "E_WORKSPACES_INVALID", "workspaces_invalid", 422;
    /// The workspace may only be read.
    ReadOnly = "E_READ_ONLY", "read_only", 403;
    /// A file was written that would run later, outside the sandbox, such as a git hook.
    RunsLater = "E_RUNS_LATER", "runs_later", 403;
    /// A file is to be changed that this session has not read.
    NotRead = "E_NOT_READ", "not_read", 409;
    /// A file is to be changed that somebody else has changed since this session read it.
    ChangedSinceRead = "E_CHANGED_SINCE_READ", "changed_since_read", 409;
    /// A file is to be handled as text and is none.
    BinaryFile = "E_BINARY_FILE", "binary_file", 422;
    /// A range of lines is asked for that the file does not have.
    InvalidRange = "E_INVALID_RANGE", "invalid_range", 422;
    /// The text that an edit replaces is not in the file.
    EditFindNotFound = "E_EDIT_FILE_FIND_NOT_FOUND", "edit_file_find_not_found", 409;
    /// The text that an edit replaces is in the file more than once.
    EditMultiMatch = "E_EDIT_FILE_MULTI_MATCH", "edit_file_multi_match", 409;
    /// The text that an edit looks for is longer than allowed.
    EditFindTooLarge = "E_EDIT_FILE_FIND_TOO_LARGE", "edit_file_find_too_large", 422;
    /// The text that an edit puts in is longer than allowed.
    EditReplaceTooLarge = "E_EDIT_FILE_REPLACE_TOO_LARGE", "edit_file_replace_too_large", 422;
    /// The edits of one call replace more than allowed.
    EditBatchTooLarge = "E_EDIT_FILE_BATCH_TOO_LARGE", "edit_file_batch_too_large", 422;
    /// A range covers the whole file and nothing is put in its place.
    EditLineRangeTooLarge = "E_EDIT_FILE_LINE_RANGE_TOO_LARGE", "edit_file_line_range_too_large", 422;
    /// Two edits of one call change the same place.
    EditOverlap = "E_EDIT_FILE_OVERLAP", "edit_file_overlap", 422;
    /// An edit would write lines that already follow it a second time.
    EditDuplicatesContext = "E_EDIT_FILE_DUPLICATES_CONTEXT", "edit_file_duplicates_context", 422;
    /// An edit would change nothing.
    EditNoChange = "E_EDIT_FILE_NO_CHANGE", "edit_file_no_change", 422;
    /// A patch cannot be understood.
    PatchInvalid = "E_PATCH_INVALID", "patch_invalid", 422;
    /// A patch does not fit the files; nothing was changed.
    PatchFailed = "E_PATCH_FAILED", "patch_failed", 409;
    /// A pattern is no valid regular expression or glob.
    InvalidPattern = "E_INVALID_PATTERN", "invalid_pattern", 422;
    /// No project that Carrel knows is there.
    ProjectNotDetected = "E_PROJECT_NOT_DETECTED", "project_not_detected", 422;
    /// The project has several languages and the call names none of them.
    LanguageNotChosen = "E_LANGUAGE_NOT_CHOSEN", "language_not_chosen", 422;
    /// The project has no script of this name.
    ScriptNotFound = "E_SCRIPT_NOT_FOUND", "script_not_found", 404;
    /// A word for git is not among those that the operation takes.
    GitRefused = "E_GIT_REFUSED", "git_refused", 403;
    /// No secret has this name.
    SecretUnknown = "E_SECRET_UNKNOWN", "secret_unknown", 404;
    /// Text is to be written that holds the mask of a secret instead of the secret.
    MaskedWrite = "E_MASKED_WRITE", "masked_write", 422;
    /// The time of a call was over before its work was.
    Timeout = "E_TIMEOUT", "timeout", 504;
    /// The caller gave up before the work was over.
    Cancelled = "E_CANCELLED", "cancelled", 499;

    /// A request is not what the route takes.
    InvalidRequest = "E_INVALID_REQUEST", "invalid_request", 422;
    /// The request does not say who asks, or says it in a way that is not believed.
    Unauthenticated = "E_UNAUTHENTICATED", "unauthenticated", 401;
    /// The keys that tokens are verified with could not be fetched, so nobody with such a token is let in.
    KeysUnavailable = "E_KEYS_UNAVAILABLE", "keys_unavailable", 503;
    /// Whoever asks may not do this.
    Forbidden = "E_FORBIDDEN", "forbidden", 403;
    /// There is no such route.
    UnknownRoute = "E_UNKNOWN_ROUTE", "unknown_route", 404;
    /// The route is there, and takes other methods.
    MethodNotAllowed = "E_METHOD_NOT_ALLOWED", "method_not_allowed", 405;
    /// No task has this id, or it belongs to another workspace.
    TaskNotFound = "E_TASK_NOT_FOUND", "task_not_found", 404;
    /// The task is over and cannot be ended again.
    TaskFinished = "E_TASK_FINISHED", "task_finished", 409;
    /// The idempotency key was used for another request.
    IdempotencyMismatch = "E_IDEMPOTENCY_MISMATCH", "idempotency_mismatch", 409;
    /// So much is asked for at once that this has to wait; `Retry-After` says how long.
    Overloaded = "E_OVERLOADED", "overloaded", 429;
    /// The database does not answer; nothing was done.
    StoreUnavailable = "E_STORE_UNAVAILABLE", "store_unavailable", 503;
    /// The queue does not answer, and the operator wants submissions to fail then.
    QueueUnavailable = "E_QUEUE_UNAVAILABLE", "queue_unavailable", 503;
    /// The worker that has the workspace does not answer.
    WorkerUnreachable = "E_WORKER_UNREACHABLE", "worker_unreachable", 503;
    /// The server that a command talks to does not answer.
    ServerUnreachable = "E_SERVER_UNREACHABLE", "server_unreachable", 503;
    /// A server that Carrel asked answered with an error of its own, or with something that cannot be used.
    UpstreamFailed = "E_UPSTREAM_FAILED", "upstream_failed", 502;
    /// A server that Carrel asked has had enough requests for now; `Retry-After` says how long.
    UpstreamLimited = "E_UPSTREAM_LIMITED", "upstream_limited", 429;
    /// The operator has not set up what this needs.
    NotConfigured = "E_NOT_CONFIGURED", "not_configured", 501;
    /// The workspace is not connected to GitHub.
    NotConnected = "E_GITHUB_NOT_CONNECTED", "github_not_connected", 404;

    /// No issue has this identifier, or nobody works on it.
    IssueNotFound = "E_ISSUE_NOT_FOUND", "issue_not_found", 404;
    /// The issue does not stand where the order needs it.
    IssueConflict = "E_ISSUE_CONFLICT", "issue_conflict", 409;
    /// No conductor answers here.
    ConductorUnavailable = "E_CONDUCTOR_UNAVAILABLE", "orchestrator_unavailable", 503;
    /// The work on an issue did not end well.
    RunFailed = "E_RUN_FAILED", "run_failed", 500;

    /// A check of a root found something that stops work or endangers it.
    VerifyFailed = "E_VERIFY_FAILED", "verify_failed", 409;
    /// A clean-up could not do everything.
    CleanUpIncomplete = "E_CLEAN_UP_INCOMPLETE", "clean_up_incomplete", 500;
    /// The command line was used wrongly.
    Usage = "E_USAGE", "usage", 400;
    /// A defect in Carrel.
    Internal = "E_INTERNAL", "internal", 500;
}

/// An error that has a stable code.
pub trait Coded: std::error::Error {
    /// Returns the code.
    fn code(&self) -> Code;

    /// Returns the facts a program needs to act on the error.
    fn detail(&self) -> Value {
        Value::Object(serde_json::Map::new())
    }
}

/// The inside of the one error envelope.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorBody {
    /// The stable name of the code.
    pub code: &'static str,
    /// The kind of error.
    pub kind: &'static str,
    /// One sentence for a person.
    pub message: String,
    /// Facts for a program.
    pub detail: Value,
}

/// The one error envelope of every surface: `{"error":{…}}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorEnvelope {
    /// What went wrong.
    pub error: ErrorBody,
}

/// Returns what an error says, followed by its causes.
pub fn message_of(error: &(impl std::error::Error + ?Sized)) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message.push_str(": ");
        message.push_str(&error.to_string());
        cause = error.source();
    }
    message
}

impl ErrorEnvelope {
    /// Wraps an error, with its causes appended to the message.
    pub fn of(error: &(impl Coded + ?Sized)) -> Self {
        Self::new(error.code(), message_of(error), error.detail())
    }

    /// Builds an envelope from its parts.
    pub fn new(code: Code, message: impl Into<String>, detail: Value) -> Self {
        Self {
            error: ErrorBody {
                code: code.name(),
                kind: code.kind(),
                message: message.into(),
                detail,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_and_kinds_are_unique() {
        let names: HashSet<_> = Code::ALL.iter().map(|code| code.name()).collect();
        let kinds: HashSet<_> = Code::ALL.iter().map(|code| code.kind()).collect();
        assert_eq!((names.len(), kinds.len()), (Code::ALL.len(), Code::ALL.len()));
    }

    #[test]
    fn the_envelope_appends_causes() {
        #[derive(Debug, thiserror::Error)]
        #[error("could not open x")]
        struct Outer(#[source] std::io::Error);
        impl Coded for Outer {
            fn code(&self) -> Code {
                Code::Io
            }
        }
        let envelope = ErrorEnvelope::of(&Outer(std::io::Error::other("disk on fire")));
        assert_eq!(
            serde_json::to_string(&envelope).unwrap(),
            r#"{"error":{"code":"E_IO","kind":"io","message":"could not open x: disk on fire","detail":{}}}"#
        );
    }
}
