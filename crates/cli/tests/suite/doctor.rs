//! `carrel doctor`, on this machine and with features of the kernel taken as missing.

use std::os::unix::fs::chown;

use rustix::process::geteuid;
use serde_json::{Value, json};

use crate::{Run, TestRoot};

/// Whoever a workspace belongs to when the tests run as root and a tier must not.
const SOMEBODY: u32 = 2_000_000_000;

/// A fixture whose workspace commands may use in either tier.
fn fixture() -> TestRoot {
    let fixture = TestRoot::new();
    let workspace = fixture.path("workspace");
    std::fs::create_dir(&workspace).unwrap();
    if geteuid().is_root() {
        chown(&workspace, Some(SOMEBODY), Some(SOMEBODY)).unwrap();
        // Others must be able to pass through to their workspace.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(fixture.directory.path(), open).unwrap();
    }
    fixture
}

fn run(fixture: &TestRoot, arguments: &[&str], without: &[&str]) -> Run {
    let masks = without.iter().flat_map(|feature| ["--without", feature]);
    let (before, after) = match arguments.iter().position(|word| *word == "--") {
        Some(dashes) => arguments.split_at(dashes),
        None => (arguments, [].as_slice()),
    };
    let all: Vec<&str> = before.iter().copied().chain(masks).chain(after.iter().copied()).collect();
    let mut command = fixture.bare(&all);
    command.env("XDG_STATE_HOME", fixture.path("state"));
    Run::of(command)
}

fn doctor(fixture: &TestRoot, without: &[&str]) -> (i32, Value) {
    let run = run(fixture, &["doctor", "--json"], without);
    (run.code, serde_json::from_str(&run.stdout).expect(&run.stderr))
}

/// Runs a command with the same features and returns what its result says about the sandbox.
fn sandbox(fixture: &TestRoot, without: &[&str]) -> Result<Value, Value> {
    let workspace = fixture.path("workspace");
    let arguments = ["exec", "--json", "--workspace", workspace.to_str().unwrap(), "--", "true"];
    let run = run(fixture, &arguments, without);
    if run.code == 125 {
        return Err(run.error());
    }
    assert_eq!(run.code, 0, "{}", run.stderr);
    let result: Value = serde_json::from_str(&run.stdout).unwrap();
    Ok(result["sandbox"].clone())
}

fn layer<'a>(diagnosis: &'a Value, name: &str) -> &'a Value {
    let layers = diagnosis["layers"].as_array().unwrap();
    layers.iter().find(|layer| layer["name"] == name).unwrap()
}

fn names(diagnosis: &Value, holds: bool) -> Value {
    let guarantees = diagnosis["guarantees"].as_array().unwrap().iter();
    guarantees.filter(|one| one["holds"] == holds).map(|one| one["name"].clone()).collect()
}

#[test]
fn what_doctor_promises_is_what_a_command_gets() {
    let fixture = fixture();
    for without in [&[][..], &["groups"], &["landlock"], &["user_namespaces"]] {
        let (code, diagnosis) = doctor(&fixture, without);
        assert_eq!(code, 0, "{without:?}: {diagnosis}");
        let sandbox = sandbox(&fixture, without).unwrap();
        assert_eq!(sandbox["tier"], diagnosis["tier"], "{without:?}");
        assert_eq!(sandbox["enforced"], names(&diagnosis, true), "{without:?}");
        assert_eq!(sandbox["not_enforced"], names(&diagnosis, false), "{without:?}");
    }
}

#[test]
fn this_machine_has_every_layer() {
    let (_, diagnosis) = doctor(&fixture(), &[]);
    assert_eq!(diagnosis["tier"], "full");
    assert!(diagnosis["landlock_abi"].as_u64().unwrap() > 0, "{diagnosis}");
    assert!(diagnosis["kernel"].as_str().unwrap().contains('.'));
    for name in ["namespaces", "landlock", "seccomp", "landlock_tier"] {
        assert_eq!(layer(&diagnosis, name)["available"], true, "{name}: {diagnosis}");
    }
}

#[test]
fn without_user_namespaces_the_other_tier_is_used_and_what_it_lacks_is_said() {
    let fixture = fixture();
    let (_, diagnosis) = doctor(&fixture, &["user_namespaces"]);
    let namespaces = layer(&diagnosis, "namespaces");
    assert_eq!((&diagnosis["tier"], &namespaces["available"]), (&json!("landlock"), &json!(false)));
    let detail = namespaces["detail"].as_str().unwrap();
    assert!(detail.contains("Operation not permitted") && detail.contains("max_user_namespaces"));
    let broken = names(&diagnosis, false);
    assert!(broken.as_array().unwrap().contains(&json!("processes_hidden")), "{broken}");
}

