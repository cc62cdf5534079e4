//! Every tool there is, and the one way in.

mod erased;
mod fan_out;
mod trace;
mod trust;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use carrel_domain::{Code, WorkspaceAccess, hex};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tracing::Instrument as _;

use crate::arguments::{self, take_workspace};
use crate::audit_log::AuditEvent;
use crate::failure::Failure;
use crate::named_workspace::NamedWorkspace;
use crate::redaction::Redactor;
use crate::response::{ToolContent, ToolResponse};
use crate::session::Session;
use crate::tool::{About, Class, Exposure, Masking, Tool, TrustMode, WorkspaceChoice};
use crate::tool_context::{CallOptions, ToolContext};
use crate::toolbox::Toolbox;
use crate::workspace_list::ALL;
use erased::{Entry, guarded};
pub(crate) use trust::check_restored;

/// Whatever a tool says, an answer has no more text than this.
const MAX_ANSWER_BYTES: usize = 512 * 1024;

/// Stands for a tool that does not exist.
const UNKNOWN: &str = "unknown";

/// Which tools are offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Toolset {
    /// Everything for work on code.
    #[default]
    Code,
    /// The six tools of the workspace service.
    Workspace,
}

/// A tool, as `tools/list` shows it.
#[derive(Clone, Debug)]
pub struct Definition {
    /// What it is for.
    pub about: About,
    /// The schema of its arguments.
    pub input_schema: Arc<Map<String, Value>>,
    /// The schema of its facts.
    pub output_schema: Arc<Map<String, Value>>,
}

/// Every tool that a server offers.
#[derive(Debug)]
pub struct Registry {
    toolbox: Arc<Toolbox>,
    entries: Vec<Arc<Entry>>,
}

/// Tools with their definitions, made once for every registry that offers them.
#[derive(Debug, Default)]
pub(crate) struct Catalogue(Vec<Arc<Entry>>);

impl Catalogue {
    /// Returns the tools of a set.
    fn of(toolset: Toolset) -> &'static Self {
        static CODE: OnceLock<Catalogue> = OnceLock::new();
        static WORKSPACE: OnceLock<Catalogue> = OnceLock::new();
        let made = |fill: fn(&mut Self)| {
            move || {
                let mut catalogue = Self::default();
                fill(&mut catalogue);
                catalogue
            }
        };
        match toolset {
            Toolset::Code => CODE.get_or_init(made(|catalogue| {
                crate::files::register(catalogue);
                crate::shell::register(catalogue);
                crate::git::register(catalogue);
                crate::verify::register(catalogue);
                crate::workspaces::register(catalogue);
                crate::secret_tools::register(catalogue);
            })),
            Toolset::Workspace => WORKSPACE.get_or_init(made(crate::service::register)),
        }
    }

    /// Adds a tool.
    pub(crate) fn add<T: Tool>(&mut self, tool: T) {
        self.0.push(Arc::new(Entry::new(tool)));
    }
}

/// Returns every tool of a set, whatever a server offers of it.
pub fn definitions(toolset: Toolset) -> impl Iterator<Item = &'static Definition> {
    Catalogue::of(toolset).0.iter().map(|entry| &entry.definition)
}

impl Registry {
    /// Makes an empty registry.
    pub fn empty(toolbox: Arc<Toolbox>) -> Self {
        Self { toolbox, entries: Vec::new() }
    }

    /// Offers a set of tools. Those that change anything are left out where nothing may change.
    pub fn new(toolbox: Arc<Toolbox>, toolset: Toolset) -> Self {
        let mut registry = Self::empty(toolbox);
        for entry in &Catalogue::of(toolset).0 {
            registry.offer(Arc::clone(entry));
        }
        registry
    }

    /// Adds a tool, unless it changes something and nothing may change.
    pub fn add<T: Tool>(&mut self, tool: T) {
        self.offer(Arc::new(Entry::new(tool)));
    }

    /// Removes the tools that only the operator's own interfaces offer.
    #[must_use]
    pub fn without_operator_tools(mut self) -> Self {
        self.entries
            .retain(|entry| entry.definition.about.rules.exposure != Exposure::OperatorOnly);
        self
    }

    fn offer(&mut self, entry: Arc<Entry>) {
        let about = entry.definition.about;
        if about.class != Class::Read && self.toolbox.access == WorkspaceAccess::ReadOnly {
            return;
        }
        debug_assert!(!self.has(about.name), "two tools are called {}", about.name);
        self.entries.push(entry);
    }

