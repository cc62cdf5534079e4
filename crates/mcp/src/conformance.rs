//! The fixtures of the public conformance suite.
//!
//! The suite calls tools, reads resources and gets prompts by names of its own, such as `test_simple_text`,
//! which no useful server has. [`WithFixtures`] wraps a server's handler and answers for these names; every
//! other request goes to the wrapped handler. The suite so tests the transports and the handler that are
//! shipped, behind an option that only the suite's script uses.
#![allow(
    clippy::unnecessary_wraps,
    reason = "tools that cannot fail have the signature of the others"
)]
#![expect(deprecated, reason = "the suite still tests sampling, roots and logging")]

mod calls;
mod jobs;
mod library;
mod rounds;
mod tools;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam,
    CompleteRequestParams, CompleteResult, CompletionInfo, CustomNotification, CustomRequest,
    CustomResult, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities,
    ServerConfig, SetLevelRequestMethod, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::broadcast;

/// Changes that may wait for a slow subscriber.
const MAX_CHANGES: usize = 16;

/// The words that the suite has completed.
const WORDS: [&str; 4] = ["paris", "park", "party", "test"];

type Context = RequestContext<RoleServer>;

/// A change that subscribers are notified of.
#[derive(Clone, Copy, Debug)]
enum ListChange {
    Tools,
    Prompts,
}

/// The state of the fixtures, shared by all handlers of a server. Cheap to clone.
#[derive(Clone)]
pub struct ConformanceFixtures(Arc<State>);

struct State {
    changes: broadcast::Sender<ListChange>,
    /// Tasks outlive the requests that made them.
    tasks: TaskManager,
}

impl fmt::Debug for ConformanceFixtures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ConformanceFixtures")
    }
}

impl Default for ConformanceFixtures {
    fn default() -> Self {
        let (changes, _) = broadcast::channel(MAX_CHANGES);
        Self(Arc::new(State { changes, tasks: TaskManager::new() }))
    }
}

/// A handler that also has the fixtures.
#[derive(Debug)]
pub struct WithFixtures<H> {
    handler: H,
    fixtures: ConformanceFixtures,
}

impl<H> WithFixtures<H> {
    /// Adds the fixtures to a handler.
    pub fn new(handler: H, fixtures: &ConformanceFixtures) -> Self {
        Self { handler, fixtures: fixtures.clone() }
    }

    fn tasks(&self) -> &TaskManager {
        &self.fixtures.0.tasks
    }
}

/// Makes a value of the protocol from the JSON that it is written as.
fn made<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the fixtures are values of the protocol")
}

fn is_fixture(uri: &str) -> bool {
    uri.starts_with("test://")
}

fn is_first_page(page: Option<&PaginatedRequestParams>) -> bool {
    page.is_none_or(|page| page.cursor.is_none())
}

/// Sends the changes of the fixtures' lists to one subscriber, without an end.
async fn forward(
    mut changes: broadcast::Receiver<ListChange>,
    sink: rmcp::service::SubscriptionSink,
) {
    loop {
        // A subscriber that did not ask for this kind is told nothing, which is no failure.
        let _ = match changes.recv().await {
            Ok(ListChange::Tools) => sink.notify_tool_list_changed().await,
            Ok(ListChange::Prompts) => sink.notify_prompt_list_changed().await,
            Err(broadcast::error::RecvError::Lagged(_)) => Ok(()),
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        };
    }
}

impl<H: ServerHandler> ServerHandler for WithFixtures<H> {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_logging()
            .enable_completions()
            .enable_tasks()
            .build();
        let mut info = self.handler.get_info();
        info.capabilities = capabilities;
        info
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::find(name).cloned().or_else(|| self.handler.get_tool(name))
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let is_first = is_first_page(page.as_ref());
        let mut listed = self.handler.list_tools(page, context).await?;
        if is_first {
            listed.tools.extend_from_slice(tools::all());
        }
        Ok(listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        if tools::find(&request.name).is_none() {
            return self.handler.call_tool(request, context).await;
        }
        if let Some(outcome) = rounds::call(&request, &context) {
            return outcome;
        }
        if let Some(outcome) = jobs::call(self.tasks(), &request, &context) {
            return outcome;
        }
        calls::call(&self.fixtures, request, context).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: Context,
    ) -> Result<GetTaskResult, ErrorData> {
        match self.tasks().get_task(&request.task_id) {
            Ok(task) => Ok(GetTaskResult::new(task)),
            Err(_) => self.handler.get_task(request, context).await,
        }
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        if self.tasks().get_task(&request.task_id).is_err() {
            return self.handler.update_task(request, context).await;
        }
        self.tasks().update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        if self.tasks().get_task(&request.task_id).is_err() {
            return self.handler.cancel_task(request, context).await;
        }
        self.tasks().cancel_task(&request.task_id)
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let is_first = is_first_page(page.as_ref());
        let mut listed = self.handler.list_resources(page, context).await?;
        if is_first {
            listed.resources.extend(library::resources());
        }
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut listed = self.handler.list_resource_templates(page, context).await?;
        listed.resource_templates.extend(library::templates());
        Ok(listed)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if is_fixture(&request.uri) {
            return library::read(&request.uri);
        }
        self.handler.read_resource(request, context).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        if is_fixture(&request.uri) {
            return Ok(());
        }
        self.handler.subscribe(request, context).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        if is_fixture(&request.uri) {
            return Ok(());
        }
        self.handler.unsubscribe(request, context).await
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let changes = self.fixtures.0.changes.subscribe();
        let forwarding = forward(changes, context.sink().clone());
        tokio::select! {
            ended = self.handler.listen(context) => ended,
            () = forwarding => Ok(()),
        }
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut listed = self.handler.list_prompts(page, context).await?;
        listed.prompts.extend(library::prompts());
        Ok(listed)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        match library::prompt(&request) {
            Some(prompt) => Ok(prompt),
            None => self.handler.get_prompt(request, context).await,
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let fits = |word: &&str| word.starts_with(&request.argument.value);
        let values = WORDS.into_iter().filter(fits).map(str::to_owned).collect();
        CompletionInfo::with_all_values(values)
            .map(CompleteResult::new)
            .map_err(|reason| ErrorData::internal_error(reason, None))
    }

    async fn set_level(&self, _: SetLevelRequestParams, context: Context) -> Result<(), ErrorData> {
        // The revision without sessions has removed the method.
        let version = context.protocol_version();
        if version.is_some_and(|version| !version.has_initialize()) {
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        Ok(())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: Context,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.handler.supported_protocol_versions()
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: Context,
    ) -> Result<CustomResult, ErrorData> {
        self.handler.on_custom_request(request, context).await
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.handler.on_initialized(context).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.handler.on_roots_list_changed(context).await;
    }

    async fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        self.handler.on_cancelled(notification, context).await;
    }

    async fn on_progress(
        &self,
        notification: ProgressNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        self.handler.on_progress(notification, context).await;
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        context: NotificationContext<RoleServer>,
    ) {
        self.handler.on_custom_notification(notification, context).await;
    }
}
