//! A handler wrapper that counts running calls and confines a panic to its call.
//!
//! The SDK runs each request in a task of its own and does not look at how the task ends. A handler that
//! panicked would leave its client without a reply, and its id in use, for ever; the shield turns the
//! panic into an internal error. The registry of tools has a shield as well, for callers that do not
//! come through this crate, and reports a tool's panic with more detail; what reaches this one is a defect
//! of a handler outside the tools.
//!
//! Running calls hold a token of the transport's task tracker, which shutdown waits for.
#![expect(deprecated, reason = "the older revisions still have these methods")]

use std::{any::Any, borrow::Cow, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam,
        CompleteRequestParams, CompleteResult, CustomNotification, CustomRequest, CustomResult,
        DiscoverResult, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
        InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
        ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
        ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
        UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use tokio_util::task::TaskTracker;
use tracing::error;

use crate::any_handler::AnyHandler;

/// Methods with required parameters. The SDK passes a request whose parameters do not fit to
/// `on_custom_request`, as if its method were unknown; for these the error says what is wrong.
const WITH_REQUIRED_PARAMETERS: [&str; 7] = [
    "tools/call",
    "resources/read",
    "prompts/get",
    "completion/complete",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
];

/// A handler whose panics become errors.
///
/// Every method of the SDK's trait is forwarded. The trait has a default for each, so a method that a later
/// SDK adds must be added here too, or the wrapped handler's would never be called.
#[derive(Clone)]
pub(crate) struct PanicShield {
    handler: Arc<dyn AnyHandler>,
    calls: TaskTracker,
}

impl PanicShield {
    /// Wraps `handler`; running calls are counted in `calls`.
    pub(crate) fn new(handler: impl ServerHandler, calls: TaskTracker) -> Self {
        Self { handler: Arc::new(handler), calls }
    }

    async fn shield<T>(
        &self,
        method: &'static str,
        call: impl Future<Output = Result<T, ErrorData>> + Send,
    ) -> Result<T, ErrorData> {
        let _running = self.calls.token();
        AssertUnwindSafe(call).catch_unwind().await.unwrap_or_else(|panic| {
            error!(method, panic = panic_text(&*panic), "a call panicked");
            Err(ErrorData::internal_error("the call failed inside the server", None))
        })
    }

    async fn shield_notification(
        &self,
        method: &'static str,
        call: impl Future<Output = ()> + Send,
    ) {
        let call = async {
            call.await;
            Ok(())
        };
        // A notification has no reply; the error is in the log.
        let _ = self.shield(method, call).await;
    }
}

/// Returns whether a server with these capabilities has a method.
fn is_offered(method: &str, capabilities: &ServerCapabilities) -> bool {
    match method.split_once('/').map_or(method, |(group, _)| group) {
        "tasks" => capabilities.supports_tasks(),
        "resources" => capabilities.resources.is_some(),
        "prompts" => capabilities.prompts.is_some(),
        "completion" => capabilities.completions.is_some(),
        _ => true,
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// Forwards requests inside the shield. The inner `async move` catches a panic before the handler's first
/// await as well.
macro_rules! requests {
    ($($method:ident($($parameter:ident: $type:ty),*) -> $result:ty;)*) => {$(
        async fn $method(&self, $($parameter: $type,)* context: RequestContext<RoleServer>)
            -> Result<$result, ErrorData>
        {
            let call = async move { self.handler.$method($($parameter,)* context).await };
            self.shield(stringify!($method), call).await
        }
    )*};
}

/// Forwards notifications inside the shield.
macro_rules! notifications {
    ($($method:ident($($parameter:ident: $type:ty),*);)*) => {$(
        async fn $method(&self, $($parameter: $type,)* context: NotificationContext<RoleServer>) {
            let call = async move { self.handler.$method($($parameter,)* context).await };
            self.shield_notification(stringify!($method), call).await;
        }
    )*};
}

impl ServerHandler for PanicShield {
    requests! {
        ping() -> ();
        initialize(request: InitializeRequestParams) -> InitializeResult;
        discover() -> DiscoverResult;
        complete(request: CompleteRequestParams) -> CompleteResult;
        set_level(request: SetLevelRequestParams) -> ();
        get_prompt(request: GetPromptRequestParams) -> GetPromptResponse;
        list_prompts(request: Option<PaginatedRequestParams>) -> ListPromptsResult;
        list_resources(request: Option<PaginatedRequestParams>) -> ListResourcesResult;
        list_resource_templates(request: Option<PaginatedRequestParams>)
            -> ListResourceTemplatesResult;
        read_resource(request: ReadResourceRequestParams) -> ReadResourceResponse;
        subscribe(request: SubscribeRequestParams) -> ();
        unsubscribe(request: UnsubscribeRequestParams) -> ();
        call_tool(request: CallToolRequestParams) -> CallToolResponse;
        list_tools(request: Option<PaginatedRequestParams>) -> ListToolsResult;
        get_task(request: GetTaskParams) -> GetTaskResult;
        update_task(request: UpdateTaskParams) -> ();
        cancel_task(request: CancelTaskParams) -> ();
    }

    notifications! {
        on_cancelled(notification: CancelledNotificationParam);
        on_progress(notification: ProgressNotificationParam);
        on_initialized();
        on_roots_list_changed();
        on_custom_notification(notification: CustomNotification);
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method.as_str();
        let is_known = WITH_REQUIRED_PARAMETERS.contains(&method);
        if is_known && is_offered(method, &self.handler.get_info().capabilities) {
            let message = format!("invalid parameters for {}", request.method);
            return Err(ErrorData::invalid_params(message, None));
        }
        let call = async move { self.handler.on_custom_request(request, context).await };
        self.shield("on_custom_request", call).await
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.shield("listen", async move { self.handler.listen(context).await }).await
    }

    fn negotiate_initialize(
        &self,
        request: &InitializeRequestParams,
    ) -> Result<InitializeResult, ErrorData> {
        self.handler.negotiate_initialize(request)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.handler.supported_protocol_versions()
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.handler.accepted_subscription_filter(requested)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.handler.get_tool(name)
    }

    fn get_info(&self) -> ServerConfig {
        self.handler.get_info()
    }
}
