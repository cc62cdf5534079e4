//! Generation of the `OpenAPI` document.
//!
//! The schemas of the wire types are completed with what only a server knows: the hosts that repositories may
//! come from, and the operations of the git tool.

use carrel_tools::{ToolGroup, ToolSelection};
use carrel_wire::pattern::{CREDENTIAL_NAME, HOSTS_PLACEHOLDER};
use serde_json::{Map, Value, json};

use super::responses::{envelope, responses};
use super::route::{Access, Body, Description, Header, Route, SchemaFn};
use super::schemas::{Schemas, tidy};
use crate::auth::{BURST, REQUESTS_PER_SECOND};
use crate::idempotency::MAX_KEY_CHARS;
use crate::limits::{
    BODY_READ_TIMEOUT, MAX_CONCURRENT_WORK, MAX_JSON_BODY, MAX_STREAMS_PER_WORKSPACE, MAX_UPLOADS,
};
use crate::routes::{table, tool_names};

const TAGS: [(&str, &str); 8] = [
    ("tasks", "Queued work: submit, list, follow and cancel it."),
    ("workspaces", "Directories for pieces of work, their credentials and usage."),
    ("files", "The files of a workspace."),
    ("snapshots", "Recorded states of a workspace."),
    ("commands", "Commands in a workspace, in a kernel sandbox."),
    ("tools", "All tools, each callable by its name."),
    ("server", "The server itself."),
    (
        "conductor",
        "The API of `carrel run --port`: the state of its issues, and commands for them. Tokens are \
                 those of its data directory, for all workspaces.",
    ),
];

/// Returns the document of a server that clones from these hosts.
pub fn document(hosts: &[String]) -> Value {
    let (mut schemas, mut paths) = (Schemas::new(), Map::new());
    let routes = table();
    for Route { about: route, .. } in &routes {
        let operation = operation(route, &mut schemas);
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        item[route.method.as_str().to_lowercase()] = operation;
    }
    let mut components = schemas.components();
    components.insert("Error".to_owned(), envelope(&routes));
    components["GitRequest"]["properties"]["operation"] = git_operations();
    components.sort_keys();
    let tags = TAGS.map(|(name, description)| json!({ "name": name, "description": description }));
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Carrel",
            "version": env!("CARGO_PKG_VERSION"),
            "description": introduction(),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "bearerFormat": "JWT",
                    "description": "From `carrel token new`.",
                },
            },
        },
    });
    let escaped: Vec<_> = hosts.iter().map(|host| host.replace('.', r"\.")).collect();
    tidy(&mut document, HOSTS_PLACEHOLDER, &format!("({})", escaped.join("|")));
    document
}

/// Returns the schema of the git tool's operations. The wire type cannot list them: it knows no tools.
fn git_operations() -> Value {
    let mut tools = carrel_tools::definitions(ToolSelection::of(&[ToolGroup::Workspace]));
    let git = tools.find(|tool| tool.about.name == "workspace_git").expect("git is a tool");
    git.input_schema()["properties"]["operation"].clone()
}

fn introduction() -> String {
    format!(
        "Workspaces for agents as a service. Every error has the schema `Error`. A body is JSON of at \
                 most {MAX_JSON_BODY} that arrives within {} seconds; unknown fields are refused. Each \
                 workspace may send {REQUESTS_PER_SECOND} requests per second, {BURST} at once after a pause, \
                 and have {MAX_STREAMS_PER_WORKSPACE} open event streams; {MAX_CONCURRENT_WORK} commands, \
                 searches and writes run at the same time, and {MAX_UPLOADS} uploads are received. Requests \
                 above a limit are answered with 429 and `Retry-After`.",
        BODY_READ_TIMEOUT.as_secs()
    )
}

