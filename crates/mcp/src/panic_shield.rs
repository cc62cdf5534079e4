//! A handler whose calls are counted and whose panics stay inside one call.
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
        ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
        SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
        UnsubscribeRequestParams, UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use tokio_util::task::TaskTracker;
use tracing::error;

/// Methods that mean nothing without their parameters. The SDK hands a request whose parameters do
/// not fit over as an unknown method; for these the client is told what is really wrong.
const WITH_REQUIRED_PARAMETERS: [&str; 4] =
    ["tools/call", "resources/read", "prompts/get", "completion/complete"];

/// Wraps a handler for one of the doors.
///
/// Every method of the SDK's trait is passed on. The trait has a default for each, so a method that
/// a later SDK adds must be added here too, or the handler's own would never be called.
pub(crate) struct PanicShield<H> {
    handler: Arc<H>,
    calls: TaskTracker,
}

impl<H> PanicShield<H> {
    /// Wraps `handler`; `calls` counts the calls that are running.
    pub(crate) fn new(handler: H, calls: TaskTracker) -> Self {
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

    async fn shield_quietly(&self, method: &'static str, call: impl Future<Output = ()> + Send) {
        let call = async {
            call.await;
            Ok(())
        };
        // Nobody waits for the outcome of a notification; the log has it.
        let _ = self.shield(method, call).await;
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// Passes requests on inside the shield. The inner `async move` makes sure that a panic before the
/// handler's first await is caught as well.
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

/// Passes notifications on inside the shield.
macro_rules! notifications {
    ($($method:ident($($parameter:ident: $type:ty),*);)*) => {$(
        async fn $method(&self, $($parameter: $type,)* context: NotificationContext<RoleServer>) {
            let call = async move { self.handler.$method($($parameter,)* context).await };
            self.shield_quietly(stringify!($method), call).await;
        }
    )*};
}

impl<H: ServerHandler> ServerHandler for PanicShield<H> {
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
        if WITH_REQUIRED_PARAMETERS.contains(&request.method.as_str()) {
            let message = format!("the parameters do not fit {}", request.method);
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
