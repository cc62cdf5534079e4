//! The hosts under which the service is reached, against DNS rebinding and foreign pages.
//!
//! A browser adds the session cookie by itself, and sends requests without any token for every page. Such a
//! request must name a host of the service, and must not come from a page of another origin. A page cannot
//! know a bearer token, so that a program with a valid one may reach the service under any name. Liveness,
//! readiness and metrics are not checked, since probes ask by address; nor is the API of workers, whose
//! internal token no browser sends. `carrel serve` and `carrel run --port` have the same rules.

use std::net::SocketAddr;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, ORIGIN};
use axum::http::{Extensions, HeaderMap, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use carrel_domain::Code;
use carrel_http::{
    AllowedHosts, ConnectionEnds, Forwarded, HostError, Origin, TrustedProxies, requested_host,
};
use serde_json::json;

use crate::auth::PresentedToken;
use crate::conductor_api::ConductorApi;
use crate::response::ErrorResponse;
use crate::state::Api;

/// Routes for probes and monitoring.
pub(crate) const EXEMPT_ROUTES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// The route of the conductor that takes webhook calls of the tracker.
pub(crate) const WEBHOOK_ROUTE: &str = "/api/v1/refresh";

/// The hosts under which the service is reached, and the proxies in front of it.
#[derive(Clone, Debug)]
pub struct HostRules {
    allowed: AllowedHosts,
    proxies: TrustedProxies,
}

impl HostRules {
    /// Allows the loopback names, the address that the server listens at, and its public URLs.
    pub fn new(address: SocketAddr, public_urls: &[Origin], proxies: TrustedProxies) -> Self {
        let mut allowed = AllowedHosts::loopback();
        allowed.allow_address(address.ip());
        for url in public_urls {
            allowed.allow_host(url.host_name());
            allowed.allow_origin(url.clone());
        }
        Self { allowed, proxies }
    }

    /// Returns the rules of a server that browsers do not reach.
    pub fn internal() -> Self {
        Self { allowed: AllowedHosts::loopback(), proxies: TrustedProxies::default() }
    }

    /// Returns the account of the proxy that forwarded a request, if it is a trusted one.
    pub(crate) fn forwarded<'a>(
        &self,
        extensions: &Extensions,
        headers: &'a HeaderMap,
    ) -> Forwarded<'a> {
        let peer = extensions.get::<ConnectionEnds>().map(|ends| ends.peer);
        self.proxies.forwarded(peer, headers)
    }

    fn host<'a>(
        &self,
        uri: &'a Uri,
        extensions: &Extensions,
        headers: &'a HeaderMap,
    ) -> Option<&'a str> {
        let forwarded = self.forwarded(extensions, headers).host;
        forwarded.or_else(|| requested_host(uri, headers))
    }

    fn check(&self, request: &Request) -> Result<(), HostError> {
        let (extensions, headers) = (request.extensions(), request.headers());
        let reached = extensions.get::<ConnectionEnds>().map(|ends| ends.reached);
        let host = self.host(request.uri(), extensions, headers);
        self.allowed.check(host, headers, reached)
    }

    /// Checks that a request comes from no page of another origin, under any name by which the service is
    /// reached.
    pub(crate) fn check_origin(
        &self,
        uri: &Uri,
        extensions: &Extensions,
        headers: &HeaderMap,
    ) -> Result<(), HostError> {
        self.allowed.check_own_origin(self.host(uri, extensions, headers), headers)
    }
}

/// Middleware that refuses requests under a foreign name or of a foreign page, unless they carry a valid
/// bearer token.
pub(crate) async fn check_host(State(api): State<Api>, request: Request, next: Next) -> Response {
    if EXEMPT_ROUTES.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let Err(error) = api.options.host_rules.check(&request) else {
        return next.run(request).await;
    };
    let token = bearer_token(request.headers());
    let is_valid = match &token {
        Some(token) => api.verify(token).await.is_ok(),
        None => false,
    };
    if is_valid { next.run(request).await } else { refused(error).into_response() }
}

/// The same for the API of a conductor. A webhook call of the tracker may name any host: it brings no token but
/// a signature, and no `Origin`, which browsers add to every `POST` of a page.
pub(crate) async fn check_conductor_host(
    State(api): State<ConductorApi>,
    request: Request,
    next: Next,
) -> Response {
    let Err(error) = api.options.host_rules.check(&request) else {
        return next.run(request).await;
    };
    let headers = request.headers();
    let browser_or_token = [AUTHORIZATION, COOKIE, ORIGIN];
    let is_webhook = request.method() == Method::POST
        && request.uri().path() == WEBHOOK_ROUTE
        && !browser_or_token.iter().any(|name| headers.contains_key(name));
    let is_valid = bearer_token(headers)
        .is_some_and(|token| api.options.authority.verify(&token, api.now()).is_ok());
    if is_webhook || is_valid { next.run(request).await } else { refused(error).into_response() }
}

fn bearer_token(headers: &HeaderMap) -> Option<String> {
    match PresentedToken::find(headers.get_all(AUTHORIZATION), []) {
        Ok(PresentedToken::Bearer(token)) => Some(token.to_owned()),
        Ok(PresentedToken::Cookie(_)) | Err(_) => None,
    }
}

pub(crate) fn refused(error: HostError) -> ErrorResponse {
    let (header, remedy) = match error {
        HostError::Host => (
            "host",
            "use the address that it prints, name this one in CARREL_PUBLIC_URLS, or send a bearer token",
        ),
        HostError::Origin => ("origin", "name the URL of its own pages in CARREL_PUBLIC_URLS"),
    };
    let message = format!("{error}; {remedy}");
    ErrorResponse::new(Code::HostRefused, message, json!({ "header": header }))
}
