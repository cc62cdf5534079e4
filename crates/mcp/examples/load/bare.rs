//! A tool that does nothing, and the SDK's own service to compare with.

use std::sync::Arc;

use axum::{Router, extract::Request, routing::any};
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities,
        ServerConfig,
    },
    service::RequestContext,
    transport::{
        StreamableHttpServerConfig, StreamableHttpService,
        streamable_http_server::session::local::LocalSessionManager,
    },
};
use tokio::net::TcpListener;

/// Replies to every call with the same word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trivial;

impl ServerHandler for Trivial {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        _request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text("done")]).into())
    }
}

/// Serves the SDK's service as its documentation shows, without delay of small packets.
pub(crate) async fn serve(listener: TcpListener) {
    let config = StreamableHttpServerConfig::default().with_json_response(true);
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(Trivial), sessions, config);
    let handle = move |request: Request| {
        let service = service.clone();
        async move { service.handle(request).await }
    };
    let router = Router::new().route("/mcp", any(handle));
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).expect("a socket takes the option");
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            // A client that goes away ends its connection with an error of no interest.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
