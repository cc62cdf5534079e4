//! Files of any size that are sent whole or in part.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;

use pretty_assertions::assert_eq;

use super::test_environment::{Client, Reply, Service};
use crate::test_environment::is_soak;

const MEBIBYTE: u64 = 1 << 20;

impl Client {
    fn download(&self, path: &str, words: &[&str]) -> Reply {
        self.send(&self.at(&format!("/files/raw?path={path}")), words, None)
    }

    /// Downloads into a file with the words of curl, and returns what curl says.
    fn save(&self, path: &str, to: &std::path::Path, words: &[&str]) -> std::process::Output {
        let address = format!("http://{}{}", self.address, self.at("/files/raw?path="));
        let mut command = std::process::Command::new("curl");
        command.args(["--silent", "--show-error", "--fail", "--max-time", "300", "--header"]);
        command.arg(format!("Authorization: Bearer {}", self.token.as_ref().unwrap()));
        command.args(words).arg("--output").arg(to).arg(format!("{address}{path}"));
        command.output().unwrap()
    }
}

fn in_workspace(service: &Service, client: &Client, name: &str) -> PathBuf {
    service.test_env.path("data").join("workspaces").join(&client.workspace).join(name)
}

#[test]
fn parts_and_validators_are_those_of_the_file() {
    let service = Service::start();
    let client = service.client();
    client.write("a", "0123456789").expect(200);
    let whole = client.download("a", &[]);
    assert_eq!((whole.status, whole.body.as_str()), (200, "0123456789"));
    assert_eq!(whole.header("accept-ranges"), Some("bytes"));
    assert_eq!(whole.header("content-length"), Some("10"));
    // A file that has just changed may change again without a new time.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let tag = client.download("a", &[]).header("etag").unwrap().to_owned();
    assert!(tag.starts_with('"'), "{tag}");

    for (range, status, content_range, body) in [
        ("bytes=2-4", 206, Some("bytes 2-4/10"), "234"),
        ("bytes=8-", 206, Some("bytes 8-9/10"), "89"),
        ("bytes=-3", 206, Some("bytes 7-9/10"), "789"),
        ("bytes=0-99", 206, Some("bytes 0-9/10"), "0123456789"),
        ("bytes=0-1,4-5", 200, None, "0123456789"),
        ("nonsense", 200, None, "0123456789"),
    ] {
        let reply = client.download("a", &["--header", &format!("Range: {range}")]);
        let seen = (reply.status, reply.header("content-range"), reply.body.as_str());
        assert_eq!(seen, (status, content_range, body), "{range}");
    }
    let behind = client.download("a", &["--header", "Range: bytes=10-"]);
    behind.is(416, "E_RANGE_NOT_SATISFIABLE");
    assert_eq!(behind.header("content-range"), Some("bytes */10"));

    let known = client.download("a", &["--header", &format!("If-None-Match: {tag}")]);
    assert_eq!((known.status, known.body.as_str()), (304, ""));
    let resume = ["--header", "Range: bytes=5-", "--header", &format!("If-Range: {tag}")];
    assert_eq!(client.download("a", &resume).body, "56789");
    // The same length and another content: nobody goes on with the wrong half.
    client.write("a", "abcdefghij").expect(200);
    assert_eq!(client.download("a", &resume).body, "abcdefghij");
    let news = client.download("a", &["--header", &format!("If-None-Match: {tag}")]);
    assert_eq!((news.status, news.body.as_str()), (200, "abcdefghij"));

    let head = client.download("a", &["--head"]);
    assert_eq!((head.status, head.header("content-length")), (200, Some("10")));
    client.write("empty", "").expect(200);
    let empty = client.download("empty", &[]);
    assert_eq!((empty.status, empty.header("content-length")), (200, Some("0")));
    client.download("missing", &[]).is(404, "E_NOT_FOUND");
    client.download(".aws/credentials", &[]).is(403, "E_SENSITIVE_PATH");
    client.run("mkdir -p d");
    std::os::unix::fs::symlink("/etc/passwd", in_workspace(&service, &client, "out")).unwrap();
    let fifo = in_workspace(&service, &client, "f");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    client.download("d", &[]).is(422, "E_IS_A_DIRECTORY");
    client.download("f", &[]).is(422, "E_NOT_A_REGULAR_FILE");
    client.download("out", &[]).is(403, "E_SANDBOX_VIOLATION");
}

#[test]
fn a_large_file_goes_up_and_down_whole_and_after_a_cut_without_much_memory() {
    let mebibytes = if is_soak() { 5 * 1024 } else { 300 };
    let service = Service::start();
    let operator = service.operator();
    let asked = serde_json::json!({ "name": "large", "layout": "plain", "quota_gb": 12 });
    let made = operator.post("/api/workspaces", &asked).expect(201);
    let client = service.client_for(made["id"].as_str().unwrap(), "read,write,exec");
    let near = service.test_env.path("large");
    let mut file = std::fs::File::create(&near).unwrap();
    for number in 0..mebibytes {
        let line = format!("{number:015}\n");
        file.write_all(&line.as_bytes().repeat(1 << 16)).unwrap();
    }
    drop(file);
    let meter = service.meter();
    let address = format!("http://{}{}", client.address, client.at("/files/raw?path=large"));
    let sent = std::process::Command::new("curl")
        .args(["--silent", "--show-error", "--fail", "--max-time", "600", "--header"])
        .arg(format!("Authorization: Bearer {}", client.token.as_ref().unwrap()))
        .arg("--upload-file")
        .args([near.as_os_str(), address.as_ref()])
        .output()
        .unwrap();
    assert!(sent.status.success(), "{sent:?}");

    let back = service.test_env.path("back");
    // A first try is cut off in the middle, and the second goes on there.
    let cut = mebibytes / 3 * MEBIBYTE + 12_345;
    let range = format!("0-{}", cut - 1);
    let part = client.save("large", &back, &["--range", &range]);
    assert!(part.status.success(), "{part:?}");
    assert_eq!(std::fs::metadata(&back).unwrap().len(), cut);
    let rest = client.save("large", &back, &["--continue-at", "-"]);
    assert!(rest.status.success(), "{rest:?}");
    let same = std::process::Command::new("cmp").args([&near, &back]).output().unwrap();
    assert!(same.status.success(), "{same:?}");
    meter.shows_little();
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_ends_the_connection() {
    let service = Service::start();
    let client = service.client();
    client.write("big", "").expect(200);
    let place = in_workspace(&service, &client, "big");
    let file = std::fs::File::options().write(true).open(&place).unwrap();
    file.set_len(64 << 20).unwrap();
    let mut stream = TcpStream::connect(client.address).unwrap();
    let head = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        client.at("/files/raw?path=big"),
        client.address,
        client.token.as_ref().unwrap()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut some = vec![0; 1 << 16];
    stream.read_exact(&mut some).unwrap();
    assert!(some.starts_with(b"HTTP/1.1 200"));
    file.set_len(1 << 20).unwrap();
    let mut rest = Vec::new();
    // The connection ends, in order or by a reset, before all that was announced has come.
    let _ = stream.read_to_end(&mut rest);
    assert!((some.len() + rest.len()) < 64 << 20, "{}", rest.len());
    assert_eq!(client.download("big", &["--range", "0-3"]).body, "\0\0\0\0");
}
