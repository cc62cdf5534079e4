//! The registry: the table of tools, and the one way to call them.
//!
//! MCP, REST, the command line and task steps all call tools here, so every call passes the same steps in
//! the same order:
//!
//! 1. the workspace is chosen from the argument `workspace` and the session's view;
//! 2. read-only servers and workspaces refuse tools that are not of the class `Read`;
//! 3. arguments are decoded against the schema that was derived from the input type;
//! 4. the tool runs, with panics caught and, for tools that write, inside the trust check;
//! 5. known secrets are masked in content, facts and failures, and bulk text is capped;
//! 6. one audit event is written, with a hash of the arguments instead of their text.
//!
//! [`Registry::call`] takes and returns JSON and is for interfaces; its response also carries failures.
//! [`Registry::call_typed`] is for code in this process: it takes the tool's input type, returns its facts
//! type beside the response, and differs only in step 3. The rules for steps 2, 4 and 5 are data in the tool's
//! definition ([`CallRules`](crate::CallRules)); this module compares no names.

mod fan_out;
mod panic_guard;
mod span;
mod tool_entry;
mod trust_check;

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use carrel_domain::{Code, Failure, ToolSelection, WorkspaceAccess, hex};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use tracing::Instrument as _;

use crate::fork_tools;
use crate::named_workspace::{NamedWorkspace, Workspaces};
use crate::response::{ToolContent, ToolResponse};
use crate::session::Session;
use crate::snapshots;
use crate::tool::{About, Class, Exposure, ListingRule, Masking, Tool, TrustMode, WorkspaceChoice};
use crate::tool_context::{CallOptions, ToolContext};
use crate::tool_schema::{InputSchemas, WorkspaceCount, take_workspace};
use crate::toolbox::Toolbox;
use crate::verify::compiler_check;
use crate::workspace_list::ALL;
use carrel_audit::{AuditEvent, AuditedCall, Violation};
use panic_guard::catch_panic;
pub(crate) use tool_entry::encode;
use tool_entry::{Entry, ResponseFuture};
pub(crate) use trust_check::check_restored;

/// Bounds the text of a response. Each tool has a smaller budget of its own; this one protects clients
/// from a tool that forgets it.
const MAX_RESPONSE_BYTES: usize = 512 * 1024;

/// The name of an unknown tool in spans and audit events, which never repeat a caller's text.
const UNKNOWN: &str = "unknown";

/// A tool's description, rules and schemas.
#[derive(Clone, Debug)]
pub struct Definition {
    /// Description and rules.
    pub about: About,
    input: InputSchemas,
    /// The JSON Schema of the facts, or of an error envelope.
    pub output_schema: Arc<Map<String, Value>>,
}

impl Definition {
    /// Returns the JSON Schema of the arguments: all of them, `workspace` included.
    pub fn input_schema(&self) -> &Arc<Map<String, Value>> {
        &self.input.full
    }

    /// Returns the JSON Schema of the arguments in few words, for a model. Further arguments are accepted.
    pub fn brief_input_schema(&self, workspaces: WorkspaceCount) -> &Arc<Map<String, Value>> {
        match workspaces {
            WorkspaceCount::One => &self.input.brief,
            WorkspaceCount::Several => &self.input.brief_with_workspace,
        }
    }

    /// Tells whether a client that can choose from so many workspaces is told of the tool.
    pub fn is_listed(&self, workspaces: WorkspaceCount) -> bool {
        match self.about.listing {
            ListingRule::Always => true,
            ListingRule::SeveralWorkspaces => workspaces == WorkspaceCount::Several,
        }
    }
}

/// The tools that one server offers, with the state that their calls share.
#[derive(Debug)]
pub struct Registry {
    toolbox: Arc<Toolbox>,
    selection: ToolSelection,
    entries: Vec<&'static Entry>,
}

/// All tools. Deriving their schemas takes a few milliseconds, so it is done once for each process and not
/// for each registry: the service has one registry for each open workspace.
#[derive(Debug, Default)]
pub(crate) struct Catalogue(Vec<Entry>);