fn operation(route: &Description, schemas: &mut Schemas) -> Value {
    let mut parameters: Vec<_> = route.path_names().map(path_parameter).collect();
    parameters.extend(route.query.map(|shape| schemas.parameters(shape)).into_iter().flatten());
    parameters.extend(route.headers.iter().map(|header| header_parameter(*header)));
    let mut operation = json!({
        "operationId": route.name,
        "tags": [route.tag],
        "summary": route.summary,
        "description": format!("{}{}", route.text, access(route.access)),
        "security": match route.access {
            Access::Public => json!([]),
            Access::Token | Access::Scope(_) => json!([{ "token": [] }]),
        },
    });
    if !parameters.is_empty() {
        operation["parameters"] = json!(parameters);
    }
    if let Some(body) = route.body {
        // An upload without a body is an empty file; a JSON route needs one.
        let (required, content) = match body {
            Body::Json(shape) => {
                (true, json!({ "application/json": json_body(route, shape, schemas) }))
            }
            Body::Stream(kind) => (false, json!({ kind: {} })),
        };
        operation["requestBody"] = json!({ "required": required, "content": content });
    }
    operation["responses"] = Value::Object(responses(route, schemas));
    operation
}

fn json_body(route: &Description, shape: SchemaFn, schemas: &mut Schemas) -> Value {
    let mut content = json!({ "schema": schemas.body(shape) });
    for (name, summary, value) in &route.examples {
        content["examples"][name] = json!({ "summary": summary, "value": value });
    }
    content
}

fn access(access: Access) -> String {
    match access {
        Access::Public => " Needs no token.".to_owned(),
        Access::Token => " Needs a token.".to_owned(),
        Access::Scope(scope) => format!(" Needs the scope `{scope}`."),
    }
}

fn path_parameter(name: &'static str) -> Value {
    let (description, schema) = match name {
        "task_id" => ("The task.", json!({ "type": "string", "format": "uuid" })),
        "workspace_id" => ("The workspace.", json!({ "type": "string", "format": "uuid" })),
        "credential" => {
            ("The credential.", json!({ "type": "string", "pattern": CREDENTIAL_NAME }))
        }
        "issue" => (
            "The identifier of the issue, or the id that the tracker gave it.",
            json!({ "type": "string", "minLength": 1 }),
        ),
        "run" => ("The number of the run.", json!({ "type": "integer", "minimum": 0 })),
        _ => ("The name of a tool.", json!({ "type": "string", "enum": tool_names() })),
    };
    json!({ "name": name, "in": "path", "required": true, "description": description, "schema": schema })
}

fn header_parameter(header: Header) -> Value {
    let (name, description, schema) = match header {
        Header::IdempotencyKey => (
            "Idempotency-Key",
            "The same key and body get the first reply again, for 24 hours.",
            json!({
                "type": "string",
                "minLength": 1,
                "maxLength": MAX_KEY_CHARS,
                "pattern": "^[\\t -~]*[!-~][\\t -~]*$",
            }),
        ),
        Header::Workspace => (
            "X-Workspace-ID",
            "The workspace, if the token covers several.",
            json!({ "type": "string", "format": "uuid" }),
        ),
        Header::GitHubToken => (
            "X-GitHub-Token",
            "A token for GitHub. It is used for this request and not stored.",
            json!({ "type": "string", "pattern": "^[!-~]+$" }),
        ),
        Header::Range => (
            "Range",
            "The bytes that are wanted, as `bytes=FIRST-LAST`, `bytes=FIRST-` or `bytes=-LENGTH`. One that is \
             malformed or names several parts asks for the whole file.",
            json!({ "type": "string" }),
        ),
        Header::IfRange => (
            "If-Range",
            "The `ETag` of the content of which a part is wanted; another content is sent whole.",
            json!({ "type": "string" }),
        ),
        Header::IfNoneMatch => (
            "If-None-Match",
            "The `ETag`s of contents that the client has.",
            json!({ "type": "string" }),
        ),
        Header::LastEvent => (
            "Last-Event-ID",
            "The number of the last event that was received: the stream continues after it.",
            json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX }),
        ),
    };
    json!({ "name": name, "in": "header", "required": false, "description": description, "schema": schema })
}
