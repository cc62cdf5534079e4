//! The client crate with a real server: every shape that it reads is one that the server writes.

use carrel_client::{ClientError, Credentials, WorkspaceClient, agent_reply};
use carrel_domain::{ByteSize, Code, Coded as _, Secret, WorkspaceId};
use carrel_wire::{ExecRequest, GitRequest, NewWorkspace, SearchQuery, ToolArguments};
use pretty_assertions::assert_eq;
use serde_json::json;

use super::test_environment::{Client, Service};

fn typed(client: &Client) -> WorkspaceClient {
    let server = format!("http://{}", client.address).parse().unwrap();
    let token = Secret::new(client.token.as_deref().unwrap());
    WorkspaceClient::new(server, &Credentials::Bearer(token))
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work)
}

#[test]
fn workspaces_files_commands_and_tools_are_read_with_their_types() {
    let service = Service::start();
    let client = typed(&service.operator());
    wait(async {
        let asked = NewWorkspace::named("mine");
        let made =
            client.clone().with_idempotency_key("make").create_workspace(&asked).await.unwrap();
        let again =
            client.clone().with_idempotency_key("make").create_workspace(&asked).await.unwrap();
        assert_eq!(made, again);
        let id = made.id;
        let listed = client.workspaces(None).await.unwrap();
        assert_eq!((listed.workspaces.len(), listed.workspaces[0].id), (1, id));
        assert_eq!(client.workspace(id).await.unwrap().name, "mine");
        assert_eq!(client.usage(id).await.unwrap().id, id);

        let path = "a b/ü&c=d.txt";
        assert_eq!(client.write_file(id, path, "one\ntwo\n").await.unwrap().size_bytes, 8);
        assert_eq!(client.read_file(id, path).await.unwrap().file.content, "one\ntwo\n");
        let raw = client.read_raw(id, path, ByteSize::kib(1)).await.unwrap();
        assert_eq!(&raw[..], b"one\ntwo\n");
        let files = client.list_files(id, "a b").await.unwrap();
        assert_eq!(files.entries[0].path, path);
        let search = SearchQuery { pattern: Some("t.o".to_owned()), ..SearchQuery::default() };
        assert_eq!(client.search_files(id, &search).await.unwrap().matches[0].line, 2);

        let exec = ExecRequest { command: "echo hi; exit 3".to_owned(), ..ExecRequest::default() };
        let done = client.exec(id, &exec).await.unwrap();
        assert_eq!((done.exit_code, done.stdout.as_str(), done.success), (3, "hi\n", false));
        let git = GitRequest { operation: "status".to_owned(), ..GitRequest::default() };
        let outside = client.git(id, &git).await;
        assert!(outside.is_err() || !outside.unwrap().result.success, "there is no repository");
        assert!(client.tools().await.unwrap().tools.len() > 5);
        let arguments = json!({ "path": "a b" });
        let arguments = ToolArguments(arguments.as_object().unwrap().clone());
        let called = json!(client.call_tool(id, "LS", &arguments).await.unwrap()).to_string();
        assert!(called.contains("ü&c=d.txt"), "{called}");

        client.remove_workspace(id).await.unwrap();
        let error = client.workspace(id).await.unwrap_err();
        assert_eq!(error.code(), Code::WorkspaceNotFound);
        let ClientError::Api(refusal) = &error else { panic!("{error:?}") };
        assert_eq!(refusal.status, 404);
        let told = agent_reply("read_file", Err(error));
        assert_eq!((&told["success"], &told["status_code"]), (&json!(false), &json!(404)));
        let foreign = client.workspace(WorkspaceId::generate()).await.unwrap_err();
        assert_eq!(foreign.code(), Code::WorkspaceNotFound);
    });
}