impl Catalogue {
    fn all() -> &'static [Entry] {
        static ALL: LazyLock<Catalogue> = LazyLock::new(|| {
            let mut catalogue = Catalogue::default();
            crate::files::register(&mut catalogue);
            crate::shell::register(&mut catalogue);
            crate::git::register(&mut catalogue);
            crate::verify::register(&mut catalogue);
            crate::code::register(&mut catalogue);
            crate::snapshots::register(&mut catalogue);
            fork_tools::register(&mut catalogue);
            crate::tries::register(&mut catalogue);
            crate::workspaces::register(&mut catalogue);
            crate::secret_tools::register(&mut catalogue);
            crate::workspace_tools::register(&mut catalogue);
            catalogue
        });
        &ALL.0
    }

    fn selected(selection: ToolSelection) -> impl Iterator<Item = &'static Entry> {
        let is_selected = move |entry: &&Entry| entry.definition.about.is_in(selection);
        Self::all().iter().filter(is_selected)
    }

    pub(crate) fn add<T: Tool>(&mut self) {
        self.add_entry(Entry::new::<T>());
    }

    fn add_entry(&mut self, entry: Entry) {
        let name = entry.definition.about.name;
        let is_new = self.0.iter().all(|entry| entry.definition.about.name != name);
        debug_assert!(is_new, "two tools are called {name}");
        self.0.push(entry);
    }
}

/// Returns the definitions of selected tools, also if a read-only server leaves them out.
pub fn definitions(selection: ToolSelection) -> impl Iterator<Item = &'static Definition> {
    Catalogue::selected(selection).map(|entry| &entry.definition)
}

impl Registry {
    /// Makes a registry with the selected tools. A read-only toolbox leaves out tools that change something.
    pub fn new(toolbox: Arc<Toolbox>, selection: ToolSelection) -> Self {
        let is_offered = |entry: &&Entry| {
            entry.definition.about.class == Class::Read
                || toolbox.access == WorkspaceAccess::ReadWrite
        };
        let entries = Catalogue::selected(selection).filter(is_offered).collect();
        Self { toolbox, selection, entries }
    }

    /// Removes the tools that only the operator's own interfaces offer.
    #[must_use]
    pub fn without_operator_tools(mut self) -> Self {
        self.entries
            .retain(|entry| entry.definition.about.rules.exposure != Exposure::OperatorOnly);
        self
    }

    /// Returns the state that all calls share.
    pub fn toolbox(&self) -> &Arc<Toolbox> {
        &self.toolbox
    }

    /// Returns the tools in the order of `tools/list`.
    pub fn definitions(&self) -> impl Iterator<Item = &Definition> {
        self.entries.iter().map(|entry| &entry.definition)
    }

