//! Stable error codes, the same over REST, MCP and the command line.
//!
//! A code is a promise to programs: its name, kind and HTTP status never change, while messages may. Inner
//! crates know nothing of HTTP or MCP; they implement [`Coded`](crate::Coded) for their errors, and the
//! interfaces turn the code into a status, a tool error or an exit status.
//!
//! Each code has a page below `docs/errors/`, with the reason for the rule, causes, remedies and an example. A
//! test holds the pages against this table. Codes are grouped by area, and a code is added at the end of its
//! group. Its last column is the first remedy, a phrase that messages of the command line end with.

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, $kind:literal, $status:literal, $remedy:literal;)+) => {
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

            /// Returns whether the code is a refusal at a boundary of the operator: a path that leaves its workspace
            /// or would run later, a command, a git operation, a network or a write that the rules do not allow.
            /// Each such refusal is an event of the audit log.
            pub const fn is_violation(self) -> bool {
                matches!(
                    self,
                    Self::SandboxViolation
                        | Self::SensitivePath
                        | Self::WorkspaceEqualsRoot
                        | Self::WorkspaceOutsideRoot
                        | Self::WorkspaceSymlinkEscape
                        | Self::InvalidWorkspaceCwd
                        | Self::CommandRefused
                        | Self::NetworkRefused
                        | Self::ReadOnly
                        | Self::RunsLater
                        | Self::GitRefused
                )
            }

            /// Returns the most useful remedy: a phrase that starts in lower case and has no full stop.
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy),+ }
            }

            /// Returns the meaning of the code, as its documentation page says it.
            pub fn meaning(self) -> String {
                let lines: &[&str] = match self { $(Self::$variant => &[$($doc),+]),+ };
                lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
            }
        }
    };
}

