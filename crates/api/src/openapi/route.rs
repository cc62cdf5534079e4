//! A route and its description.
//!
//! [`Route`] is a builder: the handler and everything that the document says about it are written in one
//! expression. Errors that follow from the parts (a JSON body can be too large, a scope can be missing) are
//! added by [`Description::all_codes`]; a route lists only its own.
//!
//! ```ignore
//! Route::get("/api/tasks", list)
//!     .name("list_tasks", "List tasks", TokenScope::Read)
//!     .query::<TaskQuery>()
//!     .json::<TaskList>(200, "A page of the tasks.")
//!     .errors(STORE)
//! ```

use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{self, MethodFilter, MethodRouter};
use carrel_domain::{Code, TokenScope};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use crate::host_check::EXEMPT_ROUTES;
use crate::state::Api;

pub(super) type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// `Idempotency-Key`.
    IdempotencyKey,
    /// `X-Workspace-ID`, if the token covers several.
    Workspace,
    /// `Last-Event-ID`, the cursor of an event stream.
    LastEvent,
    /// `X-GitHub-Token`.
    GitHubToken,
    /// `Range`, the part of a file.
    Range,
    /// `If-Range`, the validator for which a part is wanted.
    IfRange,
    /// `If-None-Match`, the validators of contents that the client has.
    IfNoneMatch,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Access {
    /// No credentials.
    Public,
    /// Any valid token.
    #[default]
    Token,
    /// A token with this scope.
    Scope(TokenScope),
}

impl From<TokenScope> for Access {
    fn from(scope: TokenScope) -> Self {
        Self::Scope(scope)
    }
}

#[derive(Clone, Copy)]
pub(super) enum Body {
    Json(SchemaFn),
    Stream(&'static str),
}

#[derive(Clone, Copy)]
pub(super) enum Content {
    Nothing,
    Json(SchemaFn),
    /// Server-sent events with this schema.
    Events(SchemaFn),
    Bytes(&'static str),
}

pub(super) struct ResponseSpec {
    pub(super) status: u16,
    pub(super) description: &'static str,
    pub(super) content: Content,
}

pub(crate) struct Route<S = Api> {
    handler: MethodRouter<S>,
    pub(super) about: Description,
}

/// The part of a route that the document shows.
#[derive(Default)]
pub(super) struct Description {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) tag: &'static str,
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) text: &'static str,
    pub(super) access: Access,
    pub(super) query: Option<SchemaFn>,
    pub(super) headers: Vec<Header>,
    pub(super) body: Option<Body>,
    /// Name, summary and value of examples of the body.
    pub(super) examples: Vec<(&'static str, &'static str, Value)>,
    pub(super) responses: Vec<ResponseSpec>,
    /// `OpenAPI` links: the operation that a response leads to, and the field of the response with its
    /// `task_id`.
    pub(super) links: Vec<(&'static str, &'static str)>,
    pub(super) codes: Vec<Code>,
}

