//! A route: what it is called, takes and answers, and what handles it.

use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{self, MethodFilter, MethodRouter};
use carrel_domain::{Code, TokenScope};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use crate::state::Api;

/// Makes the schema of a type.
pub(super) type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

/// Headers that routes read, beside the one with the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// What makes a repeated request known as one.
    IdempotencyKey,
    /// The workspace, if the token covers several.
    Workspace,
    /// The last event that a reader has seen.
    LastEvent,
    /// A token for GitHub.
    GitHubToken,
}

/// Authenticated may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Anybody.
    Public,
    /// Whoever has a token.
    Token,
    /// Whoever has a token with this scope.
    Scope(TokenScope),
}

/// What a body consists of.
#[derive(Clone, Copy)]
pub(super) enum Body {
    Json(SchemaFn),
    Stream(&'static str),
}

/// What an answer consists of.
#[derive(Clone, Copy)]
pub(super) enum Content {
    Nothing,
    Json(SchemaFn),
    /// Events, each of this shape.
    Events(SchemaFn),
    Bytes(&'static str),
}

/// An answer to a request that was granted.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) description: &'static str,
    pub(super) content: Content,
}

/// A body for people to start from.
pub(crate) struct Example {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) value: Value,
}

/// A route.
pub(crate) struct Route<S = Api> {
    pub(super) method: Method,
    pub(super) path: &'static str,
    handler: MethodRouter<S>,
    pub(super) tag: &'static str,
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) description: &'static str,
    pub(super) access: Access,
    pub(super) query: Option<SchemaFn>,
    pub(super) headers: Vec<Header>,
    pub(super) body: Option<Body>,
    pub(super) examples: Vec<Example>,
    pub(super) answers: Vec<Answer>,
    /// Routes that an answer leads to, by their names, and the field of the answer with the task.
    pub(super) links: Vec<(&'static str, &'static str)>,
    pub(super) codes: Vec<Code>,
}