    /// Tells whether a tool of this name is offered.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    fn find(&self, name: &str) -> Option<&'static Entry> {
        self.entries.iter().copied().find(|entry| entry.definition.about.name == name)
    }

    /// Calls a tool by name with JSON arguments. Refusals, failures and panics are in the response.
    pub async fn call(
        &self,
        session: &Arc<Session>,
        name: &str,
        mut arguments: Map<String, Value>,
        options: CallOptions,
    ) -> ToolResponse {
        let entry = self.find(name);
        let digest = digest(&arguments);
        let workspace = take_workspace(&mut arguments);
        let call = Call {
            session,
            about: entry.map(|entry| entry.definition.about),
            digest,
            workspace: workspace.as_ref().ok().cloned().flatten(),
            options: &options,
        };
        let work = async {
            let entry = entry.ok_or_else(|| self.unknown(name))?;
            self.dispatch(entry, session, workspace?.as_deref(), arguments, &options).await
        };
        let called = self.run_audited(call, work).await;
        called.unwrap_or_else(|failure| failure_response(&failure))
    }

    /// Calls a tool of this process with its input type. The call is about the only workspace of the
    /// session, and the tool need not be in the table.
    ///
    /// The facts are the tool's own, for decisions of the caller. Output comes from the response, in which
    /// secrets are masked.
    pub async fn call_typed<T: Tool>(
        &self,
        session: &Arc<Session>,
        input: T::Input,
        options: CallOptions,
    ) -> Result<(T::Facts, ToolResponse), Failure>
    where
        T::Input: Serialize,
        T::Facts: Clone,
    {
        self.call_typed_in::<T>(session, None, input, options).await
    }

    /// Does the same in the workspace of this name; in the only one without a name.
    pub(crate) async fn call_typed_in<T: Tool>(
        &self,
        session: &Arc<Session>,
        workspace: Option<&str>,
        input: T::Input,
        options: CallOptions,
    ) -> Result<(T::Facts, ToolResponse), Failure>
    where
        T::Input: Serialize,
        T::Facts: Clone,
    {
        let about = T::ABOUT;
        let digest = digest(&input);
        let named = workspace.map(str::to_owned);
        let call =
            Call { session, about: Some(about), digest, workspace: named, options: &options };
        let mut facts = None;
        let work: ResponseFuture<'_> = Box::pin(async {
            let workspaces = self.toolbox.workspaces_of(session)?;
            let workspace = workspaces.choose(workspace)?;
            let caller = (session, &workspaces, &options);
            let context = self.context_in(about, caller, Some(workspace))?;
            let responding = async {
                let reply = T::call(&context, input).await?;
                facts = Some(reply.facts.clone());
                encode(reply)
            };
            // Boxed as in a call by name: the futures of tools are large, and callers nest them deeply.
            self.run_in(about, &context, Box::pin(responding)).await
        });
        let response = self.run_audited(call, work).await?;
        let facts = facts.ok_or_else(|| Failure::new(Code::Internal, "the reply has no facts"))?;
        Ok((facts, response))
    }

    /// Runs a call in its span, masks and caps its output, and writes its audit events.
    async fn run_audited(
        &self,
        call: Call<'_>,
        work: impl Future<Output = Result<ToolResponse, Failure>>,
    ) -> Result<ToolResponse, Failure> {
        let begun = Instant::now();
        let span = span::begin(call.tool(), call.options);
        let finished = async {
            let called = work.await;
            self.finish(&call, begun, called)
        };
        let called = finished.instrument(span.clone()).await;
        if called.as_ref().map_or(true, |response| response.is_error) {
            span::record_error(&span, called.as_ref().err().map(|failure| failure.code));
        }
        called
    }

    fn finish(
        &self,
        call: &Call<'_>,
        begun: Instant,
        mut called: Result<ToolResponse, Failure>,
    ) -> Result<ToolResponse, Failure> {
        let workspace = self.audited_workspace(call);
        let own = call.options.command_settings.redactor();
        if let Err(failure) = &called {
            self.audit_violation(call, workspace.as_deref(), failure);
        }
        let server = self.toolbox.redactor();
        let exposes = call.about.is_some_and(|about| about.rules.masking == Masking::Exposed);
        match &mut called {
            Err(failure) => [&*server, &own].iter().for_each(|one| one.redact_failure(failure)),
            Ok(response) if exposes && !response.is_error => {}
            Ok(response) => [&*server, &own].iter().for_each(|one| one.redact_response(response)),
        }
        let bytes = match &mut called {
            Ok(response) => {
                cap(&mut response.content);
                length(&response.content)
            }
            Err(failure) => failure.message.len(),
        };
        let code = called.as_ref().err().map(|failure| failure.code);
        let event = AuditEvent::ToolCall {
            tool: call.tool().to_owned(),
            workspace,
            arguments: call.digest.clone(),
            outcome: outcome(code),
            code: code.map(Code::name),
            duration_ms: begun.elapsed().as_secs_f64() * 1e3,
            bytes,
        };
        self.toolbox.events.add(call.session.id(), call.options.interface, event);
        called
    }

    /// Returns the workspace of a call for its audit event. An unknown name is left out, because events
    /// repeat no text of callers.
    fn audited_workspace(&self, call: &Call<'_>) -> Option<String> {
        let name = call.workspace.as_deref();
        if name == Some(ALL) {
            return call.workspace.clone();
        }
        let workspaces = self.toolbox.workspaces_of(call.session).ok()?;
        workspaces.choose(name).ok().map(|workspace| workspace.name().to_owned())
    }

    async fn dispatch(
        &self,
        entry: &Entry,
        session: &Arc<Session>,
        workspace: Option<&str>,
        arguments: Map<String, Value>,
        options: &CallOptions,
    ) -> Result<ToolResponse, Failure> {
        let about = entry.definition.about;
        fork_tools::open_named(&self.toolbox, session, workspace).await?;
        let workspaces = self.toolbox.workspaces_of(session)?;
        let caller = (session, &workspaces, options);
        match (about.workspaces, workspace) {
            (WorkspaceChoice::OneOrAll, Some(ALL)) => {
                let calls = workspaces.names().into_iter().map(|name| {
                    let chosen = workspaces.choose(Some(name));
                    let context = chosen.and_then(|one| self.context_in(about, caller, Some(one)));
                    (name.to_owned(), context)
                });
                Ok(fan_out::run(entry, calls.collect(), &arguments).await)
            }
            (WorkspaceChoice::Optional, None) if workspaces.len() > 1 => {
                let context = self.context_in(about, caller, None)?;
                catch_panic(about.name, entry.call(&context, arguments)).await
            }
            (
                WorkspaceChoice::One | WorkspaceChoice::OneOrAll | WorkspaceChoice::Optional,
                name,
            ) => {
                let workspace = workspaces.choose(name)?;
                let context = self.context_in(about, caller, Some(workspace))?;
                self.run_in(about, &context, entry.call(&context, arguments)).await
            }
        }
    }

    /// Runs a tool's work in a workspace: panics are caught, and tools that write are inside the trust
    /// check.
    async fn run_in(
        &self,
        about: About,
        context: &ToolContext,
        work: ResponseFuture<'_>,
    ) -> Result<ToolResponse, Failure> {
        // Before anything is read: a restore that was cut short leaves half of one state and half of another.
        snapshots::finish_interrupted(context).await;
        let work = catch_panic(about.name, work);
        let mut called = match about.rules.trust {
            TrustMode::Unchecked => work.await,
            mode @ (TrustMode::AfterCall | TrustMode::BeforeWrite) => {
                let called = trust_check::checked(context, mode, work).await;
                self.audit_missing_lock(context);
                called
            }
        };
        // Also of a call that failed: it may have changed a part.
        snapshots::keep(context).await;
        if let Ok(response) = &mut called {
            compiler_check::add_late(context, &mut response.content).await;
        }
        called
    }

    /// Makes the context of a call. Tools that change something are refused where that is not allowed.
    fn context_in(
        &self,
        about: About,
        (session, workspaces, options): (&Arc<Session>, &Arc<Workspaces>, &CallOptions),
        workspace: Option<Arc<NamedWorkspace>>,
    ) -> Result<ToolContext, Failure> {
        if let Some(workspace) = &workspace {
            if about.class != Class::Read && self.is_read_only(workspace) {
                let tool = about.name;
                let name = workspace.name();
                let message =
                    format!("{tool} changes files, and workspace \"{name}\" is read-only");
                return Err(Failure::new(Code::ReadOnly, message).with("workspace", name));
            }
            self.audit_first_use(session, workspace, options);
        }
        Ok(ToolContext {
            toolbox: Arc::clone(&self.toolbox),
            session: Arc::clone(session),
            tool: about.name,
            options: options.clone(),
            workspaces: Arc::clone(workspaces),
            workspace,
            changes: Arc::default(),
        })
    }

    fn is_read_only(&self, workspace: &NamedWorkspace) -> bool {
        [self.toolbox.access, workspace.access()].contains(&WorkspaceAccess::ReadOnly)
    }

    fn audit_first_use(
        &self,
        session: &Session,
        workspace: &NamedWorkspace,
        options: &CallOptions,
    ) {
        if !session.state().used_workspaces.insert(workspace.name().to_owned()) {
            return;
        }
        let event = AuditEvent::WorkspaceSandbox {
            workspace: workspace.name().to_owned(),
            sandbox_root: workspace.path().to_owned(),
            read_only: self.is_read_only(workspace),
        };
        self.toolbox.events.add(session.id(), options.interface, event);
    }

    /// Records once for each workspace that writes are not serialised with those of other processes.
    fn audit_missing_lock(&self, context: &ToolContext) {
        let Some(reason) = context.workspace().take_lock_trouble() else { return };
        let event = AuditEvent::WorkspaceUnlocked {
            workspace: context.workspace().name().to_owned(),
            reason: reason.to_owned(),
        };
        self.toolbox.events.add(context.session.id(), context.options.interface, event);
    }

    /// Records a refusal. This is the one place for all calls of tools but those about every workspace,
    /// whose refusals [`fan_out`] records.
    fn audit_violation(&self, call: &Call<'_>, workspace: Option<&str>, failure: &Failure) {
        let violation = Violation::of_code(failure.code, failure.detail.clone());
        let Some(violation) = violation else { return };
        let audited_call = AuditedCall {
            session: call.session.id().to_owned(),
            interface: call.options.interface,
            tool: call.tool().to_owned(),
            workspace: workspace.map(str::to_owned),
            mask: self.toolbox.event_mask(&call.options.command_settings),
        };
        self.toolbox.events.add_violation(&audited_call, violation);
    }

    /// Returns the tool of a group that the operator did not choose.
    fn unselected(&self, name: &str) -> Option<About> {
        let mut all = Catalogue::all().iter().map(|entry| entry.definition.about);
        all.find(|about| about.name == name && !about.is_in(self.selection))
    }

    fn unknown(&self, name: &str) -> Failure {
        if let Some(about) = self.unselected(name) {
            let message = format!(
                "unknown tool `{name}`: it is in the group {}, which is not offered here; the operator \
                 chooses the groups",
                about.group
            );
            let failure = Failure::new(Code::UnknownTool, message).with("tool", name);
            return failure.with("group", about.group.as_str());
        }
        let names: Vec<_> = self.definitions().map(|tool| tool.about.name).collect();
        let near = crate::tool_schema::nearest(name, &names);
        let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        let message = format!("unknown tool `{name}`{hint}");
        Failure::new(Code::UnknownTool, message).with("tool", name)
    }
}

