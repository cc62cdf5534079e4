//! The table of settings.

use super::Fallback::{Computed, Nothing, Written};
use super::Kind::{
    Choice, FilledText, Flag, Map, PositiveNumber, Refused, Secret, Text, TextOrMap, Texts,
};
use super::{Key, Kind, Section};
use crate::settings::{AgentKind, AgentToolset, Approvals, Network, TrackerKind};

macro_rules! keys {
    ($($section:literal: $purpose:literal {
        $($name:ident = $path:literal, $kind:expr, $fallback:expr, $applies:literal, $about:literal;)+
    })+) => {
        $($(pub(crate) const $name: Key = Key {
            path: $path, kind: $kind, fallback: $fallback, applies: $applies, about: $about,
        };)+)+

        /// Every section, in the order of the guide.
        pub(crate) const SECTIONS: &[Section] = &[
            $(Section { name: $section, about: $purpose, keys: &[$($name),+] }),+
        ];
    };
}

keys! {
    "workspace": "Where workspaces live and how large they may grow." {
        WORKSPACE_ROOT = "workspace.root", Text, Computed("`<system temp>/carrel_workspaces`"), "next workspace",
            "The directory that holds the workspaces.";
        WORKSPACE_QUOTA = "workspace.quota_gb", PositiveNumber, Computed("`WORKSPACE_DEFAULT_QUOTA_GB`, else 5"), "new workspaces",
            "How many gibibytes one workspace may use; fractions are allowed.";
        WORKSPACE_FILES = "workspace.quota_files", Kind::POSITIVE, Written("1000000"), "new workspaces",
            "How many files and directories one workspace may hold.";
    }
    "hooks": "Scripts at the turning points of a workspace's life." {
        HOOK_AFTER_CREATE = "hooks.after_create", Text, Nothing, "next hook",
            "Runs once in a new workspace; if it fails, the workspace is removed.";
        HOOK_BEFORE_RUN = "hooks.before_run", Text, Nothing, "next hook",
            "Runs before each attempt; if it fails, the attempt fails.";
        HOOK_AFTER_RUN = "hooks.after_run", Text, Nothing, "next hook",
            "Runs after each attempt, cancelled ones included; a failure is logged.";
        HOOK_BEFORE_REMOVE = "hooks.before_remove", Text, Nothing, "next hook",
            "Runs before a workspace is removed; a failure is logged.";
        HOOK_TIMEOUT = "hooks.timeout_ms", Kind::MILLIS, Written("60000"), "next hook",
            "How long one hook may take before it and all its processes are killed.";
        HOOK_SANDBOX = "hooks.sandbox", Flag, Written("false"), "next hook",
            "Whether hooks are confined to the workspace as commands are: without the operator's profile, home and network unless policy.toml says otherwise.";
        HOOK_ENV = "hooks.env", Texts, Written("[]"), "next hook",
            "Names of further variables that hooks may see.";
    }
    "tracker": "Where issues come from." {
        TRACKER_KIND = "tracker.kind", Choice(TrackerKind::NAMES), Nothing, "next poll",
            "Which tracker to read. Required for everything but workspace commands.";
        TRACKER_PROVIDER = "tracker.provider", Map, Written("{}"), "next poll; a running session keeps its own",
            "Settings of that tracker; see below.";
        TRACKER_ENDPOINT = "tracker.endpoint", Text, Nothing, "next poll",
            "Same as `tracker.provider.endpoint`; for `linear` only.";
        TRACKER_API_KEY = "tracker.api_key", Secret, Nothing, "next poll",
            "Same as `tracker.provider.api_key`; for `linear` only.";
        TRACKER_PROJECT_SLUG = "tracker.project_slug", Text, Nothing, "next poll",
            "Same as `tracker.provider.project_slug`; for `linear` only.";
        TRACKER_ASSIGNEE = "tracker.assignee", Text, Nothing, "next poll",
            "Same as `tracker.provider.assignee`; for `linear` only.";
        TRACKER_LABELS = "tracker.required_labels", Texts, Written("[]"), "next poll",
            "Labels that an issue must all have; case does not matter.";
        TRACKER_ACTIVE = "tracker.active_states", Texts, Computed("see below"), "next poll",
            "States in which an issue is worked on.";
        TRACKER_TERMINAL = "tracker.terminal_states", Texts, Computed("see below"), "next poll",
            "States in which an issue is finished and its workspace is removed.";
    }
    "polling": "How often the tracker is asked." {
        POLLING_INTERVAL = "polling.interval_ms", Kind::MILLIS, Written("30000"), "next poll",
            "The time between two polls.";
    }
    "agent": "Which agent works, how many at once, and what each may reach." {
        AGENT_KIND = "agent.kind", Choice(AgentKind::NAMES), Written("codex"), "next run",
            "How the agent is spoken to: the Codex app server, the Agent Client Protocol, or a plain command.";
        AGENT_COMMAND = "agent.command", FilledText, Nothing, "next run",
            "The command that starts an `acp` or `command` agent; a shell expands it.";
        AGENT_APPROVALS = "agent.approvals", Choice(Approvals::NAMES), Written("accept"), "next run",
            "What an `acp` agent is answered when it asks for permission: to go on, since its walls hold whatever it does, or that a person has to decide, which stops the run. Codex has `codex.approval_policy`.";
        AGENT_NETWORK = "agent.network", Choice(Network::NAMES), Written("full"), "next run",
            "What the agent reaches: nothing, its own loopback, or the host's network.";
        AGENT_TOOLSET = "agent.toolset", Choice(AgentToolset::NAMES), Written("none"), "next run",
            "Which of Carrel's own tools the agent is offered for its workspace, beside those of the tracker: none, since agents have tools of their own and each further one costs tokens in every request; those for work on code; or the six of the workspace service.";
        AGENT_ENV = "agent.env", Texts, Written("[]"), "next run",
            "Names of variables of yours that the agent sees, such as the one with the key of its model.";
        AGENT_READABLE = "agent.sandbox.readable", Texts, Written("[]"), "next run",
            "Further paths that the agent may read.";
        AGENT_WRITABLE = "agent.sandbox.writable", Texts, Written("[]"), "next run",
            "Further paths that the agent may write.";
        AGENT_CONCURRENCY = "agent.max_concurrent_agents", Kind::POSITIVE, Written("10"), "next poll",
            "How many agents run at once.";
        AGENT_BY_STATE = "agent.max_concurrent_agents_by_state", Map, Written("{}"), "next dispatch",
            "How many agents run at once for issues in a state; an entry that is not a whole number greater than 0 is ignored with a warning.";
        AGENT_TURNS = "agent.max_turns", Kind::POSITIVE, Written("20"), "next run",
            "How many turns one run may take.";
        AGENT_BACKOFF = "agent.max_retry_backoff_ms", Kind::MILLIS, Written("300000"), "next retry",
            "The longest wait between two attempts.";
    }
    "codex": "The Codex app server, for `agent.kind: codex`." {
        CODEX_COMMAND = "codex.command", FilledText, Written("codex app-server"), "next launch",
            "The command that starts it; a shell expands it.";
        CODEX_APPROVAL = "codex.approval_policy", TextOrMap,
            Written("{reject: {sandbox_approval: true, rules: true, mcp_elicitations: true}}"), "next session",
            "Handed to Codex as it is.";
        CODEX_THREAD_SANDBOX = "codex.thread_sandbox", Text, Written("workspace-write"), "next session",
            "Handed to Codex as it is.";
        CODEX_TURN_SANDBOX = "codex.turn_sandbox_policy", Map, Computed("made from the workspace"), "next session",
            "Handed to Codex as it is.";
        CODEX_TURN_TIMEOUT = "codex.turn_timeout_ms", Kind::MILLIS, Written("3600000"), "next turn",
            "How long a turn may stay silent.";
        CODEX_READ_TIMEOUT = "codex.read_timeout_ms", Kind::MILLIS, Written("5000"), "next request",
            "How long one answer may take.";
        CODEX_STALL_TIMEOUT = "codex.stall_timeout_ms", Kind::MILLIS_OR_OFF, Written("300000"), "next poll",
            "How long a run may show no progress; 0 or less means for ever.";
    }
    "budgets": "Limits of spending. A span that reaches one of its limits stops; without a number there is no limit." {
        TURN_TOKENS = "budgets.turn.tokens", Kind::POSITIVE, Nothing, "next turn", "Tokens in one turn.";
        TURN_MINUTES = "budgets.turn.minutes", Kind::POSITIVE, Nothing, "next turn", "Minutes in one turn.";
        RUN_TURNS = "budgets.run.turns", Kind::POSITIVE, Nothing, "next turn", "Turns in one run.";
        RUN_TOKENS = "budgets.run.tokens", Kind::POSITIVE, Nothing, "next turn", "Tokens in one run.";
        RUN_MINUTES = "budgets.run.minutes", Kind::POSITIVE, Nothing, "next turn", "Minutes in one run.";
        ISSUE_TURNS = "budgets.issue.turns", Kind::POSITIVE, Nothing, "next turn", "Turns for one issue.";
        ISSUE_TOKENS = "budgets.issue.tokens", Kind::POSITIVE, Nothing, "next turn", "Tokens for one issue.";
        ISSUE_MINUTES = "budgets.issue.minutes", Kind::POSITIVE, Nothing, "next turn", "Minutes for one issue.";
        ISSUE_ATTEMPTS = "budgets.issue.attempts", Kind::POSITIVE, Nothing, "next turn", "Attempts at one issue.";
        DAY_TURNS = "budgets.day.turns", Kind::POSITIVE, Nothing, "next turn", "Turns in one day, all issues together.";
        DAY_TOKENS = "budgets.day.tokens", Kind::POSITIVE, Nothing, "next turn", "Tokens in one day, all issues together.";
        DAY_MINUTES = "budgets.day.minutes", Kind::POSITIVE, Nothing, "next turn", "Minutes in one day, all issues together.";
        DAY_ATTEMPTS = "budgets.day.attempts", Kind::POSITIVE, Nothing, "next turn", "Attempts in one day, all issues together.";
    }
    "observability": "What the terminal shows." {
        DASHBOARD = "observability.dashboard_enabled", Flag, Written("true"), "at once",
            "Whether a terminal shows the dashboard.";
        REFRESH = "observability.refresh_ms", Kind::MILLIS, Written("1000"), "at once",
            "The time between two looks at the state.";
        RENDER_INTERVAL = "observability.render_interval_ms", Kind::MILLIS, Written("16"), "at once",
            "The shortest time between two drawings.";
    }
    "server": "The HTTP interface of the conductor." {
        SERVER_PORT = "server.port", Kind::PORT, Computed("no HTTP interface"), "restart",
            "The port; 0 lets the system choose. The command line's `--port` wins.";
        SERVER_HOST = "server.host", FilledText, Written("127.0.0.1"), "restart",
            "The address to listen on.";
    }
    "worker": "Workspaces on other machines." {
        WORKER = "worker", Refused("workspaces live on this machine; remove the section and run Carrel on each host"),
            Nothing, "never",
            "`worker.ssh_hosts`, `worker.max_concurrent_agents_per_host` and everything else here is refused.";
    }
}