    /// Returns what all calls share.
    pub fn toolbox(&self) -> &Arc<Toolbox> {
        &self.toolbox
    }

    /// Returns the tools in the order in which they are shown.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.entries.iter().map(|entry| &entry.definition)
    }

    /// Tells whether a tool is offered.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn find(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.definition.about.name == name).map(|entry| &**entry)
    }

    /// Runs a tool. Whatever happens is in the answer: a refusal, a failure, even a panic.
    pub async fn call(
        &self,
        session: &Arc<Session>,
        name: &str,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> ToolResponse {
        let known = self.find(name).map_or(UNKNOWN, |entry| entry.definition.about.name);
        let span = trace::begin(known, &options);
        let answer =
            self.call_known(session, name, arguments, options).instrument(span.clone()).await;
        trace::end(&span, &answer);
        answer
    }

    async fn call_known(
        &self,
        session: &Arc<Session>,
        name: &str,
        mut arguments: Map<String, Value>,
        options: CallOptions,
    ) -> ToolResponse {
        let begun = Instant::now();
        let digest = digest(&arguments);
        let (interface, command_settings) = (options.interface, options.command_settings.clone());
        let workspace = take_workspace(&mut arguments);
        let called = match (self.find(name), &workspace) {
            (None, _) => Err(self.unknown(name)),
            (Some(_), Err(failure)) => Err(failure.clone()),
            (Some(entry), Ok(workspace)) => {
                self.run(entry, session, workspace.as_deref(), arguments, options).await
            }
        };
        let chosen = self.known(session, workspace.ok().flatten());
        let redactor = command_settings.redactor();
        self.report(session, interface, name, chosen.as_deref(), &called, &redactor);
        let code = called.as_ref().err().map(|failure| failure.code);
        let mut answer = called.unwrap_or_else(|failure| answer_of(&failure));
        let exposes = self
            .find(name)
            .is_some_and(|entry| entry.definition.about.rules.masking == Masking::Exposed);
        if !exposes || answer.is_error {
            self.toolbox.redactor().clean(&mut answer);
            redactor.clean(&mut answer);
        }
        cap(&mut answer);
        let event = AuditEvent::ToolCall {
            tool: self.find(name).map_or(UNKNOWN, |entry| entry.definition.about.name).to_owned(),
            workspace: chosen,
            arguments: digest,
            outcome: outcome(code),
            code: code.map(Code::name),
            duration_ms: begun.elapsed().as_secs_f64() * 1e3,
            bytes: answer.length(),
        };
        self.toolbox.events.add(session.id(), interface, event);
        answer
    }

    /// Returns the name of the workspace that a call is about, for events, which repeat no text of the
    /// client's.
    fn known(&self, session: &Session, name: Option<String>) -> Option<String> {
        if name.as_deref() == Some(ALL) {
            return name;
        }
        let chosen = self.toolbox.workspaces_of(session).choose(name.as_deref());
        chosen.ok().map(|workspace| workspace.name().to_owned())
    }

    async fn run(
        &self,
        entry: &Entry,
        session: &Arc<Session>,
        workspace: Option<&str>,
        arguments: Map<String, Value>,
        options: CallOptions,
    ) -> Result<ToolResponse, Failure> {
        let about = entry.definition.about;
        let workspaces = self.toolbox.workspaces_of(session);
        match (about.workspaces, workspace) {
            (WorkspaceChoice::OneOrAll, Some(ALL)) => {
                let workspaces = fan_out::sorted(&workspaces);
                let calls = workspaces.into_iter().map(|workspace| {
                    let name = workspace.name().to_owned();
                    let context = self.context_in(entry, session, Some(workspace), &options);
                    (name, context)
                });
                Ok(fan_out::run(entry, calls.collect(), &arguments).await)
            }
            (WorkspaceChoice::Optional, None) if workspaces.len() > 1 => {
                let context = self.context_in(entry, session, None, &options)?;
                guarded(entry, &context, arguments).await
            }
            (
                WorkspaceChoice::One | WorkspaceChoice::OneOrAll | WorkspaceChoice::Optional,
                name,
            ) => {
                let workspace = workspaces.choose(name)?;
                let context = self.context_in(entry, session, Some(workspace), &options)?;
                match about.rules.trust {
                    TrustMode::AfterCall | TrustMode::BeforeWrite => {
                        let answered = trust::kept(entry, &context, arguments).await;
                        self.report_unlocked(&context);
                        answered
                    }
                    TrustMode::Unchecked => guarded(entry, &context, arguments).await,
                }
            }
        }
    }

    /// Prepares a call in a workspace, if it may be made there.
    fn context_in(
        &self,
        entry: &Entry,
        session: &Arc<Session>,
        workspace: Option<Arc<NamedWorkspace>>,
        options: &CallOptions,
    ) -> Result<ToolContext, Failure> {
        let about = entry.definition.about;
        if let Some(workspace) = &workspace {
            if about.class != Class::Read && workspace.access() == WorkspaceAccess::ReadOnly {
                let message = format!(
                    "{} changes files, and workspace \"{}\" is read-only",
                    about.name,
                    workspace.name()
                );
                return Err(
                    Failure::new(Code::ReadOnly, message).with("workspace", workspace.name())
                );
            }
            self.enter(session, workspace, options);
        }
        Ok(ToolContext {
            toolbox: Arc::clone(&self.toolbox),
            session: Arc::clone(session),
            tool: about.name,
            options: options.clone(),
            workspace,
        })
    }

    /// Says that a session uses a workspace, the first time it does.
    fn enter(&self, session: &Session, workspace: &NamedWorkspace, options: &CallOptions) {
        if !session.state().entered.insert(workspace.name().to_owned()) {
            return;
        }
        let read_only =
            [self.toolbox.access, workspace.access()].contains(&WorkspaceAccess::ReadOnly);
        let event = AuditEvent::WorkspaceSandbox {
            workspace: workspace.name().to_owned(),
            sandbox_root: workspace.path().to_owned(),
            read_only,
        };
        self.toolbox.events.add(session.id(), options.interface, event);
    }

    /// Says, once, that other processes are not waited for when files are written.
    fn report_unlocked(&self, context: &ToolContext) {
        let Some(reason) = context.workspace().new_trouble() else { return };
        let (workspace, reason) = (context.workspace().name().to_owned(), reason.to_owned());
        let event = AuditEvent::WorkspaceUnlocked { workspace, reason };
        self.toolbox.events.add(context.session.id(), context.options.interface, event);
    }

    /// Says that something was kept from leaving its workspace before anything ran.
    fn report(
        &self,
        session: &Session,
        interface: crate::interface::Interface,
        tool: &str,
        workspace: Option<&str>,
        called: &Result<ToolResponse, Failure>,
        redactor: &Redactor,
    ) {
        let Err(failure) = called else { return };
        if failure.code != Code::SandboxViolation {
            return;
        }
        let mut detail = failure.detail.clone();
        redactor.clean_facts(&mut detail);
        let event = AuditEvent::SandboxViolation {
            tool: tool.to_owned(),
            workspace: workspace.map(str::to_owned),
            layer: "argument",
            code: Some(failure.code.name()),
            detail: self.toolbox.for_events(detail),
        };
        self.toolbox.events.add(session.id(), interface, event);
    }

    fn unknown(&self, name: &str) -> Failure {
        let names: Vec<_> = self.definitions().map(|tool| tool.about.name).collect();
        let near = arguments::nearest(name, &names);
        let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        let message = format!("unknown tool `{name}`{hint}");
        Failure::new(Code::UnknownTool, message).with("tool", name)
    }
}

