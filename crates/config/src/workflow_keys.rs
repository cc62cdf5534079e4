//! The table of a workflow file's settings.

use std::time::Duration;

use carrel_domain::Code;

use crate::schema::DefaultValue::{Computed, Literal, Unset};
use crate::schema::ValueKind::{
    Choice, FilledText, Flag, Map, NotSupported, PositiveNumber, Secret, Text, TextOrMap, Texts,
};
use crate::schema::{Syntax, ValueKind, settings};
use crate::settings::{AgentKind, Approvals, TrackerKind};

/// Ten years, which keeps times within what clocks can add up.
const MAX_KEEP_UNSAVED: Duration = Duration::from_hours(24 * 3650);

settings! {
    Syntax::Yaml, Code::WorkflowInvalid;
    Some("workspace"), "Root and quotas of workspaces." {
        WORKSPACE_ROOT = "workspace.root", Text, Computed("`<system temp>/carrel_workspaces`"), Some("next workspace"),
            "The directory that holds the workspaces.";
        WORKSPACE_QUOTA = "workspace.quota_gb", PositiveNumber, Computed("`WORKSPACE_DEFAULT_QUOTA_GB`, else 5"), Some("new workspaces"),
            "Gibibytes that one workspace may use; fractions are allowed.";
        WORKSPACE_FILES = "workspace.quota_files", ValueKind::POSITIVE, Literal("1000000"), Some("new workspaces"),
            "Files and directories that one workspace may hold.";
        WORKSPACE_KEEP_UNSAVED = "workspace.keep_unsaved", ValueKind::TimeOrOff { max: MAX_KEEP_UNSAVED }, Literal("14d"), Some("next removal"),
            "The time for which unsaved work of a finished issue can be restored after its workspace is removed; 0 keeps none.";
    }
    Some("hooks"), "The operator's scripts at points of a workspace's life." {
        HOOK_AFTER_CREATE = "hooks.after_create", Text, Unset, Some("next hook"),
            "Runs once in a new workspace; if it fails, the workspace is removed.";
        HOOK_BEFORE_RUN = "hooks.before_run", Text, Unset, Some("next hook"),
            "Runs before each attempt; if it fails, the attempt fails.";
        HOOK_AFTER_RUN = "hooks.after_run", Text, Unset, Some("next hook"),
            "Runs after each attempt, cancelled ones included; a failure is logged.";
        HOOK_BEFORE_REMOVE = "hooks.before_remove", Text, Unset, Some("next hook"),
            "Runs before a workspace is removed; a failure is logged.";
        HOOK_TIMEOUT = "hooks.timeout_ms", ValueKind::MILLIS, Literal("60000"), Some("next hook"),
            "The time after which a hook and all its processes are killed.";
        HOOK_SANDBOX = "hooks.sandbox", Flag, Literal("false"), Some("next hook"),
            "True to run hooks in the workspace's sandbox as commands are: without the operator's profile and home, and without a network unless policy.toml allows it.";
        HOOK_ENV = "hooks.env", Texts, Literal("[]"), Some("next hook"),
            "Names of further environment variables that hooks see.";
    }
    Some("tracker"), "The tracker whose issues are worked on." {
        TRACKER_KIND = "tracker.kind", Choice(TrackerKind::NAMES), Unset, Some("next poll"),
            "The kind of tracker. Required for everything but workspace commands.";
        TRACKER_PROVIDER = "tracker.provider", Map, Literal("{}"), Some("next poll; a running session keeps its own"),
            "Settings of that tracker; see below.";
        TRACKER_ENDPOINT = "tracker.endpoint", Text, Unset, Some("next poll"),
            "Same as `tracker.provider.endpoint`; for `linear` only.";
        TRACKER_API_KEY = "tracker.api_key", Secret, Unset, Some("next poll"),
            "Same as `tracker.provider.api_key`; for `linear` only.";
        TRACKER_PROJECT_SLUG = "tracker.project_slug", Text, Unset, Some("next poll"),
            "Same as `tracker.provider.project_slug`; for `linear` only.";
        TRACKER_ASSIGNEE = "tracker.assignee", Text, Unset, Some("next poll"),
            "Same as `tracker.provider.assignee`; for `linear` only.";
        TRACKER_LABELS = "tracker.required_labels", Texts, Literal("[]"), Some("next poll"),
            "Labels that an issue must all have; case does not matter.";
        TRACKER_ACTIVE = "tracker.active_states", Texts, Computed("see below"), Some("next poll"),
            "States in which an issue is worked on.";
        TRACKER_TERMINAL = "tracker.terminal_states", Texts, Computed("see below"), Some("next poll"),
            "States in which an issue is finished and its workspace is removed.";
    }
    Some("polling"), "Polling of the tracker." {
        POLLING_INTERVAL = "polling.interval_ms", ValueKind::MILLIS, Literal("30000"), Some("next poll"),
            "The time between two polls.";
    }
    Some("agent"), "The agent, its concurrency and its sandbox." {
        AGENT_KIND = "agent.kind", Choice(AgentKind::NAMES), Literal("codex"), Some("next run"),
            "The protocol of the agent: the Codex app server, the Agent Client Protocol, or a plain command.";
        AGENT_COMMAND = "agent.command", FilledText, Unset, Some("next run"),
            "The command that starts an `acp` or `command` agent; a shell expands it.";
        AGENT_APPROVALS = "agent.approvals", Choice(Approvals::NAMES), Literal("accept"), Some("next run"),
            "The reply to an `acp` agent that requests permission: `accept`, since the sandbox limits it either way, or `ask`, which stops the run until a person decides. Codex has `codex.approval_policy`.";
        AGENT_NETWORK = "agent.network", ValueKind::NETWORK, Literal("full"), Some("next run"),
            "The network of the agent: nothing, its own loopback, or the host's network.";
        AGENT_TOOLS = "agent.tools", Texts, Literal("[]"), Some("next run"),
            "Groups of Carrel's own tools that the agent is offered for its workspace, beside the tracker's: `files`, `shell`, `verify`, `git`, `workspace`, or `default` for the default set. None by default, since agents have tools of their own and each further one costs tokens in every request.";
        AGENT_ENV = "agent.env", Texts, Literal("[]"), Some("next run"),
            "Names of your environment variables that the agent sees, such as the one with the API key of its model.";
        AGENT_READABLE = "agent.sandbox.readable", Texts, Literal("[]"), Some("next run"),
            "Further paths that the agent may read.";
        AGENT_WRITABLE = "agent.sandbox.writable", Texts, Literal("[]"), Some("next run"),
            "Further paths that the agent may write.";
        AGENT_CONCURRENCY = "agent.max_concurrent_agents", ValueKind::POSITIVE, Literal("10"), Some("next poll"),
            "Agents that run at once.";
        AGENT_BY_STATE = "agent.max_concurrent_agents_by_state", Map, Literal("{}"), Some("next dispatch"),
            "Agents that run at once for issues in a state; an entry that is not a whole number greater than 0 is ignored with a warning.";
        AGENT_TURNS = "agent.max_turns", ValueKind::POSITIVE, Literal("20"), Some("next run"),
            "Turns of one run.";
        AGENT_TURNS_WITHOUT_PROGRESS = "agent.max_turns_without_progress", ValueKind::LIMIT_OR_OFF, Literal("3"), Some("next turn"),
            "Consecutive turns without an effect on files, commits or the tracker after which an issue is blocked; 0 means no limit.";
        AGENT_BACKOFF = "agent.max_retry_backoff_ms", ValueKind::MILLIS, Literal("300000"), Some("next retry"),
            "The longest back-off between two attempts.";
    }
    Some("codex"), "The Codex app server, for `agent.kind: codex`." {
        CODEX_COMMAND = "codex.command", FilledText, Literal("codex app-server"), Some("next launch"),
            "The command that starts it; a shell expands it.";
        CODEX_APPROVAL = "codex.approval_policy", TextOrMap,
            Literal("{reject: {sandbox_approval: true, rules: true, mcp_elicitations: true}}"), Some("next session"),
            "Passed to Codex as written.";
        CODEX_THREAD_SANDBOX = "codex.thread_sandbox", Text, Literal("workspace-write"), Some("next session"),
            "Passed to Codex as written.";
        CODEX_TURN_SANDBOX = "codex.turn_sandbox_policy", Map, Computed("made from the workspace"), Some("next session"),
            "Passed to Codex as written.";
        CODEX_TURN_TIMEOUT = "codex.turn_timeout_ms", ValueKind::MILLIS, Literal("3600000"), Some("next turn"),
            "The time for which a turn may be silent.";
        CODEX_READ_TIMEOUT = "codex.read_timeout_ms", ValueKind::MILLIS, Literal("5000"), Some("next request"),
            "The time in which Codex must reply to one request.";
        CODEX_STALL_TIMEOUT = "codex.stall_timeout_ms", ValueKind::MILLIS_OR_OFF, Literal("300000"), Some("next poll"),
            "The time for which a run may show no progress; 0 or less means no limit.";
    }
    Some("budgets"), "Limits of turns, tokens, minutes and attempts. A span that reaches one of its limits stops; without a number or a default there is no limit." {
        TURN_TOKENS = "budgets.turn.tokens", ValueKind::POSITIVE, Unset, Some("next turn"), "Tokens in one turn.";
        TURN_MINUTES = "budgets.turn.minutes", ValueKind::POSITIVE, Unset, Some("next turn"), "Minutes in one turn.";
        RUN_TURNS = "budgets.run.turns", ValueKind::POSITIVE, Unset, Some("next turn"), "Turns in one run.";
        RUN_TOKENS = "budgets.run.tokens", ValueKind::POSITIVE, Unset, Some("next turn"), "Tokens in one run.";
        RUN_MINUTES = "budgets.run.minutes", ValueKind::POSITIVE, Unset, Some("next turn"), "Minutes in one run.";
        ISSUE_TURNS = "budgets.issue.turns", ValueKind::LIMIT_OR_OFF, Literal("100"), Some("next turn"), "Turns for one issue; 0 means no limit.";
        ISSUE_TOKENS = "budgets.issue.tokens", ValueKind::LIMIT_OR_OFF, Literal("10000000"), Some("next turn"), "Tokens for one issue; 0 means no limit.";
        ISSUE_MINUTES = "budgets.issue.minutes", ValueKind::LIMIT_OR_OFF, Literal("480"), Some("next turn"), "Minutes for one issue; 0 means no limit.";
        ISSUE_ATTEMPTS = "budgets.issue.attempts", ValueKind::LIMIT_OR_OFF, Literal("20"), Some("next turn"), "Attempts at one issue; 0 means no limit.";
        DAY_TURNS = "budgets.day.turns", ValueKind::POSITIVE, Unset, Some("next turn"), "Turns in one day, all issues together.";
        DAY_TOKENS = "budgets.day.tokens", ValueKind::POSITIVE, Unset, Some("next turn"), "Tokens in one day, all issues together.";
        DAY_MINUTES = "budgets.day.minutes", ValueKind::POSITIVE, Unset, Some("next turn"), "Minutes in one day, all issues together.";
        DAY_ATTEMPTS = "budgets.day.attempts", ValueKind::POSITIVE, Unset, Some("next turn"), "Attempts in one day, all issues together.";
    }
    Some("observability"), "The terminal dashboard." {
        DASHBOARD = "observability.dashboard_enabled", Flag, Literal("true"), Some("at once"),
            "True to show the dashboard in a terminal.";
        REFRESH = "observability.refresh_ms", ValueKind::MILLIS, Literal("1000"), Some("at once"),
            "The interval at which the state is read.";
        RENDER_INTERVAL = "observability.render_interval_ms", ValueKind::MILLIS, Literal("16"), Some("at once"),
            "The shortest time between two renderings.";
    }
    Some("server"), "The HTTP interface of the conductor." {
        SERVER_PORT = "server.port", ValueKind::PORT, Computed("no HTTP interface"), Some("restart"),
            "The port; 0 lets the system choose. The command line's `--port` wins.";
        SERVER_HOST = "server.host", FilledText, Literal("127.0.0.1"), Some("restart"),
            "The address to listen on.";
    }
    Some("worker"), "Workspaces on other machines." {
        WORKER = "worker", NotSupported("workspaces live on this machine; remove the section and run Carrel on each host"),
            Unset, Some("never"),
            "`worker.ssh_hosts`, `worker.max_concurrent_agents_per_host` and everything else here is rejected.";
    }
}
