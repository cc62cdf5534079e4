#![expect(clippy::disallowed_methods, reason = "the tests lay out their own files")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use carrel_config::{
    Environment, LoadedPolicy, MAX_POLICY_BYTES, OperatorPolicy, PolicyError, PolicyOrigin, Trust,
};
use carrel_domain::message_of;
use pretty_assertions::assert_eq;
use tempfile::TempDir;

/// A directory with a policy file in it.
struct Scratch {
    directory: TempDir,
    file: PathBuf,
}

impl Scratch {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("policy.toml");
        fs::write(&file, "trust = 'report'\n").expect("a file");
        set_mode(&file, 0o644);
        Self { directory, file }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("an own file");
}

fn load(file: &Path) -> Result<LoadedPolicy, PolicyError> {
    OperatorPolicy::load(Some(file), &Environment::default())
}

fn load_variable(value: &str) -> Result<LoadedPolicy, PolicyError> {
    let environment = Environment::from_pairs([("CARREL_POLICY", value), ("HOME", "/home/anna")]);
    OperatorPolicy::load(None, &environment)
}

fn message(result: Result<LoadedPolicy, PolicyError>) -> String {
    message_of(&result.expect_err("the file is refused"))
}

#[test]
fn a_file_that_only_its_owner_writes_is_read() {
    let scratch = Scratch::new();
    let loaded = load(&scratch.file).unwrap();
    assert_eq!(loaded.policy, OperatorPolicy { trust: Trust::Report, ..Default::default() });
    assert_eq!(loaded.warnings, []);
    let file = loaded.file.unwrap();
    assert_eq!((file.path, file.origin), (scratch.file.clone(), PolicyOrigin::CommandLine));
    assert_eq!(file.real, scratch.file.canonicalize().unwrap());
}

#[test]
fn a_file_or_directory_that_others_may_write_is_refused() {
    for mode in [0o664, 0o646, 0o666] {
        let scratch = Scratch::new();
        set_mode(&scratch.file, mode);
        let path = scratch.file.canonicalize().unwrap();
        let path = path.display();
        let expected = format!(
            "the policy is not safe from other users: {path} has mode {mode:04o}, which lets its group or everyone change it; after a look at what it says, run `chmod go-w {path}`"
        );
        assert_eq!(message(load(&scratch.file)), expected);
    }
    for (mode, refused) in [(0o777, true), (0o775, true), (0o1777, false), (0o755, false)] {
        let scratch = Scratch::new();
        set_mode(scratch.directory.path(), mode);
        let result = load(&scratch.file);
        assert_eq!(result.is_err(), refused, "{mode:o} {result:?}");
    }
}

#[test]
fn a_file_or_directory_of_another_user_is_refused() {
    const OTHER: u32 = 12_345;
    let scratch = Scratch::new();
    carrel_skip::needs!(Root);
    let path = scratch.file.canonicalize().unwrap();
    let path = path.display();
    chown(&scratch.file, Some(OTHER), None).unwrap();
    let expected = format!(
        "the policy is not safe from other users: {path} belongs to user 12345, and must belong to root or to user 0, who runs Carrel; after a look at what it says, run `chown 0 {path}`"
    );
    assert_eq!(message(load(&scratch.file)), expected);
    chown(&scratch.file, Some(0), None).unwrap();
    chown(scratch.directory.path(), Some(OTHER), None).unwrap();
    assert!(matches!(load(&scratch.file), Err(PolicyError::ForeignOwner { owner: OTHER, .. })));
}