/// Returns what a call comes to in the eyes of an auditor.
fn outcome(code: Option<Code>) -> &'static str {
    match code {
        None => "ok",
        Some(code) if code.status() == 403 => "refused",
        Some(Code::Timeout) => "timeout",
        Some(_) => "failed",
    }
}

fn answer_of(failure: &Failure) -> ToolResponse {
    ToolResponse {
        content: vec![ToolContent::Text(failure.message.clone())],
        structured: json!(failure.envelope()),
        data: None,
        is_error: true,
    }
}

/// Cuts what a tool let grow too long. Each has a budget of its own; this is the last wall.
fn cap(answer: &mut ToolResponse) {
    let mut left = MAX_ANSWER_BYTES;
    for content in &mut answer.content {
        let ToolContent::Text(text) = content else { continue };
        if text.len() > left {
            let kept = text.floor_char_boundary(left);
            let cut = text.len() - kept;
            text.truncate(kept);
            crate::text::line(
                text,
                &format!("[… {cut} bytes cut: an answer has at most {MAX_ANSWER_BYTES}]"),
            );
        }
        left = left.saturating_sub(text.len());
    }
}

/// Stands for the arguments in events, which hold no text of tenants.
fn digest(arguments: &Map<String, Value>) -> String {
    let text = serde_json::to_vec(arguments).unwrap_or_default();
    let hash = Sha256::digest(text);
    hex::encode(&hash[..16])
}
