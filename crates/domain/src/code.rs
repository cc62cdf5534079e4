//! Stable error codes, the same over REST, MCP and the command line.
//!
//! A code is a promise to programs: its name, kind and HTTP status never change, while messages may. Inner
//! crates know nothing of HTTP or MCP; they implement [`Coded`](crate::Coded) for their errors, and the
//! interfaces turn the code into a status, a tool error or an exit status.
//!
//! The documentation of each code has two paragraphs, its meaning and the reason for the rule. The page of
//! the code below `docs/errors/` is generated from both, together with the causes, remedies and example of
//! the guide. Codes are grouped by area, and a code is added at the end of its group.

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $kind:literal, $status:literal;)+) => {
        /// An error code, which programs may rely on. Each has a page of the same name below
        /// `docs/errors/`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[doc = $doc])+ $variant,)+ }

        impl Code {
            /// All codes, in the order of the documentation.
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

            const fn documentation(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc, "\n"),+)),+ }
            }
        }
    };
}

codes! {
    /// A path leaves its workspace: it is absolute, climbs above it with `..`, or a link leads outside or
    /// has no target.
    ///
    /// The kernel resolves every path beneath the workspace directory, so that a file of one workspace can
    /// never be reached from another, even through a link that is swapped while the path is resolved.
    SandboxViolation = "E_SANDBOX_VIOLATION", "sandbox_violation", 403;
    /// A component of the path is a sensitive name, such as `.ssh`.
    ///
    /// Interfaces that list and read files for a caller leave out names that usually hold credentials, so
    /// that they are not shown or indexed by accident.
    SensitivePath = "E_SENSITIVE_PATH", "sensitive_path", 403;
    /// The path cannot be used: it contains a NUL byte, or it does not end in a name.
    ///
    /// The kernel cuts a path at a NUL byte, so such a path would name another file; and creating or
    /// removing an entry needs a name.
    InvalidPath = "E_INVALID_PATH", "invalid_path", 422;
    /// The path does not exist.
    ///
    /// A missing file is reported as it is, instead of being treated as empty, so that a misspelt name does
    /// not pass unnoticed.
    NotFound = "E_NOT_FOUND", "not_found", 404;
    /// The path exists already.
    ///
    /// Operations that create a name never replace an existing file, unless the caller requests it.
    AlreadyExists = "E_ALREADY_EXISTS", "already_exists", 409;
    /// A directory was expected and a file of another type is there.
    ///
    /// A path through a file has no meaning, and treating the file as an empty directory would hide the
    /// mistake.
    NotADirectory = "E_NOT_A_DIRECTORY", "not_a_directory", 422;
    /// A file was expected and a directory is there.
    ///
    /// A directory has no contents that could be read, replaced or edited as text.
    IsADirectory = "E_IS_A_DIRECTORY", "is_a_directory", 422;
    /// A regular file was expected and a FIFO, socket or device is there.
    ///
    /// Reading a FIFO or device may block forever or return endless data. Files are opened without
    /// blocking, checked for their type and refused.
    NotARegularFile = "E_NOT_A_REGULAR_FILE", "not_a_regular_file", 422;
    /// The directory still has entries.
    ///
    /// A recursive deletion has to be requested explicitly, since it removes more than the call shows.
    DirectoryNotEmpty = "E_DIRECTORY_NOT_EMPTY", "directory_not_empty", 409;
    /// A name or path is longer than the file system accepts.
    ///
    /// Linux file systems store names of at most 255 bytes, and the kernel resolves paths of at most 4095
    /// bytes.
    NameTooLong = "E_NAME_TOO_LONG", "name_too_long", 422;
    /// Symbolic links lead in a circle.
    ///
    /// The kernel follows at most 40 links in one path, which also ends resolution of links that point at
    /// each other.
    LinkLoop = "E_LINK_LOOP", "link_loop", 422;
    /// A file or body is larger than the limit of the operation.
    ///
    /// The server keeps what it reads in memory, so every operation has a limit; larger files are read in
    /// parts.
    TooLarge = "E_TOO_LARGE", "too_large", 413;
    /// The path runs into another mounted file system.
    ///
    /// Walks, removals and trust checks stay on the file system of the workspace, because a mount may show
    /// files that belong to the host.
    CrossesMount = "E_CROSSES_MOUNT", "crosses_mount", 409;
    /// The operating system denied access.
    ///
    /// Carrel does not work around file permissions: it acts with the rights of the user that runs it.
    PermissionDenied = "E_PERMISSION_DENIED", "permission_denied", 403;
    /// The file system has no free blocks or inodes left, or less than the server keeps free.
    ///
    /// A server stops starting work before the disk is full, so that its own records and running tasks can
    /// still be written.
    DiskFull = "E_DISK_FULL", "disk_full", 507;
    /// The workspace has used up its quota of bytes or files.
    ///
    /// One workspace must not fill the disk that all workspaces share. Usage is counted before and while
    /// commands run; a command that exceeds the quota is ended.
    QuotaExceeded = "E_QUOTA_EXCEEDED", "quota_exceeded", 507;
    /// Other processes kept changing the tree, and the operation gave up after several attempts.
    ///
    /// The kernel gives up resolving a path while directories on it are renamed. The attempt is repeated a
    /// bounded number of times, because an attacker could rename forever.
    Contended = "E_CONTENDED", "contended", 503;
    /// The kernel lacks a feature that Carrel needs and has no substitute for.
    ///
    /// Paths are resolved by `openat2`, which cannot be imitated safely in user space; without it Carrel
    /// does not touch files.
    KernelUnsupported = "E_KERNEL_UNSUPPORTED", "kernel_unsupported", 500;
    /// A file operation failed for a reason that has no code of its own.
    ///
    /// The error of the operating system is passed on unchanged, because only it says what the disk or the
    /// network file system did.
    Io = "E_IO", "io", 500;

    /// The text cannot be the identifier of a workspace.
    ///
    /// An identifier becomes a directory name. Any text can, except the empty one, `.` and `..`, which name
    /// directories themselves, and texts above 4096 bytes.
    InvalidIdentifier = "E_INVALID_IDENTIFIER", "invalid_identifier", 422;
    /// The path is the root itself, not a workspace in it.
    ///
    /// The root holds every workspace and Carrel's records. Removing it, or running a command in it, would
    /// reach all of them.
    WorkspaceEqualsRoot = "E_WORKSPACE_EQUALS_ROOT", "workspace_equals_root", 403;
    /// The path is not a direct child of the root.
    ///
    /// Carrel creates, measures and removes only directories directly below its root, so that a wrong path
    /// can never remove anything else.
    WorkspaceOutsideRoot = "E_WORKSPACE_OUTSIDE_ROOT", "workspace_outside_root", 403;
    /// A symbolic link stands between the root and the workspace.
    ///
    /// A link could lead anywhere, and following it would create or remove files outside the root.
    WorkspaceSymlinkEscape = "E_WORKSPACE_SYMLINK_ESCAPE", "workspace_symlink_escape", 403;
    /// A command may not start in this directory.
    ///
    /// A command starts in the directory that was opened with the workspace. If another directory is at its
    /// path by now, the sandbox would be built around the wrong files.
    InvalidWorkspaceCwd = "E_INVALID_WORKSPACE_CWD", "invalid_workspace_cwd", 403;
    /// A file of another type stands where the workspace directory belongs.
    ///
    /// Carrel never deletes or replaces a file that it did not create, so it cannot make the directory.
    WorkspaceOccupied = "E_WORKSPACE_OCCUPIED", "workspace_occupied", 409;
    /// The directory belongs to another user.
    ///
    /// The owner of a directory can change it at any time, and so could change what commands of this
    /// workspace run.
    WorkspaceForeignOwner = "E_WORKSPACE_FOREIGN_OWNER", "workspace_foreign_owner", 403;
    /// The workspace belongs to an issue of another tracker.
    ///
    /// Two trackers may have an issue of the same name. Sharing one directory would mix the work of both.
    WorkspaceForeignTracker = "E_WORKSPACE_FOREIGN_TRACKER", "workspace_foreign_tracker", 409;
    /// No workspace has this identifier.
    ///
    /// A misspelt name must not create a workspace silently; only `create` does.
    WorkspaceNotFound = "E_WORKSPACE_NOT_FOUND", "workspace_not_found", 404;
    /// Another process holds the lock of the workspace, or of the data directory.
    ///
    /// Creating, removing and running hooks take an exclusive lock, because two of them at once would see a
    /// half-made directory.
    WorkspaceBusy = "E_WORKSPACE_BUSY", "workspace_busy", 409;
    /// The workspace has work that is saved nowhere else.
    ///
    /// With `--keep-if-dirty` a workspace with uncommitted changes or unpushed commits is kept, because
    /// removing it would lose them.
    WorkspaceDirty = "E_WORKSPACE_DIRTY", "workspace_dirty", 409;
    /// The directory cannot be a root for workspaces.
    ///
    /// Carrel creates and removes directories below its root, so a system directory, a home directory or a
    /// repository is refused before anything is created.
    RootRefused = "E_ROOT_REFUSED", "root_refused", 422;
    /// Other users could change the root or its entries.
    ///
    /// A user who can write to the root could replace a workspace or a record between two steps.
    RootUnsafe = "E_ROOT_UNSAFE", "root_unsafe", 403;
    /// The records or the database were written by a newer version of Carrel.
    ///
    /// An older version would not understand new fields and would drop them when it writes.
    SchemaTooNew = "E_SCHEMA_TOO_NEW", "schema_too_new", 409;
    /// A record of the server cannot be read.
    ///
    /// A damaged record is never guessed or overwritten: it says which directory belongs to which issue.
    RecordUnreadable = "E_RECORD_UNREADABLE", "record_unreadable", 500;

    /// A hook ended with an error.
    ///
    /// A workspace whose `after_create` failed is incomplete, so no agent starts in it; the operator's
    /// script decides what success means.
    HookFailed = "E_HOOK_FAILED", "workspace_hook_failed", 500;
    /// A hook exceeded its timeout and was killed.
    ///
    /// A hook that waits forever, for a password or a dead server, would block its workspace forever.
    HookTimeout = "E_HOOK_TIMEOUT", "workspace_hook_timeout", 504;
    /// The requested sandbox cannot be set up here, and nothing runs without it.
    ///
    /// Carrel fails closed: a command never runs with a weaker sandbox than was requested.
    SandboxUnavailable = "E_SANDBOX_UNAVAILABLE", "sandbox_unavailable", 503;
    /// A program, thread or listener could not be started.
    ///
    /// The system refused a process, a pipe or a port. This is a shortage or a conflict on the machine and
    /// not a rule of Carrel.
    SpawnFailed = "E_SPAWN_FAILED", "spawn_failed", 500;
    /// The preset does not allow the command line.
    ///
    /// A preset tells the caller before the start what the operator does not want to run. It is no security
    /// boundary; the sandbox is.
    CommandRefused = "E_COMMAND_REFUSED", "command_refused", 403;
    /// More network was requested than the policy allows.
    ///
    /// The operator sets `network_limit` in policy.toml as an upper bound for every request, so that an
    /// agent cannot give itself the network.
    NetworkRefused = "E_NETWORK_REFUSED", "network_refused", 403;
    /// No background job has this id in this session and workspace.
    ///
    /// A job belongs to the session that started it, so that one caller cannot read or kill the commands of
    /// another.
    JobNotFound = "E_JOB_NOT_FOUND", "job_not_found", 404;
    /// So many background jobs run that another one is refused.
    ///
    /// Each job holds processes, memory and a log. The limit keeps a caller that forgets its jobs from
    /// exhausting the server.
    TooManyJobs = "E_TOO_MANY_JOBS", "too_many_jobs", 429;
    /// The cursor lies beyond the end of the log.
    ///
    /// A cursor is a byte position of this log. One from another log would skip or repeat output without
    /// notice.
    InvalidCursor = "E_INVALID_CURSOR", "invalid_cursor", 422;

    /// The operator's policy file is missing or cannot be read.
    ///
    /// A policy that was named and is not there is an error: without it commands would run under the
    /// defaults, which may allow more.
    PolicyMissing = "E_POLICY_MISSING", "policy_missing", 404;
    /// Other users could change the policy file.
    ///
    /// The policy decides what commands may do. If a command or another user could edit it, it would decide
    /// nothing.
    PolicyUnsafe = "E_POLICY_UNSAFE", "policy_unsafe", 403;
    /// A setting of the operator's policy file is unknown or has a wrong value.
    ///
    /// A misspelt key is an error and not ignored, because a restriction that was meant would be missing.
    PolicyInvalid = "E_POLICY_INVALID", "policy_invalid", 422;

    /// The workflow file is missing or cannot be read.
    ///
    /// The conductor has no defaults for the tracker and the agent; everything that it does is in this
    /// file.
    WorkflowMissing = "E_WORKFLOW_MISSING", "missing_workflow_file", 404;
    /// The front matter of the workflow file is not valid YAML.
    ///
    /// Settings are read as a whole or not at all, so that a typing error cannot drop half of them.
    WorkflowParse = "E_WORKFLOW_PARSE", "workflow_parse_error", 422;
    /// The front matter of the workflow file is not a map.
    ///
    /// Settings are keys and values. A list or a text between the `---` lines is usually an indentation
    /// error.
    WorkflowNotAMap = "E_WORKFLOW_NOT_A_MAP", "workflow_front_matter_not_a_map", 422;
    /// A setting of the workflow file has a wrong type or value.
    ///
    /// Every setting is checked when the file is read, all errors are listed at once, and a running
    /// conductor keeps its last valid settings.
    WorkflowInvalid = "E_WORKFLOW_INVALID", "invalid_workflow_config", 422;
    /// The workflow file names no tracker.
    ///
    /// There is no default tracker: the issues that agents work on must be chosen by the operator.
    TrackerMissing = "E_TRACKER_MISSING", "missing_tracker_kind", 422;
    /// The workflow file names a tracker that does not exist.
    ///
    /// An unknown name is refused when the file is read, instead of at the first poll.
    TrackerUnsupported = "E_TRACKER_UNSUPPORTED", "unsupported_tracker_kind", 422;
    /// The prompt of the workflow file is not a valid template.
    ///
    /// The prompt is checked when the file is read, because an agent that gets a broken prompt wastes a
    /// whole run.
    TemplateParse = "E_TEMPLATE_PARSE", "template_parse_error", 422;

    /// An argument of a tool is missing, unknown or of the wrong type.
    ///
    /// Unknown arguments are refused and not ignored, because a misspelt option would silently do something
    /// else than was meant.
    InvalidArguments = "E_INVALID_ARGUMENTS", "invalid_arguments", 422;
    /// No tool has this name, or the mode of the server leaves it out.
    ///
    /// A server with `--read-only` or another `--toolset` offers fewer tools; calling one that was not
    /// offered is refused in every interface alike.
    UnknownTool = "E_UNKNOWN_TOOL", "unknown_tool", 404;
    /// No workspace of this server has this name.
    ///
    /// A server serves only the workspaces that its operator named when it was started.
    UnknownWorkspace = "E_UNKNOWN_WORKSPACE", "unknown_workspace", 404;
    /// The server has several workspaces and the call names none.
    ///
    /// Guessing one would read or change files of the wrong project.
    WorkspaceNotChosen = "E_WORKSPACE_NOT_CHOSEN", "workspace_not_chosen", 422;
    /// The workspaces that the server was started with cannot be used together.
    ///
    /// A file in two workspaces would have two quotas, two read trackers and two write locks, and each
    /// would miss the changes of the other.
    WorkspacesInvalid = "E_WORKSPACES_INVALID", "workspaces_invalid", 422;
    /// The workspace may only be read.
    ///
    /// The operator marked it `:ro` or started the server with `--read-only`; tools that change files are
    /// refused before they run, and commands cannot write either.
    ReadOnly = "E_READ_ONLY", "read_only", 403;
    /// A file would run later outside the sandbox, such as a git hook, so it was not written or was
    /// restored.
    ///
    /// Git hooks, editor settings and start-up files run with the rights of the person or agent who uses
    /// the workspace next. Writing one would be a way out of the sandbox.
    RunsLater = "E_RUNS_LATER", "runs_later", 403;
    /// A file is to be changed that this session has not read.
    ///
    /// An agent that has not seen a file would overwrite contents that it does not know about.
    NotRead = "E_NOT_READ", "not_read", 409;
    /// A file is to be changed that has changed since this session read it.
    ///
    /// A command, an editor or another session wrote it. The edit was made against contents that are no
    /// longer there.
    ChangedSinceRead = "E_CHANGED_SINCE_READ", "changed_since_read", 409;
    /// A text operation was requested on a file that is not text.
    ///
    /// Lines and replacements have no meaning in binary data, and rewriting it as text would damage it.
    BinaryFile = "E_BINARY_FILE", "binary_file", 422;
    /// A range of lines was requested that the file does not have.
    ///
    /// Clamping the range would silently read or replace other lines than were meant.
    InvalidRange = "E_INVALID_RANGE", "invalid_range", 422;
    /// The text that an edit replaces is not in the file.
    ///
    /// An edit applies exactly or not at all. A near match is reported in the message but never edited,
    /// because it may be another place.
    EditFindNotFound = "E_EDIT_FILE_FIND_NOT_FOUND", "edit_file_find_not_found", 409;
    /// The text that an edit replaces is in the file more than once.
    ///
    /// Choosing one of several places would be a guess.
    EditMultiMatch = "E_EDIT_FILE_MULTI_MATCH", "edit_file_multi_match", 409;
    /// The text that an edit searches for is longer than allowed.
    ///
    /// A long search text usually repeats a whole block. A few unique lines, or a range of lines, cost less
    /// and fail less often.
    EditFindTooLarge = "E_EDIT_FILE_FIND_TOO_LARGE", "edit_file_find_too_large", 422;
    /// The text that an edit inserts is longer than allowed.
    ///
    /// The limit bounds the memory of one call; larger changes are made in several edits.
    EditReplaceTooLarge = "E_EDIT_FILE_REPLACE_TOO_LARGE", "edit_file_replace_too_large", 422;
    /// The edits of one call replace more than allowed.
    ///
    /// All edits of a call are applied in memory and become visible at once, so their sum is bounded.
    EditBatchTooLarge = "E_EDIT_FILE_BATCH_TOO_LARGE", "edit_file_batch_too_large", 422;
    /// A range covers the whole file and the new text is empty.
    ///
    /// Such an edit empties the file, which is more often a wrong range than an intention.
    EditLineRangeTooLarge = "E_EDIT_FILE_LINE_RANGE_TOO_LARGE", "edit_file_line_range_too_large", 422;
    /// Two edits of one call change the same lines.
    ///
    /// The result would depend on the order of the edits.
    EditOverlap = "E_EDIT_FILE_OVERLAP", "edit_file_overlap", 422;
    /// An edit would write lines that already follow it a second time.
    ///
    /// This happens when a range ends too early and the new text repeats the lines after it; the file would
    /// have them twice.
    EditDuplicatesContext = "E_EDIT_FILE_DUPLICATES_CONTEXT", "edit_file_duplicates_context", 422;
    /// An edit would change nothing.
    ///
    /// An edit without effect is usually a mistake, and reporting success would let the caller believe that
    /// the file has changed.
    EditNoChange = "E_EDIT_FILE_NO_CHANGE", "edit_file_no_change", 422;
    /// The patch cannot be parsed.
    ///
    /// A patch is applied only as a whole, so one that is cut or malformed is refused before any file is
    /// touched.
    PatchInvalid = "E_PATCH_INVALID", "patch_invalid", 422;
    /// The patch does not match the files; nothing was changed.
    ///
    /// If one hunk of one file does not match, no file is changed: a half-applied patch is hard to undo.
    PatchFailed = "E_PATCH_FAILED", "patch_failed", 409;
    /// A pattern is not a valid regular expression or glob.
    ///
    /// A pattern that cannot be compiled is reported with its position, instead of matching nothing.
    InvalidPattern = "E_INVALID_PATTERN", "invalid_pattern", 422;
    /// No project of a supported kind is there.
    ///
    /// Test, lint and format commands are derived from marker files such as Cargo.toml. Without one, a
    /// guessed command would run something else.
    ProjectNotDetected = "E_PROJECT_NOT_DETECTED", "project_not_detected", 422;
    /// The project has several languages and the call names none of them.
    ///
    /// Running the tests of one language and reporting success would hide failures of the others.
    LanguageNotChosen = "E_LANGUAGE_NOT_CHOSEN", "language_not_chosen", 422;
    /// The project has no script of this name.
    ///
    /// Only scripts that the project itself defines are run by name; everything else is a command for
    /// `Bash`.
    ScriptNotFound = "E_SCRIPT_NOT_FOUND", "script_not_found", 404;
    /// A flag or operand of git is not accepted by the operation.
    ///
    /// Operations with the operator's credentials or the network accept listed flags only, because some
    /// options of git run programs, or read and write other files.
    GitRefused = "E_GIT_REFUSED", "git_refused", 403;
    /// No secret or credential has this name, or the server keeps none.
    ///
    /// A missing secret is an error, because a command that runs with an empty one fails later and less
    /// clearly.
    SecretUnknown = "E_SECRET_UNKNOWN", "secret_unknown", 404;
    /// The text to be written contains the mask of a secret instead of the secret.
    ///
    /// Secret values are masked in everything that an agent reads. Writing the mask back would replace the
    /// real value in the file.
    MaskedWrite = "E_MASKED_WRITE", "masked_write", 422;
    /// The time limit of a call was reached before its work was done.
    ///
    /// Every call has a deadline, so that a hanging command or a slow client cannot hold a worker forever.
    /// The process tree of a command is killed.
    Timeout = "E_TIMEOUT", "timeout", 504;
    /// The caller cancelled the call, or the server is stopping.
    ///
    /// Work that no caller waits for is ended, and its processes are killed.
    Cancelled = "E_CANCELLED", "cancelled", 499;

    /// A request does not have the form that the route requires.
    ///
    /// Unknown fields are refused like missing ones, because a misspelt field would silently have no
    /// effect.
    InvalidRequest = "E_INVALID_REQUEST", "invalid_request", 422;
    /// The request carries no valid token.
    ///
    /// Workspaces and tasks belong to callers, so every route that shows or changes one needs to know the
    /// caller.
    Unauthenticated = "E_UNAUTHENTICATED", "unauthenticated", 401;
    /// The keys that verify tokens could not be fetched, so no such token is accepted.
    ///
    /// A token whose signature cannot be verified is never trusted.
    KeysUnavailable = "E_KEYS_UNAVAILABLE", "keys_unavailable", 503;
    /// The caller may not do this.
    ///
    /// A token covers certain workspaces and scopes. Keeping `read`, `write`, `exec`, `net` and `admin`
    /// apart limits what a leaked token can do.
    Forbidden = "E_FORBIDDEN", "forbidden", 403;
    /// There is no such route.
    ///
    /// A path outside the API gets an error in the API's own format, so that a client can tell a wrong
    /// address from a missing object.
    UnknownRoute = "E_UNKNOWN_ROUTE", "unknown_route", 404;
    /// The route exists and accepts other methods.
    ///
    /// The header `Allow` lists the methods of the route, as HTTP requires.
    MethodNotAllowed = "E_METHOD_NOT_ALLOWED", "method_not_allowed", 405;
    /// No task has this id, or it belongs to another workspace.
    ///
    /// A task of another workspace is reported like one that does not exist, so that ids reveal nothing.
    TaskNotFound = "E_TASK_NOT_FOUND", "task_not_found", 404;
    /// The task has ended and cannot be cancelled.
    ///
    /// A terminal state never changes, so that its result can be relied on.
    TaskFinished = "E_TASK_FINISHED", "task_finished", 409;
    /// The idempotency key was used for another request.
    ///
    /// The same key gets the first reply again. With another body, that would be the reply to another
    /// request.
    IdempotencyMismatch = "E_IDEMPOTENCY_MISMATCH", "idempotency_mismatch", 409;
    /// The server has as much to do as its limits allow; `Retry-After` says how long to wait.
    ///
    /// Queues, streams and rates are bounded: a server that accepts everything becomes slow for all callers
    /// and runs out of memory.
    Overloaded = "E_OVERLOADED", "overloaded", 429;
    /// The database does not respond; nothing was done.
    ///
    /// A task is accepted only once it is stored. Without the database the server refuses work instead of
    /// losing it.
    StoreUnavailable = "E_STORE_UNAVAILABLE", "store_unavailable", 503;
    /// The queue does not respond, and the operator wants submissions to fail then.
    ///
    /// By default a task waits until a worker finds it in the database; with this setting the caller learns
    /// at once that workers were not notified.
    QueueUnavailable = "E_QUEUE_UNAVAILABLE", "queue_unavailable", 503;
    /// The worker that has the workspace does not respond.
    ///
    /// The files of a workspace are on one volume, which only its own workers can open.
    WorkerUnreachable = "E_WORKER_UNREACHABLE", "worker_unreachable", 503;
    /// The server that a command of the CLI talks to does not respond.
    ///
    /// `carrel task` and `carrel conductor` are clients; without their server they can do nothing.
    ServerUnreachable = "E_SERVER_UNREACHABLE", "server_unreachable", 503;
    /// Another server replied with an error, or with a response that cannot be used.
    ///
    /// The error of the other server is passed on with its own code, so that it is not mistaken for one of
    /// Carrel.
    UpstreamFailed = "E_UPSTREAM_FAILED", "upstream_failed", 502;
    /// Another server has reached its rate limit for this token; `Retry-After` says how long to wait.
    ///
    /// Retrying before the limit is reset fails again and delays every workspace that shares the token.
    UpstreamLimited = "E_UPSTREAM_LIMITED", "upstream_limited", 429;
    /// The operator has not configured what this needs.
    ///
    /// Access to GitHub needs a source of tokens, which only the operator can choose.
    NotConfigured = "E_NOT_CONFIGURED", "not_configured", 501;
    /// The workspace is not connected to GitHub.
    ///
    /// An app's token is given only to workspaces that the operator has listed, since it reaches the
    /// repositories of a whole owner.
    NotConnected = "E_GITHUB_NOT_CONNECTED", "github_not_connected", 404;

    /// No issue has this identifier, or the conductor does not work on it.
    ///
    /// The conductor knows only issues in an active state of its tracker; others cannot be steered.
    IssueNotFound = "E_ISSUE_NOT_FOUND", "issue_not_found", 404;
    /// The state of the issue does not permit the request.
    ///
    /// Unblocking an issue that runs, or answering a question that was not asked, would be lost without
    /// notice.
    IssueConflict = "E_ISSUE_CONFLICT", "issue_conflict", 409;
    /// No conductor runs here, or it does not respond.
    ///
    /// Issues are steered by `carrel run`; a server without a conductor has none.
    ConductorUnavailable = "E_CONDUCTOR_UNAVAILABLE", "orchestrator_unavailable", 503;
    /// The work on an issue did not end well.
    ///
    /// With `--once`, `carrel run` ends with 0 only if every agent that it started succeeded, so that
    /// scripts can rely on it.
    RunFailed = "E_RUN_FAILED", "run_failed", 500;

    /// A check of a root found something that stops work or endangers it.
    ///
    /// The findings themselves are on stdout; the code makes scripts stop.
    VerifyFailed = "E_VERIFY_FAILED", "verify_failed", 409;
    /// A clean-up could not remove everything.
    ///
    /// Removal continues after an error and lists what is left, because one stuck file must not keep the
    /// rest on disk.
    CleanUpIncomplete = "E_CLEAN_UP_INCOMPLETE", "clean_up_incomplete", 500;
    /// The command line was used wrongly.
    ///
    /// Nothing was done. The exit status is 2, so that scripts can tell a wrong call from a failed one.
    Usage = "E_USAGE", "usage", 400;
    /// A defect in Carrel.
    ///
    /// An assumption of the program did not hold. The log has the details; the client gets none that could
    /// reveal data of others.
    Internal = "E_INTERNAL", "internal", 500;
}

impl Code {
    /// Returns the meaning of the code, as its documentation page says it.
    pub fn meaning(self) -> String {
        self.paragraph(0)
    }

    /// Returns the reason why the rule behind the code exists.
    pub fn reason(self) -> String {
        self.paragraph(1)
    }

    fn paragraph(self, index: usize) -> String {
        let paragraph = self.documentation().split("\n\n").nth(index).unwrap_or_default();
        paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" ")
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
    fn every_code_has_a_meaning_and_a_reason() {
        for code in Code::ALL {
            let name = code.name();
            assert!(code.meaning().ends_with('.') && code.reason().ends_with('.'), "{name}");
            assert_eq!(code.paragraph(2), "", "{name}");
        }
    }
}
