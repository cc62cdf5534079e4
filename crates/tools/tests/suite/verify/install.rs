//! Installations of dependencies, with real package managers.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use carrel_config::OperatorPolicy;
use carrel_domain::Network;
use pretty_assertions::assert_eq;
use serde_json::json;

use super::{could_not_run, section};
use crate::test_environment::{Setting, TestEnvironment};

/// A machine whose operator allows every network.
fn online() -> TestEnvironment {
    let policy = OperatorPolicy { network_limit: Some(Network::Full), ..OperatorPolicy::default() };
    TestEnvironment::with(Setting { policy, ..Setting::default() })
}

/// A registry of npm with the package `probe-dep`, on the loopback of the host. Returns its address.
fn npm_registry() -> String {
    let directory = tempfile::tempdir().unwrap();
    let package = directory.path().join("package");
    std::fs::create_dir(&package).unwrap();
    let manifest = r#"{"name":"probe-dep","version":"1.0.0","main":"index.js"}"#;
    std::fs::write(package.join("package.json"), manifest).unwrap();
    std::fs::write(package.join("index.js"), "module.exports = 'installed';\n").unwrap();
    let archive = directory.path().join("probe-dep.tgz");
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&archive).arg("-C").arg(directory.path()).arg("package");
    assert!(tar.status().unwrap().success());
    let archive = std::fs::read(archive).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let version = json!({
        "name": "probe-dep",
        "version": "1.0.0",
        "dist": { "tarball": format!("{address}/probe-dep/-/probe-dep-1.0.0.tgz") },
    });
    let metadata = json!({
        "name": "probe-dep",
        "dist-tags": { "latest": "1.0.0" },
        "versions": { "1.0.0": version },
    });
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            answer(&stream.unwrap(), metadata.to_string().as_bytes(), &archive);
        }
    });
    address
}