impl<S: Clone + Send + Sync + 'static> Route<S> {
    pub(crate) fn get<T: 'static>(path: &'static str, handler: impl Handler<T, S>) -> Self {
        Self::new(Method::GET, path, routing::get(handler))
    }

    pub(crate) fn post<T: 'static>(path: &'static str, handler: impl Handler<T, S>) -> Self {
        Self::new(Method::POST, path, routing::post(handler))
    }

    pub(crate) fn put<T: 'static>(path: &'static str, handler: impl Handler<T, S>) -> Self {
        Self::new(Method::PUT, path, routing::put(handler))
    }

    pub(crate) fn delete<T: 'static>(path: &'static str, handler: impl Handler<T, S>) -> Self {
        Self::new(Method::DELETE, path, routing::delete(handler))
    }

    fn new(method: Method, path: &'static str, handler: MethodRouter<S>) -> Self {
        Self {
            method,
            path,
            handler,
            tag: "",
            name: "",
            summary: "",
            description: "",
            access: Access::Token,
            query: None,
            headers: Vec::new(),
            body: None,
            examples: Vec::new(),
            answers: Vec::new(),
            links: Vec::new(),
            codes: Vec::new(),
        }
    }

    /// Gives it a name for programs and one for people.
    pub(crate) fn name(self, name: &'static str, summary: &'static str) -> Self {
        Self { name, summary, ..self }
    }

    /// Says more about it.
    pub(crate) fn description(self, description: &'static str) -> Self {
        Self { description, ..self }
    }

    /// Puts it with_errors its like.
    pub(crate) fn tag(self, tag: &'static str) -> Self {
        Self { tag, ..self }
    }

    /// Lets anybody ask.
    pub(crate) fn public(self) -> Self {
        Self { access: Access::Public, ..self }
    }

    /// Names the scope that it needs.
    pub(crate) fn scope(self, scope: TokenScope) -> Self {
        Self { access: Access::Scope(scope), ..self }
    }

    /// Names what is read from behind the `?`.
    pub(crate) fn query<T: JsonSchema>(self) -> Self {
        Self { query: Some(T::json_schema), ..self }
    }

    /// Names a header that is read.
    pub(crate) fn header(mut self, header: Header) -> Self {
        self.headers.push(header);
        self
    }

    /// Names the body.
    pub(crate) fn body<T: JsonSchema>(self) -> Self {
        Self { body: Some(Body::Json(SchemaGenerator::subschema_for::<T>)), ..self }
    }

    /// Names the kind of a body that is taken as it comes.
    pub(crate) fn stream(self, kind: &'static str) -> Self {
        Self { body: Some(Body::Stream(kind)), ..self }
    }

    /// Shows a body.
    pub(crate) fn example(mut self, example: Example) -> Self {
        self.examples.push(example);
        self
    }

    /// Names an answer in JSON.
    pub(crate) fn json<T: JsonSchema>(self, status: u16, description: &'static str) -> Self {
        self.answer(status, description, Content::Json(SchemaGenerator::subschema_for::<T>))
    }

    /// Names an answer that is a stream of events.
    pub(crate) fn events<T: JsonSchema>(self, description: &'static str) -> Self {
        self.answer(200, description, Content::Events(SchemaGenerator::subschema_for::<T>))
    }

    /// Names an answer of another kind.
    pub(crate) fn bytes(self, kind: &'static str, description: &'static str) -> Self {
        self.answer(200, description, Content::Bytes(kind))
    }

    /// Names an answer without a body.
    pub(crate) fn no_content(self, status: u16, description: &'static str) -> Self {
        self.answer(status, description, Content::Nothing)
    }

    fn answer(mut self, status: u16, description: &'static str, content: Content) -> Self {
        self.answers.push(Answer { status, description, content });
        self
    }

    /// Names a route that the answer leads to: it takes what a field of the answer holds as the task.
    pub(crate) fn link(mut self, name: &'static str, field: &'static str) -> Self {
        self.links.push((name, field));
        self
    }

    /// Names errors beyond those that follow from what it takes.
    pub(crate) fn errors(mut self, codes: &[Code]) -> Self {
        self.codes.extend(codes);
        self
    }

    /// Returns the names in the path.
    pub(super) fn path_names(&self) -> impl Iterator<Item = &'static str> {
        let names = self.path.split('/').filter_map(|part| part.strip_prefix('{'));
        names.filter_map(|part| part.strip_suffix('}'))
    }

    /// Returns every error that it can answer with, in the order of their numbers.
    pub(super) fn all_codes(&self) -> Vec<Code> {
        let mut codes = self.codes.clone();
        match self.access {
            Access::Public => {}
            Access::Token => codes.extend([Code::Unauthenticated, Code::KeysUnavailable]),
            Access::Scope(_) => {
                codes.extend([Code::Unauthenticated, Code::KeysUnavailable, Code::Forbidden]);
            }
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

    /// Returns where it is and what handles it, for a router.
    pub(crate) fn into_handler(self) -> (&'static str, MethodRouter<S>) {
        (self.path, self.handler)
    }

    /// Returns the same route with another handler, for a server that cannot do what it asks.
    pub(crate) fn handled_by<T: 'static, O: Clone + Send + Sync + 'static>(
        self,
        handler: impl Handler<T, O>,
    ) -> Route<O> {
        let method = MethodFilter::try_from(self.method.clone());
        let filter = method.expect("routes are made with usual methods");
        Route {
            handler: routing::on(filter, handler),
            method: self.method,
            path: self.path,
            tag: self.tag,
            name: self.name,
            summary: self.summary,
            description: self.description,
            access: self.access,
            query: self.query,
            headers: self.headers,
            body: self.body,
            examples: self.examples,
            answers: self.answers,
            links: self.links,
            codes: self.codes,
        }
    }
}