impl<S: Clone + Send + Sync + 'static> Route<S> {
    pub(crate) fn get<T: 'static>(path: &'static str, handler: impl Handler<T, S>) -> Self {
        Self::new(Description { path, ..Description::default() }, handler)
    }

    pub(crate) fn post<T: 'static>(path: &'static str, handler: impl Handler<T, S>) -> Self {
        Self::new(Description { method: Method::POST, path, ..Description::default() }, handler)
    }

    pub(crate) fn put<T: 'static>(path: &'static str, handler: impl Handler<T, S>) -> Self {
        Self::new(Description { method: Method::PUT, path, ..Description::default() }, handler)
    }

    pub(crate) fn delete<T: 'static>(path: &'static str, handler: impl Handler<T, S>) -> Self {
        Self::new(Description { method: Method::DELETE, path, ..Description::default() }, handler)
    }

    fn new<T: 'static>(about: Description, handler: impl Handler<T, S>) -> Self {
        let method = MethodFilter::try_from(about.method.clone());
        let filter = method.expect("routes are made with usual methods");
        Self { handler: routing::on(filter, handler), about }
    }

    pub(crate) fn name(
        mut self,
        name: &'static str,
        summary: &'static str,
        access: impl Into<Access>,
    ) -> Self {
        (self.about.name, self.about.summary) = (name, summary);
        self.about.access = access.into();
        self
    }

    pub(crate) fn description(mut self, text: &'static str) -> Self {
        self.about.text = text;
        self
    }

    pub(crate) fn tag(mut self, tag: &'static str) -> Self {
        self.about.tag = tag;
        self
    }

    pub(crate) fn query<T: JsonSchema>(mut self) -> Self {
        self.about.query = Some(T::json_schema);
        self
    }

    pub(crate) fn header(mut self, header: Header) -> Self {
        self.about.headers.push(header);
        self
    }

    pub(crate) fn body<T: JsonSchema>(mut self) -> Self {
        self.about.body = Some(Body::Json(SchemaGenerator::subschema_for::<T>));
        self
    }

    pub(crate) fn stream(mut self, kind: &'static str) -> Self {
        self.about.body = Some(Body::Stream(kind));
        self
    }

    pub(crate) fn example(
        mut self,
        name: &'static str,
        summary: &'static str,
        value: Value,
    ) -> Self {
        self.about.examples.push((name, summary, value));
        self
    }

    pub(crate) fn json<T: JsonSchema>(self, status: u16, description: &'static str) -> Self {
        self.response(status, description, Content::Json(SchemaGenerator::subschema_for::<T>))
    }

    pub(crate) fn events<T: JsonSchema>(self, description: &'static str) -> Self {
        self.response(200, description, Content::Events(SchemaGenerator::subschema_for::<T>))
    }

    pub(crate) fn bytes(self, kind: &'static str, description: &'static str) -> Self {
        self.response(200, description, Content::Bytes(kind))
    }

    pub(crate) fn part(self, kind: &'static str, description: &'static str) -> Self {
        self.response(206, description, Content::Bytes(kind))
    }

    pub(crate) fn no_content(self, status: u16, description: &'static str) -> Self {
        self.response(status, description, Content::Nothing)
    }

    fn response(mut self, status: u16, description: &'static str, content: Content) -> Self {
        self.about.responses.push(ResponseSpec { status, description, content });
        self
    }

    /// Adds a link to the operation that takes a field of the response as its `task_id`.
    pub(crate) fn link(mut self, name: &'static str, field: &'static str) -> Self {
        self.about.links.push((name, field));
        self
    }

    pub(crate) fn errors(mut self, codes: &[Code]) -> Self {
        self.about.codes.extend(codes);
        self
    }

    pub(crate) fn into_handler(self) -> (&'static str, MethodRouter<S>) {
        (self.about.path, self.handler)
    }

    /// Returns the route with another handler, for a server that can only refuse it.
    pub(crate) fn handled_by<T: 'static, O: Clone + Send + Sync + 'static>(
        self,
        handler: impl Handler<T, O>,
    ) -> Route<O> {
        Route::new(self.about, handler)
    }
}

impl Description {
    pub(super) fn path_names(&self) -> impl Iterator<Item = &'static str> {
        let names = self.path.split('/').filter_map(|part| part.strip_prefix('{'));
        names.filter_map(|part| part.strip_suffix('}'))
    }

    /// Returns all errors of the route, sorted by status and name.
    pub(super) fn all_codes(&self) -> Vec<Code> {
        let mut codes = self.codes.clone();
        match self.access {
            Access::Public => {}
            Access::Token => codes.extend([Code::Unauthenticated, Code::KeysUnavailable]),
            Access::Scope(_) => {
                codes.extend([Code::Unauthenticated, Code::KeysUnavailable, Code::Forbidden]);
            }
        }
        if !EXEMPT_ROUTES.contains(&self.path) {
            codes.push(Code::HostRefused);
        }
        let takes_path = self.path_names().next().is_some();
        if takes_path || self.query.is_some() || self.body.is_some() || !self.headers.is_empty() {
            codes.push(Code::InvalidRequest);
        }
        match self.body {
            Some(Body::Json(_)) => codes.extend([Code::TooLarge, Code::Timeout]),
            Some(Body::Stream(_)) => codes.push(Code::Timeout),
            None => {}
        }
        if self.headers.contains(&Header::IdempotencyKey) {
            codes.push(Code::IdempotencyMismatch);
        }
        codes.sort_by_key(|code| (code.status(), code.name()));
        codes.dedup();
        codes
    }
}