/// Answers one request and closes the connection.
fn answer(mut stream: &TcpStream, metadata: &[u8], archive: &[u8]) {
    let mut lines = BufReader::new(stream).lines();
    let Some(Ok(request)) = lines.next() else { return };
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
    let (status, body) = match request.split(' ').nth(1).unwrap_or_default() {
        "/probe-dep" => ("200 OK", metadata),
        "/probe-dep/-/probe-dep-1.0.0.tgz" => ("200 OK", archive),
        _ => ("404 Not Found", &b"{}"[..]),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn install_runs_the_package_manager_and_lists_the_files_it_changed() {
    let test_env = online();
    test_env.put(".npmrc", format!("registry={}\n", npm_registry()));
    test_env.put("package.json", r#"{"name":"probe","dependencies":{"probe-dep":"1.0.0"}}"#);
    let installed = test_env.call("install", json!({})).await;
    let text = installed.text();
    assert!(!installed.is_error, "{text}");
    assert_eq!(section(&installed)["verdict"], "passed", "{text}");
    assert_eq!(section(&installed)["changed_files"], json!(["package-lock.json"]), "{text}");
    assert_eq!(section(&installed)["command"], json!(["npm", "install"]));
    assert!(text.starts_with("node in .: passed\n"), "{text}");
    assert!(text.contains("changed files: package-lock.json\n"), "{text}");
    assert!(text.ends_with("exit: 0\n"), "{text}");
    assert!(test_env.has("node_modules/probe-dep/index.js"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_that_the_cap_does_not_allow_is_refused_before_it_runs() {
    let test_env = TestEnvironment::new();
    test_env.put("package.json", r#"{"name":"probe","dependencies":{"probe-dep":"1.0.0"}}"#);
    let began = Instant::now();
    let (code, text) = test_env.refusal("install", json!({})).await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(
        (code.as_str(), text.as_str()),
        (
            "E_NETWORK_REFUSED",
            "`npm install` downloads packages: network full denied: the default allows loopback at \
             most; the operator decides"
        )
    );
    assert!(!test_env.has("package-lock.json") && !test_env.has("node_modules"));
    let violations = test_env.events();
    let violations =
        violations.iter().filter(|event| event["event"] == "lifecycle.sandbox.violation");
    let told: Vec<_> = violations.map(|event| (&event["tool"], &event["code"])).collect();
    assert_eq!(told, [(&json!("install"), &json!("E_NETWORK_REFUSED"))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_without_an_install_step_gets_words() {
    let test_env = TestEnvironment::new();
    test_env.put("Makefile", "test:\n\ttrue\n");
    let answer = test_env.call("install", json!({})).await;
    assert!(!answer.is_error, "{}", answer.text());
    assert_eq!(
        could_not_run(&answer),
        "the project has no install step; `install` in ./carrel.toml would name one"
    );
    assert!(answer.text().contains("the project has no install step"), "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_that_needs_no_network_runs_without_one_and_its_denials_are_in_the_text() {
    let test_env = TestEnvironment::new();
    test_env.put("Makefile", "test:\n\ttrue\n");
    let install = |line: &str| {
        let settings = format!("[profile]\ninstall = {}\n", json!(["bash", "-c", line]));
        test_env.put("carrel.toml", settings);
    };
    install("echo made > made; exit 0");
    let made = test_env.call("install", json!({})).await;
    assert_eq!(section(&made)["verdict"], "passed", "{}", made.text());
    assert_eq!(section(&made)["changed_files"], json!(["made"]), "{}", made.text());

    install("echo half > half; exec 3<>/dev/tcp/192.0.2.1/80");
    let denied = test_env.call("install", json!({})).await;
    assert_eq!(section(&denied)["verdict"], "failed", "{}", denied.text());
    assert!(denied.text().contains("the operator decides"), "{}", denied.text());
    assert!(!denied.text().contains("network="), "{}", denied.text());
    assert_ne!(section(&denied)["denials"], json!([]), "{}", denied.text());
    assert!(denied.text().contains("changed files: half\n"), "{}", denied.text());

    install("sleep 60");
    let late = test_env.call("install", json!({ "timeout": 1 })).await;
    assert_eq!(could_not_run(&late), "timed out after 1s", "{}", late.text());

    install("seq 100000; exit 3");
    let long = test_env.call("install", json!({})).await;
    assert_eq!(section(&long)["verdict"], "failed");
    let length = long.text().len();
    assert!((20_000..35_000).contains(&length), "{length}");
    assert!(long.text().ends_with("exit: 3\n"), "{}", &long.text()[length - 200..]);
}

/// Tells whether a registry answers, so that a test of real packages can run.
fn is_reachable(host: &str) -> bool {
    let reached = Command::new("curl")
        .args(["-sSo", "/dev/null", "--max-time", "10", &format!("https://{host}/")])
        .status();
    reached.is_ok_and(|status| status.success())
}

#[tokio::test(flavor = "multi_thread")]
async fn real_packages_are_installed_from_their_registries() {
    type Files = &'static [(&'static str, &'static str)];
    let projects: [(&str, Files, &str, serde_json::Value); 3] = [
        (
            "registry.npmjs.org",
            &[("package.json", r#"{"name":"probe","dependencies":{"is-odd":"3.0.1"}}"#)],
            "node",
            json!(["package-lock.json"]),
        ),
        (
            "index.crates.io",
            &[
                (
                    "Cargo.toml",
                    "[package]\nname = \"probe\"\nversion = \"0.1.0\"\n[dependencies]\nitoa = \"1\"\n",
                ),
                ("src/lib.rs", ""),
            ],
            "rust",
            json!(["Cargo.lock"]),
        ),
        ("pypi.org", &[("requirements.txt", "six==1.16.0\n")], "python", json!([])),
    ];
    for (host, files, language, changed) in projects {
        if !is_reachable(host) {
            carrel_skip::unavailable(host);
            continue;
        }
        let test_env = online();
        for (path, text) in files {
            test_env.put(path, text);
        }
        let installed = test_env.call("install", json!({})).await;
        let text = installed.text();
        assert_eq!(section(&installed)["language"], language, "{text}");
        assert_eq!(section(&installed)["verdict"], "passed", "{text}");
        assert_eq!(section(&installed)["changed_files"], changed, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_installed_is_there_for_commands_without_a_network() {
    if !is_reachable("index.crates.io") {
        return carrel_skip::unavailable("index.crates.io");
    }
    let test_env = online();
    // A version that is in no cache of the operator.
    test_env.put(
        "Cargo.toml",
        "[package]\nname = \"probe\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
         [dependencies]\nitoa = \"=0.4.7\"\n",
    );
    test_env.put(
        "src/lib.rs",
        "#[test]\nfn one() {\n    assert_eq!(itoa::Buffer::new().format(1), \"1\");\n}\n",
    );
    let installed = test_env.call("install", json!({})).await;
    assert_eq!(section(&installed)["verdict"], "passed", "{}", installed.text());
    let tested = test_env.call("run_tests", json!({})).await;
    assert_eq!(section(&tested)["verdict"], "passed", "{}", tested.text());
}