codes! {
    /// A path leaves its workspace: it is absolute, climbs above it with `..`, or a link leads outside or
    /// has no target.
    SandboxViolation = "E_SANDBOX_VIOLATION", "sandbox_violation", 403,
        "use a path relative to the workspace that stays inside it";
    /// A component of the path is a sensitive name, such as `.ssh`.
    SensitivePath = "E_SENSITIVE_PATH", "sensitive_path", 403,
        "choose another name; this one is never listed, read or searched";
    /// The path cannot be used: it contains a NUL byte, or it does not end in a name.
    InvalidPath = "E_INVALID_PATH", "invalid_path", 422, "give a path without NUL bytes that ends in a name";
    /// The path does not exist.
    NotFound = "E_NOT_FOUND", "not_found", 404, "check the spelling of the path";
    /// The path exists already.
    AlreadyExists = "E_ALREADY_EXISTS", "already_exists", 409, "choose another name, or remove what is there";
    /// A directory was expected and a file of another type is there.
    NotADirectory = "E_NOT_A_DIRECTORY", "not_a_directory", 422, "name a directory, or move the file away";
    /// A file was expected and a directory is there.
    IsADirectory = "E_IS_A_DIRECTORY", "is_a_directory", 422, "name a file inside the directory";
    /// A regular file was expected and a FIFO, socket or device is there.
    NotARegularFile = "E_NOT_A_REGULAR_FILE", "not_a_regular_file", 422,
        "name a regular file; nothing else is read or written";
    /// The directory still has entries.
    DirectoryNotEmpty = "E_DIRECTORY_NOT_EMPTY", "directory_not_empty", 409,
        "empty the directory first, or remove it as a whole tree";
    /// A name or path is longer than the file system accepts.
    NameTooLong = "E_NAME_TOO_LONG", "name_too_long", 422, "use a shorter name";
    /// Symbolic links lead in a circle.
    LinkLoop = "E_LINK_LOOP", "link_loop", 422, "remove one of the links";
    /// A file or body is larger than the limit of the operation.
    TooLarge = "E_TOO_LARGE", "too_large", 413, "read it in ranges";
    /// The path runs into another mounted file system.
    CrossesMount = "E_CROSSES_MOUNT", "crosses_mount", 409,
        "unmount it, or choose a root that has no mount points inside";
    /// The operating system denied access.
    PermissionDenied = "E_PERMISSION_DENIED", "permission_denied", 403,
        "check owner and mode of the root with `carrel workspace verify`";
    /// The file system has no free blocks or inodes left, or less than the server keeps free.
    DiskFull = "E_DISK_FULL", "disk_full", 507,
        "look with `df -h` and `df -i`, and free space with `carrel workspace gc`";
    /// The workspace has used up its quota of bytes or files.
    QuotaExceeded = "E_QUOTA_EXCEEDED", "quota_exceeded", 507,
        "remove what is not needed, or raise the quota";
    /// Other processes kept changing the tree, and the operation gave up after several attempts.
    Contended = "E_CONTENDED", "contended", 503, "try again";
    /// The kernel lacks a feature that Carrel needs and has no substitute for.
    KernelUnsupported = "E_KERNEL_UNSUPPORTED", "kernel_unsupported", 500,
        "use Linux 5.11 or later, and a container profile that allows `openat2`";
    /// A file operation failed for a reason that has no code of its own.
    Io = "E_IO", "io", 500, "see to what the system reports, and try again";

    /// The text cannot be the identifier of a workspace.
    InvalidIdentifier = "E_INVALID_IDENTIFIER", "invalid_identifier", 422,
        "try an identifier with `carrel workspace key`";
    /// The path is the root itself, not a workspace in it.
    WorkspaceEqualsRoot = "E_WORKSPACE_EQUALS_ROOT", "workspace_equals_root", 403,
        "name a workspace inside the root";
    /// The path is not a direct child of the root.
    WorkspaceOutsideRoot = "E_WORKSPACE_OUTSIDE_ROOT", "workspace_outside_root", 403,
        "name a direct child of the root, or correct workspace.root";
    /// A symbolic link stands between the root and the workspace.
    WorkspaceSymlinkEscape = "E_WORKSPACE_SYMLINK_ESCAPE", "workspace_symlink_escape", 403,
        "remove the link; it is never followed and never deleted for you";
    /// A command may not start in this directory.
    InvalidWorkspaceCwd = "E_INVALID_WORKSPACE_CWD", "invalid_workspace_cwd", 403,
        "create the workspace again, and start commands only inside it";
    /// A file of another type stands where the workspace directory belongs.
    WorkspaceOccupied = "E_WORKSPACE_OCCUPIED", "workspace_occupied", 409,
        "move it out of the root; Carrel never deletes what it did not make";
    /// The directory belongs to another user.
    WorkspaceForeignOwner = "E_WORKSPACE_FOREIGN_OWNER", "workspace_foreign_owner", 403,
        "move it out of the root, or run Carrel as its owner";
    /// The workspace belongs to an issue of another tracker.
    WorkspaceForeignTracker = "E_WORKSPACE_FOREIGN_TRACKER", "workspace_foreign_tracker", 409,
        "give each a `workspace.root` of its own";
    /// No workspace has this identifier.
    WorkspaceNotFound = "E_WORKSPACE_NOT_FOUND", "workspace_not_found", 404,
        "list what there is with `carrel workspace ls`";
    /// No kept work has this name, or several have it.
    KeptWorkNotFound = "E_KEPT_WORK_NOT_FOUND", "kept_work_not_found", 404,
        "list what there is with `carrel workspace ls --kept`";
    /// Another process holds the lock of the workspace, or of the data directory.
    WorkspaceBusy = "E_WORKSPACE_BUSY", "workspace_busy", 409,
        "wait for it, or end the process that the message names";
    /// The workspace has work that is saved nowhere else.
    WorkspaceDirty = "E_WORKSPACE_DIRTY", "workspace_dirty", 409,
        "commit and push the work, promote a fork, or leave out --keep-if-dirty";
    /// The workspace has forks, and nothing writes in it until they are promoted or removed.
    WorkspaceFrozen = "E_WORKSPACE_FROZEN", "workspace_frozen", 409,
        "work in a fork, or promote or remove the forks that the message names";
    /// No fork of this workspace can be made, or it cannot be promoted.
    ForkRefused = "E_FORK_REFUSED", "fork_refused", 409, "follow what the message says would pass";
    /// The base of a fork has changed since the fork was made, or the fork cannot be trusted any more.
    ForkConflict = "E_FORK_CONFLICT", "fork_conflict", 409,
        "`carrel workspace rebase` takes over what changed in the base where the fork has not changed the same";
    /// No try has this id.
    TryNotFound = "E_TRY_NOT_FOUND", "try_not_found", 404, "list what there is with `carrel try ls`";
    /// The directory cannot be a root for workspaces.
    RootRefused = "E_ROOT_REFUSED", "root_refused", 422, "~/carrel is a safe choice";
    /// Other users could change the root or its entries.
    RootUnsafe = "E_ROOT_UNSAFE", "root_unsafe", 403,
        "run `chmod 700` on it, or name a directory of your own";
    /// The records or the database were written by a newer version of Carrel.
    SchemaTooNew = "E_SCHEMA_TOO_NEW", "schema_too_new", 409, "use that version, or another root";
    /// A record of the server cannot be read.
    RecordUnreadable = "E_RECORD_UNREADABLE", "record_unreadable", 500,
        "delete the record of a workspace that the message names, so that the next create adopts the directory; put back a copy of a database, or move it away to begin with nothing";

    /// A hook ended with an error.
    HookFailed = "E_HOOK_FAILED", "workspace_hook_failed", 500, "read what it printed in the log";
    /// A hook exceeded its timeout and was killed.
    HookTimeout = "E_HOOK_TIMEOUT", "workspace_hook_timeout", 504,
        "raise hooks.timeout_ms in the workflow file";
    /// The requested sandbox cannot be set up here, and nothing runs without it.
    SandboxUnavailable = "E_SANDBOX_UNAVAILABLE", "sandbox_unavailable", 503,
        "run `carrel doctor` to see what is missing and how to get it";
    /// A program, thread or listener could not be started.
    SpawnFailed = "E_SPAWN_FAILED", "spawn_failed", 500, "see to what the system reports";
    /// The preset does not allow the command line.
    CommandRefused = "E_COMMAND_REFUSED", "command_refused", 403, "follow what the message says would pass";
    /// More network was requested than the operator allows.
    NetworkRefused = "E_NETWORK_REFUSED", "network_refused", 403,
        "ask for less; an operator sets `--network`, and `network_limit` in policy.toml";
    /// No background job of this caller has this id in this workspace.
    JobNotFound = "E_JOB_NOT_FOUND", "job_not_found", 404, "use the shell_id that the start of the job returned";
    /// So many background jobs run that another one is refused.
    TooManyJobs = "E_TOO_MANY_JOBS", "too_many_jobs", 429,
        "end one that is not needed any more, or wait for one to end";
    /// The cursor lies beyond the end of the log.
    InvalidCursor = "E_INVALID_CURSOR", "invalid_cursor", 422,
        "use the cursor of the last read, or begin at the start";

    /// The operator's policy file is missing or cannot be read.
    PolicyMissing = "E_POLICY_MISSING", "policy_missing", 404,
        "name the file with --policy or CARREL_POLICY, or remove the name";
    /// Other users could change the policy file.
    PolicyUnsafe = "E_POLICY_UNSAFE", "policy_unsafe", 403,
        "change owner and mode as the message says, or move the file";
    /// A setting of the operator's policy file is unknown or has a wrong value.
    PolicyInvalid = "E_POLICY_INVALID", "policy_invalid", 422,
        "correct what the message names; docs/policy.md lists every key";

    /// The workflow file is missing or cannot be read.
    WorkflowMissing = "E_WORKFLOW_MISSING", "missing_workflow_file", 404,
        "name the file behind `carrel run` or `carrel check`, or with --config of other commands";
    /// The front matter of the workflow file is not valid YAML.
    WorkflowParse = "E_WORKFLOW_PARSE", "workflow_parse_error", 422,
        "correct the YAML between the two `---` lines";
    /// The front matter of the workflow file is not a map.
    WorkflowNotAMap = "E_WORKFLOW_NOT_A_MAP", "workflow_front_matter_not_a_map", 422,
        "write settings as `name: value` between the two `---` lines";
    /// A setting of the workflow file has a wrong type or value.
    WorkflowInvalid = "E_WORKFLOW_INVALID", "invalid_workflow_config", 422,
        "see docs/workflow.md for every setting and what it takes";
    /// The workflow file names no tracker.
    TrackerMissing = "E_TRACKER_MISSING", "missing_tracker_kind", 422,
        "set tracker.kind; `local` needs no other service";
    /// The workflow file names a tracker that does not exist.
    TrackerUnsupported = "E_TRACKER_UNSUPPORTED", "unsupported_tracker_kind", 422,
        "see docs/workflow.md for the trackers there are";
    /// The prompt of the workflow file is not a valid template.
    TemplateParse = "E_TEMPLATE_PARSE", "template_parse_error", 422,
        "correct the template below the second `---` line";

    /// No snapshot has this name or number.
    SnapshotNotFound = "E_SNAPSHOT_NOT_FOUND", "snapshot_not_found", 404,
        "use one of the names in the message; `snapshot_list` and `carrel snapshot ls` list all";
    /// No call can be undone, or none has this checkpoint.
    CheckpointNotFound = "E_CHECKPOINT_NOT_FOUND", "checkpoint_not_found", 404,
        "list what can be undone with `undo_list`";
    /// Files have changed since the call that is to be undone, or their old content is not kept.
    UndoConflict = "E_UNDO_CONFLICT", "undo_conflict", 409,
        "undo later changes first, or name only the paths without a conflict";
    /// The store of a workspace's snapshots has a file that is damaged.
    SnapshotDamaged = "E_SNAPSHOT_DAMAGED", "snapshot_damaged", 500,
        "restore other paths or another snapshot, and look at the disk";

    /// An argument of a tool is missing, unknown or of the wrong type.
    InvalidArguments = "E_INVALID_ARGUMENTS", "invalid_arguments", 422,
        "see the schema in `tools/list`, `carrel tool NAME --help` or docs/tools.md";
    /// No tool has this name, or the mode of the server leaves it out.
    UnknownTool = "E_UNKNOWN_TOOL", "unknown_tool", 404, "list the tools with `tools/list` or `carrel tool`";
    /// No workspace of this server has this name.
    UnknownWorkspace = "E_UNKNOWN_WORKSPACE", "unknown_workspace", 404,
        "pass one of the names in the message";
    /// The server has several workspaces and the call names none.
    WorkspaceNotChosen = "E_WORKSPACE_NOT_CHOSEN", "workspace_not_chosen", 422,
        "pass `workspace` with one of the names in the message";
    /// The workspaces that the server was started with cannot be used together.
    WorkspacesInvalid = "E_WORKSPACES_INVALID", "workspaces_invalid", 422,
        "correct --workspaces; each entry is `name=directory` or `directory`";
    /// The workspace may only be read.
    ReadOnly = "E_READ_ONLY", "read_only", 403, "work in another workspace, or ask the operator";
    /// A file would run later outside the sandbox, such as a git hook, so it was not written or was
    /// restored.
    RunsLater = "E_RUNS_LATER", "runs_later", 403,
        "move the directories that the message means into one directory, one level down";
    /// A file is to be changed that this session has not read.
    NotRead = "E_NOT_READ", "not_read", 409, "read it first";
    /// A file is to be changed that has changed since this session read it.
    ChangedSinceRead = "E_CHANGED_SINCE_READ", "changed_since_read", 409, "read it again";
    /// A text operation was requested on a file that is not text.
    BinaryFile = "E_BINARY_FILE", "binary_file", 422, "use a command that understands the format";
    /// A range of lines was requested that the file does not have.
    InvalidRange = "E_INVALID_RANGE", "invalid_range", 422,
        "ask for lines that the file has; the message says how many";
    /// A part of a file was requested that begins behind its end.
    RangeNotSatisfiable = "E_RANGE_NOT_SATISFIABLE", "range_not_satisfiable", 416,
        "ask for bytes that the file has; the message says how many";
    /// The text that an edit replaces is not in the file.
    EditFindNotFound = "E_EDIT_FILE_FIND_NOT_FOUND", "edit_file_find_not_found", 409,
        "read the place again and copy the text exactly";
    /// The text that an edit replaces is in the file more than once.
    EditMultiMatch = "E_EDIT_FILE_MULTI_MATCH", "edit_file_multi_match", 409,
        "add lines around it, or set replace_all";
    /// The text that an edit searches for is longer than allowed.
    EditFindTooLarge = "E_EDIT_FILE_FIND_TOO_LARGE", "edit_file_find_too_large", 422,
        "give a shorter text, or a range of lines";
    /// The text that an edit inserts is longer than allowed.
    EditReplaceTooLarge = "E_EDIT_FILE_REPLACE_TOO_LARGE", "edit_file_replace_too_large", 422,
        "split the edit, or replace a range of lines";
    /// The edits of one call replace more than allowed.
    EditBatchTooLarge = "E_EDIT_FILE_BATCH_TOO_LARGE", "edit_file_batch_too_large", 422, "make several calls";
    /// A range covers the whole file and the new text is empty.
    EditLineRangeTooLarge = "E_EDIT_FILE_LINE_RANGE_TOO_LARGE", "edit_file_line_range_too_large", 422,
        "use Write with empty content, or Delete";
    /// Two edits of one call change the same lines.
    EditOverlap = "E_EDIT_FILE_OVERLAP", "edit_file_overlap", 422, "join the edits into one";
    /// An edit would write lines that already follow it a second time.
    EditDuplicatesContext = "E_EDIT_FILE_DUPLICATES_CONTEXT", "edit_file_duplicates_context", 422,
        "extend the range, or leave those lines out of the text";
    /// An edit would change nothing.
    EditNoChange = "E_EDIT_FILE_NO_CHANGE", "edit_file_no_change", 422, "leave the edit out";
    /// The patch cannot be parsed.
    PatchInvalid = "E_PATCH_INVALID", "patch_invalid", 422,
        "give a unified diff with `---`, `+++` and `@@` lines";
    /// The patch does not match the files; nothing was changed.
    PatchFailed = "E_PATCH_FAILED", "patch_failed", 409, "read the files again and make the patch anew";
    /// A pattern is not a valid regular expression or glob.
    InvalidPattern = "E_INVALID_PATTERN", "invalid_pattern", 422, "correct the pattern, or set fixed_strings";
    /// No project of a supported kind is there.
    ProjectNotDetected = "E_PROJECT_NOT_DETECTED", "project_not_detected", 422,
        "name another path, or say the commands in carrel.toml";
    /// The project has several languages and the call names none of them.
    LanguageNotChosen = "E_LANGUAGE_NOT_CHOSEN", "language_not_chosen", 422,
        "pass `language` with one of the names in the message, or `all`";
    /// The project has no script of this name.
    ScriptNotFound = "E_SCRIPT_NOT_FOUND", "script_not_found", 404, "pass one of the names in the message";
    /// No definition has this name, or it is not the one at this place.
    SymbolNotFound = "E_SYMBOL_NOT_FOUND", "symbol_not_found", 404,
        "pass one of the names in the message, or find it with search_code";
    /// Several definitions have this name, and the call has to choose one.
    SymbolAmbiguous = "E_SYMBOL_AMBIGUOUS", "symbol_ambiguous", 409,
        "give more of its name path, or its file and line";
    /// A symbol that is to be deleted has uses.
    SymbolInUse = "E_SYMBOL_IN_USE", "symbol_in_use", 409, "remove its uses first, or pass `force`";
    /// A file would have more syntax errors, or other symbols would change, if the new text were put in its place.
    ReplacementInvalid = "E_REPLACEMENT_INVALID", "replacement_invalid", 422,
        "correct the new text; nothing was written";
    /// The file to search by structure is of a language without a grammar.
    ScanUnsupported = "E_SCAN_CODE_UNSUPPORTED_FILE", "scan_code_unsupported_file", 422, "use Grep for such files";
    /// The file to rewrite by structure is of a language without a grammar.
    EditUnsupported = "E_EDIT_CODE_UNSUPPORTED_FILE", "edit_code_unsupported_file", 422, "use Edit for such files";
    /// Nothing in the files matches the rule, or the name is not declared as the call says.
    CodeEditNoMatch = "E_EDIT_CODE_NO_MATCH", "edit_code_no_match", 409, "try the rule with code_scan first";
    /// A replacement has a metavariable that its rule does not capture.
    CodeEditUnbound = "E_EDIT_CODE_REPLACEMENT_META_MISMATCH", "edit_code_replacement_meta_mismatch", 422,
        "use the variables in the message; `\\$` is a dollar sign";
    /// A language server is missing, is not ready, or does not answer.
    LanguageServer = "E_LANGUAGE_SERVER", "language_server", 503, "follow the reason that the message gives";
    /// The file is of a language that the operation does not know.
    UnsupportedLanguage = "E_UNSUPPORTED_LANGUAGE", "unsupported_language", 422,
        "use Read, Grep and Edit for such files";
    /// A flag or operand of git is not accepted by the operation.
    GitRefused = "E_GIT_REFUSED", "git_refused", 403, "use the options in the message";
    /// No secret or credential has this name, or the server keeps none.
    SecretUnknown = "E_SECRET_UNKNOWN", "secret_unknown", 404, "list the names with secrets_available";
    /// The text to be written contains the mask of a secret instead of the secret.
    MaskedWrite = "E_MASKED_WRITE", "masked_write", 422,
        "leave the masked line as it is, or write the real text";
    /// The time limit of a call was reached before its work was done.
    Timeout = "E_TIMEOUT", "timeout", 504, "raise the timeout, or ask for less";
    /// The caller cancelled the call, or the server is stopping.
    Cancelled = "E_CANCELLED", "cancelled", 499, "call again";
    /// The client declares roots, and none of them lies in a workspace of the server.
    ClientRoots = "E_CLIENT_ROOTS", "client_roots", 403,
        "open the directory of the workspace in the client, or start `carrel mcp` with --ignore-roots";

    /// A request does not have the form that the route requires.
    InvalidRequest = "E_INVALID_REQUEST", "invalid_request", 422,
        "the detail names the field; `/openapi.json` says what the route takes";
    /// The request carries no valid token.
    Unauthenticated = "E_UNAUTHENTICATED", "unauthenticated", 401,
        "get a token with `carrel token new`, and send it as `Authorization: Bearer …`";
    /// The keys that verify tokens could not be fetched, so no such token is accepted.
    KeysUnavailable = "E_KEYS_UNAVAILABLE", "keys_unavailable", 503,
        "ask CARREL_JWKS_URL with curl from the machine of the server; `/readyz` says when the keys are there";
    /// The caller may not do this.
    Forbidden = "E_FORBIDDEN", "forbidden", 403, "use a token for this workspace that has the scope";
    /// There is no such route.
    UnknownRoute = "E_UNKNOWN_ROUTE", "unknown_route", 404, "`/openapi.json` lists every route";
    /// The route exists and accepts other methods.
    MethodNotAllowed = "E_METHOD_NOT_ALLOWED", "method_not_allowed", 405,
        "the header `Allow` names the methods";
    /// No task has this id, or it belongs to another workspace.
    TaskNotFound = "E_TASK_NOT_FOUND", "task_not_found", 404,
        "list the tasks of the workspace with `GET /api/tasks`";
    /// The task has ended and cannot be cancelled.
    TaskFinished = "E_TASK_FINISHED", "task_finished", 409,
        "nothing has to be done; its detail says how it ended";
    /// The idempotency key was used for another request.
    IdempotencyMismatch = "E_IDEMPOTENCY_MISMATCH", "idempotency_mismatch", 409,
        "take a new key for each new request";
    /// The server has as much to do as its limits allow; `Retry-After` says how long to wait.
    Overloaded = "E_OVERLOADED", "overloaded", 429, "ask again after the seconds that `Retry-After` names";
    /// The database does not respond; nothing was done.
    StoreUnavailable = "E_STORE_UNAVAILABLE", "store_unavailable", 503,
        "ask again; `/readyz` says when it is back";
    /// The queue does not respond, and the operator wants submissions to fail then.
    QueueUnavailable = "E_QUEUE_UNAVAILABLE", "queue_unavailable", 503,
        "ask again with the same idempotency key; `/readyz` says when it is back";
    /// The worker that has the workspace does not respond.
    WorkerUnreachable = "E_WORKER_UNREACHABLE", "worker_unreachable", 503,
        "start a worker with that volume, and ask again; its `/health` says that it is there";
    /// The server that a command of the CLI talks to does not respond.
    ServerUnreachable = "E_SERVER_UNREACHABLE", "server_unreachable", 503,
        "start `carrel serve` or `carrel run --port 8080`, or name the right one with --server or CARREL_SERVER";
    /// Another server replied with an error, or with a response that cannot be used.
    UpstreamFailed = "E_UPSTREAM_FAILED", "upstream_failed", 502,
        "check that the address is right, and try again later";
    /// Another server has reached its rate limit for this token; `Retry-After` says how long to wait.
    UpstreamLimited = "E_UPSTREAM_LIMITED", "upstream_limited", 429,
        "ask again after the seconds that `Retry-After` names";
    /// The operator has not configured what this needs.
    NotConfigured = "E_NOT_CONFIGURED", "not_configured", 501,
        "send a token in X-GitHub-Token, or keep one as a credential of the workspace";
    /// The workspace is not connected to GitHub.
    NotConnected = "E_GITHUB_NOT_CONNECTED", "github_not_connected", 404,
        "send a token in X-GitHub-Token, or keep one as a credential of the workspace";
    /// A request without a bearer token names a host, or comes from a page, that is not the service's own.
    HostRefused = "E_HOST_REFUSED", "host_refused", 403,
        "use the address that the server prints, or name yours in CARREL_PUBLIC_URLS";

    /// No issue has this identifier, or the conductor does not work on it.
    IssueNotFound = "E_ISSUE_NOT_FOUND", "issue_not_found", 404, "list the issues with `carrel issue ls`";
    /// The state of the issue does not permit the request.
    IssueConflict = "E_ISSUE_CONFLICT", "issue_conflict", 409,
        "look where the issue stands with `GET /api/v1/{issue}`";
    /// No conductor runs here, or it does not respond.
    ConductorUnavailable = "E_CONDUCTOR_UNAVAILABLE", "orchestrator_unavailable", 503,
        "start one with `carrel run WORKFLOW.md --port 8080`";
    /// The work on an issue did not end well.
    RunFailed = "E_RUN_FAILED", "run_failed", 500,
        "read the log lines above, and the transcript that they name";

    /// A check of a root found something that stops work or endangers it.
    VerifyFailed = "E_VERIFY_FAILED", "verify_failed", 409, "follow the fix of each finding";
    /// A clean-up could not remove everything.
    CleanUpIncomplete = "E_CLEAN_UP_INCOMPLETE", "clean_up_incomplete", 500,
        "mend what the list of failures names, and clean up again";
    /// The command line was used wrongly.
    Usage = "E_USAGE", "usage", 400, "read `carrel --help`, or `--help` behind the command";
    /// A defect in Carrel.
    Internal = "E_INTERNAL", "internal", 500, "run it again with `-vv`, and report what it logs";
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
    fn a_violation_is_a_refusal() {
        for code in Code::ALL.iter().filter(|code| code.is_violation()) {
            assert_eq!(code.status(), 403, "{}", code.name());
        }
    }

    #[test]
    fn every_code_has_a_meaning_and_a_remedy_that_a_message_can_end_with() {
        for code in Code::ALL {
            let (name, remedy) = (code.name(), code.remedy());
            assert!(code.meaning().ends_with('.'), "{name}");
            let starts_low = !remedy.starts_with(|c: char| c.is_ascii_uppercase());
            assert!(starts_low && !remedy.is_empty() && !remedy.ends_with('.'), "{name}: {remedy}");
        }
    }
}
