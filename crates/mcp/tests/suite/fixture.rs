//! A handler with a few tools that show how a transport treats calls.
#![expect(deprecated, reason = "the older revisions still have logging")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        InitializeRequestParams, InitializeResult, JsonObject, ListToolsResult, LoggingLevel,
        LoggingMessageNotificationParam, PaginatedRequestParams, ProgressNotificationParam,
        ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use tokio::time::sleep;

/// Name and description of each tool.
const TOOLS: [(&str, &str); 8] = [
    ("count", "Counts the calls of this session"),
    ("cancellations", "Counts the calls of `wait` that were cancelled, on this server"),
    ("echo", "Replies with its `text`"),
    ("bytes", "Replies with `count` bytes"),
    ("wait", "Waits `millis` milliseconds, or until it is cancelled"),
    ("progress", "Reports progress `steps` times"),
    ("log", "Logs three times"),
    ("panic", "Panics"),
];

/// State that all handlers of one server share.
#[derive(Default)]
pub(crate) struct FixtureState {
    /// The duration of a handshake.
    pub(crate) handshake_delay_millis: AtomicUsize,
    /// The number of calls of `wait` that are running.
    waiting: AtomicUsize,
    /// The number of calls of `wait` that saw their token cancelled.
    cancelled: AtomicUsize,
}

impl FixtureState {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    pub(crate) fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::SeqCst)
    }
}

/// The handler. State of its own is state of the session.
#[derive(Clone)]
pub(crate) struct Fixture {
    state: Arc<FixtureState>,
    calls: Arc<AtomicUsize>,
}

impl Fixture {
    pub(crate) fn new(state: &Arc<FixtureState>) -> Self {
        Self { state: Arc::clone(state), calls: Arc::default() }
    }

    async fn wait(&self, millis: usize, context: &RequestContext<RoleServer>) -> CallToolResult {
        self.state.waiting.fetch_add(1, Ordering::SeqCst);
        let time = Duration::from_millis(u64::try_from(millis).unwrap_or_default());
        let cancelled = tokio::select! {
            () = context.ct.cancelled() => true,
            () = sleep(time) => false,
        };
        self.state.waiting.fetch_sub(1, Ordering::SeqCst);
        if cancelled {
            self.state.cancelled.fetch_add(1, Ordering::SeqCst);
            return text("cancelled");
        }
        text("waited")
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_logging().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("carrel-fixture", "0.1.0"))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let delay = self.state.handshake_delay_millis.load(Ordering::SeqCst);
        sleep(Duration::from_millis(delay.try_into().unwrap_or(u64::MAX))).await;
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |(name, description)| -> Tool {
            let schema = json!({"type": "object"});
            let tool = json!({"name": name, "description": description, "inputSchema": schema});
            serde_json::from_value(tool).expect("a tool")
        };
        Ok(ListToolsResult::with_all_items(TOOLS.into_iter().map(tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let result = match request.name.as_ref() {
            "count" => text((self.calls.fetch_add(1, Ordering::SeqCst) + 1).to_string()),
            "cancellations" => text(self.state.cancelled().to_string()),
            "echo" => text(arguments.get("text").and_then(Value::as_str).unwrap_or_default()),
            "bytes" => text("x".repeat(number(&arguments, "count"))),
            "wait" => self.wait(number(&arguments, "millis"), &context).await,
            "progress" => progress(number(&arguments, "steps"), &context).await,
            "log" => log(&context).await,
            "panic" => panic!("the tool was asked to panic"),
            name => {
                return Err(ErrorData::invalid_params(format!("no such tool: {name}"), None));
            }
        };
        Ok(result.into())
    }
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn number(arguments: &JsonObject, name: &str) -> usize {
    let number = arguments.get(name).and_then(Value::as_u64).unwrap_or_default();
    usize::try_from(number).unwrap_or_default()
}

async fn progress(steps: usize, context: &RequestContext<RoleServer>) -> CallToolResult {
    let token = context.meta.get_progress_token();
    for step in 0..steps {
        if let Some(token) = token.clone() {
            let share = u32::try_from(step * 100 / (steps.max(2) - 1)).unwrap_or(u32::MAX);
            let parameter = ProgressNotificationParam::new(token, share.into()).with_total(100.0);
            let _ = context.peer.notify_progress(parameter).await;
        }
        sleep(Duration::from_millis(1)).await;
    }
    text("done")
}

async fn log(context: &RequestContext<RoleServer>) -> CallToolResult {
    for line in ["started", "going on", "ended"] {
        let parameter = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(line));
        let _ = context.peer.notify_logging_message(parameter).await;
    }
    text("logged")
}