#[test]
fn only_a_regular_file_of_some_size_is_read() {
    let scratch = Scratch::new();
    let file = scratch.file.display();
    let missing = scratch.at("missing.toml");
    assert_eq!(
        message(load(&missing)),
        format!(
            "could not read the policy file {} (named by --policy): No such file or directory (os error 2)",
            missing.display()
        )
    );
    let directory = scratch.at("directory");
    fs::create_dir(&directory).unwrap();
    let fifo = scratch.at("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o644.into(), 0)
        .unwrap();
    for path in [directory, fifo] {
        let expected =
            format!("the policy file {} (named by --policy) is not a regular file", path.display());
        assert_eq!(message(load(&path)), expected);
    }
    fs::write(&scratch.file, "#".repeat(MAX_POLICY_BYTES + 1)).unwrap();
    assert_eq!(
        message(load(&scratch.file)),
        format!("{file}: the file is larger than 65536 bytes; shorten it")
    );
}

#[test]
fn the_variable_must_name_a_file_that_exists() {
    for (value, expected) in [
        (
            "/nowhere/policy.toml",
            "could not read the policy file /nowhere/policy.toml (named by CARREL_POLICY): No such file or directory (os error 2)",
        ),
        (
            "~/nowhere.toml",
            "could not read the policy file /home/anna/nowhere.toml (named by CARREL_POLICY): No such file or directory (os error 2)",
        ),
        (
            "policy.toml",
            "the variable CARREL_POLICY holds the relative path policy.toml; write the absolute path",
        ),
        ("", "the variable CARREL_POLICY is set but empty; set it to the policy file, or unset it"),
        (
            "$HOME/policy.toml",
            "the variable CARREL_POLICY cannot be used: \"$HOME/policy.toml\" is not expanded; write ~/policy.toml",
        ),
    ] {
        assert_eq!(message(load_variable(value)), expected);
    }
}

#[test]
fn a_policy_that_cannot_be_read_is_never_passed_over() {
    let scratch = Scratch::new();
    let user = scratch.at("carrel/policy.toml");
    fs::create_dir(user.parent().unwrap()).unwrap();
    symlink("/nowhere", &user).unwrap();
    let environment = Environment::from_pairs([("XDG_CONFIG_HOME", scratch.directory.path())]);
    let error = OperatorPolicy::load(None, &environment).unwrap_err();
    assert!(matches!(error, PolicyError::Unreadable { origin: PolicyOrigin::User, .. }), "{error}");
}

#[test]
fn both_ends_of_a_link_must_be_safe() {
    let scratch = Scratch::new();
    for name in ["open", "closed"] {
        fs::create_dir(scratch.at(name)).unwrap();
        set_mode(&scratch.at(name), if name == "open" { 0o777 } else { 0o755 });
        fs::write(scratch.at(name).join("own.toml"), "").unwrap();
        set_mode(&scratch.at(name).join("own.toml"), 0o644);
    }
    let link = |from: &str, to: &str| {
        symlink(scratch.at(to), scratch.at(from)).unwrap();
        load(&scratch.at(from))
    };
    assert!(link("closed/good.toml", "policy.toml").is_ok());
    for (from, to) in [("closed/bad.toml", "open/own.toml"), ("open/bad.toml", "policy.toml")] {
        let result = link(from, to);
        assert!(matches!(result, Err(PolicyError::WritableByOthers { .. })), "{from} {result:?}");
    }
}

#[test]
fn a_policy_inside_a_workspace_is_seen_whatever_it_is_called() {
    let scratch = Scratch::new();
    for name in ["workspace", "elsewhere"] {
        fs::create_dir(scratch.at(name)).unwrap();
        fs::write(scratch.at(name).join("policy.toml"), "").unwrap();
    }
    symlink(scratch.at("workspace"), scratch.at("alias")).unwrap();
    symlink(scratch.at("elsewhere/policy.toml"), scratch.at("workspace/link.toml")).unwrap();
    symlink(scratch.at("workspace/policy.toml"), scratch.at("elsewhere/link.toml")).unwrap();
    let lies_in = |file: &str, workspace: &str| {
        load(&scratch.at(file)).unwrap().lies_in(&scratch.at(workspace))
    };
    for file in [
        "workspace/policy.toml",
        "alias/policy.toml",
        "workspace/link.toml",
        "alias/link.toml",
        "elsewhere/link.toml",
    ] {
        assert!(lies_in(file, "workspace"), "{file}");
        assert!(lies_in(file, "alias"), "{file}");
    }
    for file in ["elsewhere/policy.toml", "policy.toml"] {
        assert!(!lies_in(file, "workspace"), "{file}");
        assert!(!lies_in(file, "missing"), "{file}");
    }
    let none = LoadedPolicy { policy: OperatorPolicy::default(), file: None, warnings: vec![] };
    assert!(!none.lies_in(Path::new("/")));
}

#[test]
fn a_policy_does_not_let_commands_write_where_it_really_lies() {
    let scratch = Scratch::new();
    let real = scratch.at("real");
    fs::create_dir(&real).unwrap();
    let text = format!("writable = [{:?}]", real.display().to_string());
    fs::write(real.join("policy.toml"), text).unwrap();
    symlink(real.join("policy.toml"), scratch.at("link.toml")).unwrap();
    let message = message(load(&scratch.at("link.toml")));
    assert!(message.contains("commands could then change the policy"), "{message}");
}
