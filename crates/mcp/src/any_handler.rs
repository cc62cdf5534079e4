//! The SDK's handler trait with boxed futures, for handlers whose type is erased.
//!
//! The SDK's services are generic over the handler. With this trait below [`PanicShield`](crate::panic_shield), which
//! is the one handler that they get, they are compiled once and not for each handler.
#![expect(deprecated, reason = "the older revisions still have these methods")]

use std::borrow::Cow;

use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam,
    CompleteRequestParams, CompleteResult, CustomNotification, CustomRequest, CustomResult,
    DiscoverResult, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

/// Declares the trait and implements it for every handler of the SDK.
macro_rules! any_handler {
    (
        requests { $($request:ident($($parameter:ident: $type:ty),*) -> $result:ty;)* }
        notifications { $($notification:ident($($noted:ident: $noted_type:ty),*);)* }
        facts { $($fact:ident($($about:ident: $about_type:ty),*) -> $answer:ty;)* }
    ) => {
        pub(crate) trait AnyHandler: Send + Sync {
            $(fn $request(
                &self,
                $($parameter: $type,)*
                context: RequestContext<RoleServer>,
            ) -> BoxFuture<'_, Result<$result, ErrorData>>;)*
            $(fn $notification(
                &self,
                $($noted: $noted_type,)*
                context: NotificationContext<RoleServer>,
            ) -> BoxFuture<'_, ()>;)*
            fn listen(&self, context: SubscriptionContext) -> BoxFuture<'_, Result<(), ErrorData>>;
            $(fn $fact(&self, $($about: $about_type),*) -> $answer;)*
        }

        impl<H: ServerHandler> AnyHandler for H {
            $(fn $request(
                &self,
                $($parameter: $type,)*
                context: RequestContext<RoleServer>,
            ) -> BoxFuture<'_, Result<$result, ErrorData>> {
                Box::pin(ServerHandler::$request(self, $($parameter,)* context))
            })*
            $(fn $notification(
                &self,
                $($noted: $noted_type,)*
                context: NotificationContext<RoleServer>,
            ) -> BoxFuture<'_, ()> {
                Box::pin(ServerHandler::$notification(self, $($noted,)* context))
            })*
            fn listen(&self, context: SubscriptionContext) -> BoxFuture<'_, Result<(), ErrorData>> {
                Box::pin(ServerHandler::listen(self, context))
            }
            $(fn $fact(&self, $($about: $about_type),*) -> $answer {
                ServerHandler::$fact(self, $($about),*)
            })*
        }
    };
}

any_handler! {
    requests {
        ping() -> ();
        initialize(request: InitializeRequestParams) -> InitializeResult;
        discover() -> DiscoverResult;
        complete(request: CompleteRequestParams) -> CompleteResult;
        set_level(request: SetLevelRequestParams) -> ();
        get_prompt(request: GetPromptRequestParams) -> GetPromptResponse;
        list_prompts(page: Option<PaginatedRequestParams>) -> ListPromptsResult;
        list_resources(page: Option<PaginatedRequestParams>) -> ListResourcesResult;
        list_resource_templates(page: Option<PaginatedRequestParams>)
            -> ListResourceTemplatesResult;
        read_resource(request: ReadResourceRequestParams) -> ReadResourceResponse;
        subscribe(request: SubscribeRequestParams) -> ();
        unsubscribe(request: UnsubscribeRequestParams) -> ();
        call_tool(request: CallToolRequestParams) -> CallToolResponse;
        list_tools(page: Option<PaginatedRequestParams>) -> ListToolsResult;
        get_task(request: GetTaskParams) -> GetTaskResult;
        update_task(request: UpdateTaskParams) -> ();
        cancel_task(request: CancelTaskParams) -> ();
        on_custom_request(request: CustomRequest) -> CustomResult;
    }
    notifications {
        on_cancelled(notification: CancelledNotificationParam);
        on_progress(notification: ProgressNotificationParam);
        on_initialized();
        on_roots_list_changed();
        on_custom_notification(notification: CustomNotification);
    }
    facts {
        get_info() -> ServerConfig;
        get_tool(name: &str) -> Option<Tool>;
        supported_protocol_versions() -> Cow<'static, [ProtocolVersion]>;
        negotiate_initialize(request: &InitializeRequestParams) -> Result<InitializeResult, ErrorData>;
        accepted_subscription_filter(requested: &SubscriptionFilter) -> Option<SubscriptionFilter>;
    }
}