#[test]
fn without_landlock_namespaces_hold_alone() {
    let (_, diagnosis) = doctor(&fixture(), &["landlock"]);
    assert_eq!((&diagnosis["tier"], &diagnosis["landlock_abi"]), (&json!("full"), &json!(0)));
    assert_eq!(layer(&diagnosis, "landlock")["available"], false);
    assert_eq!(layer(&diagnosis, "landlock_tier")["available"], false);
}

#[test]
fn without_groups_memory_is_not_limited_as_a_whole() {
    let (_, diagnosis) = doctor(&fixture(), &["groups"]);
    assert_eq!(layer(&diagnosis, "control_groups")["available"], false);
    let broken = names(&diagnosis, false);
    assert!(broken.as_array().unwrap().contains(&json!("memory_limit")), "{broken}");
}

#[test]
fn without_any_boundary_nothing_runs_unless_the_operator_says_so() {
    let fixture = fixture();
    for without in [&["seccomp"][..], &["user_namespaces", "landlock"]] {
        let (code, diagnosis) = doctor(&fixture, without);
        assert_eq!((code, &diagnosis["tier"]), (1, &json!(null)), "{without:?}");
        assert_eq!(names(&diagnosis, true), json!([]), "{without:?}");
        let error = sandbox(&fixture, without).unwrap_err();
        assert_eq!(error["code"], "E_SANDBOX_UNAVAILABLE", "{without:?}: {error}");
        assert!(error["message"].as_str().unwrap().contains("carrel doctor"), "{error}");
    }
    let workspace = fixture.path("workspace");
    let workspace = workspace.to_str().unwrap();
    let off = ["exec", "--json", "--workspace", workspace, "--sandbox", "off", "--", "true"];
    let off = run(&fixture, &off, &["seccomp"]);
    let result: Value = serde_json::from_str(&off.stdout).expect(&off.stderr);
    assert_eq!((off.code, &result["sandbox"]["tier"]), (0, &json!("off")));
    assert_eq!(result["sandbox"]["enforced"], json!([]));
}

#[test]
fn a_tier_that_is_required_and_missing_is_never_replaced() {
    let fixture = fixture();
    let workspace = fixture.path("workspace");
    let workspace = workspace.to_str().unwrap();
    for (tier, missing) in [("full", "user_namespaces"), ("landlock", "landlock")] {
        let arguments = ["exec", "--json", "--workspace", workspace, "--tier", tier, "--", "true"];
        let run = run(&fixture, &arguments, &[missing]);
        assert_eq!(run.code, 125, "{tier}");
        assert_eq!(run.error()["code"], "E_SANDBOX_UNAVAILABLE", "{tier}");
    }
}

#[test]
fn a_person_is_told_the_same_in_lines() {
    let run = run(&fixture(), &["doctor"], &[]);
    for expected in ["tier full", "LAYER", "namespaces", "GUARANTEE", "workspace_only_writes"] {
        assert!(run.stdout.contains(expected), "{}", run.stdout);
    }
}

#[test]
fn the_network_cap_that_applies_without_options_is_shown_and_holds() {
    let fixture = fixture();
    let cases: [(&[&str], &str, &str, &str); 3] = [
        (&[], "", "none", "loopback"),
        (&["user_namespaces"], "", "none", "none"),
        (&[], "network = \"loopback\"\nnetwork_limit = \"full\"\n", "loopback", "full"),
    ];
    for (without, policy, network, cap) in cases {
        std::fs::write(fixture.path("policy.toml"), policy).unwrap();
        let file = fixture.path("policy.toml");
        let options = ["--policy", file.to_str().unwrap()];
        let shown = run(&fixture, &[&["doctor", "--json"], &options[..]].concat(), without);
        let diagnosis: Value = serde_json::from_str(&shown.stdout).expect(&shown.stderr);
        let found = (&diagnosis["network"], &diagnosis["network_cap"]);
        assert_eq!(found, (&json!(network), &json!(cap)), "{without:?} {policy}");
        let lines = run(&fixture, &[&["doctor"], &options[..]].concat(), without);
        let line = format!("network of commands: {network}, at most {cap} if they ask");
        assert!(lines.stdout.contains(&line), "{}", lines.stdout);
        // A tool call may ask for the cap and for nothing above it.
        let workspace = fixture.path("workspace");
        for asked in ["none", "loopback", "full"] {
            let network = format!("network={asked}");
            let call = ["tool", "--workspace", workspace.to_str().unwrap()];
            let words = ["Bash", "command=true", &network];
            let answer = run(&fixture, &[&call[..], &options, &words].concat(), without);
            let order = ["none", "loopback", "full"];
            let allowed = order.iter().position(|one| *one == asked)
                <= order.iter().position(|one| *one == cap);
            assert_eq!(answer.code == 0, allowed, "{asked} {cap}: {}", answer.stderr);
        }
    }
}