/// One call, with what its span and its audit event need.
struct Call<'a> {
    session: &'a Session,
    /// None for an unknown tool.
    about: Option<About>,
    digest: String,
    /// As the caller named it.
    workspace: Option<String>,
    options: &'a CallOptions,
}

impl Call<'_> {
    fn tool(&self) -> &'static str {
        self.about.map_or(UNKNOWN, |about| about.name)
    }
}

fn outcome(code: Option<Code>) -> &'static str {
    match code {
        None => "ok",
        Some(code) if code.status() == 403 => "refused",
        Some(Code::Timeout) => "timeout",
        Some(_) => "failed",
    }
}

fn failure_response(failure: &Failure) -> ToolResponse {
    ToolResponse {
        content: vec![ToolContent::Text(failure.message.clone())],
        structured: json!(failure.envelope()),
        data: None,
        is_error: true,
    }
}

fn cap(content: &mut [ToolContent]) {
    let mut left = MAX_RESPONSE_BYTES;
    for block in content {
        let ToolContent::Text(text) = block else { continue };
        if text.len() > left {
            let kept = text.floor_char_boundary(left);
            let cut = text.len() - kept;
            text.truncate(kept);
            crate::text::line(
                text,
                &format!("[… {cut} bytes cut: a reply has at most {MAX_RESPONSE_BYTES}]"),
            );
        }
        left = left.saturating_sub(text.len());
    }
}

fn length(content: &[ToolContent]) -> usize {
    let lengths = content.iter().map(|block| match block {
        ToolContent::Text(text) => text.len(),
        ToolContent::Image { bytes, .. } => bytes.len(),
    });
    lengths.sum()
}

/// Returns half of the SHA-256 of the arguments, which stands for them in audit events.
fn digest(arguments: &impl Serialize) -> String {
    let text = serde_json::to_vec(arguments).unwrap_or_default();
    hex::encode(&Sha256::digest(text)[..16])
}
