use carrel_domain::{Network, Tier, WorkspaceAccess};
use pretty_assertions::assert_eq;

use super::{check, context, host, inferred, plan, policy};
use crate::denial::{Certainty, Denial, DenialClass, explain};
use crate::plan::Plan;
use crate::policy::Policy;

#[test]
fn what_is_not_in_the_root_directory_is_not_visible() {
    let full = plan(Tier::Full, Network::None);
    check(
        &full,
        &[
            (
                "cat: /data/x.csv: No such file or directory",
                &[r#"not visible | /data/x.csv | ENOENT | readable = ["/data/x.csv"]"#],
            ),
            (
                "ls: cannot access '/home/ann/lib': No such file or directory",
                &[r#"not visible | /home/ann/lib | ENOENT | readable = ["/home/ann/lib"]"#],
            ),
            (
                "FileNotFoundError: [Errno 2] No such file or directory: '/data/a b'",
                &[r#"not visible | /data/a b | ENOENT | readable = ["/data/a b"]"#],
            ),
            (
                "Error: ENOENT: no such file or directory, open '/data/x'",
                &[r#"not visible | /data/x | ENOENT | readable = ["/data/x"]"#],
            ),
            (
                "sh: 1: cannot open /data/x: No such file",
                &[r#"not visible | /data/x | ENOENT | readable = ["/data/x"]"#],
            ),
            (
                "sh: 1: cannot create /data/out/x: Directory nonexistent",
                &[r#"not visible | /data/out/x | ENOENT | writable = ["/data/out/x"]"#],
            ),
            (
                "bash: ./run: /data/py/bin/python: bad interpreter: No such file or directory",
                &[
                    r#"not visible | /data/py/bin/python | ENOENT | readable = ["/data/py/bin/python"]"#,
                ],
            ),
            (
                "open /data/x: no such file or directory",
                &[r#"not visible | /data/x | ENOENT | readable = ["/data/x"]"#],
            ),
            (
                "java.nio.file.NoSuchFileException: /data/x",
                &[r#"not visible | /data/x | ENOENT | readable = ["/data/x"]"#],
            ),
            (
                "mkdir: cannot create directory ‘/data/new’: Read-only file system",
                &[r#"not visible | /data/new | EROFS | writable = ["/data/new"]"#],
            ),
            (
                "cat: ../../../../data/y: No such file or directory",
                &[r#"not visible | /data/y | ENOENT | readable = ["/data/y"]"#],
            ),
            // Visible, so it is simply not there.
            ("cat: /usr/share/x: No such file or directory", &[]),
            ("cat: /bin/x: No such file or directory", &[]),
            ("cat: x: No such file or directory", &[]),
            ("cat: /srv/root/ws/x: No such file or directory", &[]),
            ("cat: /tmp/x: No such file or directory", &[]),
            ("cat: /var/tmp/x: No such file or directory", &[]),
            ("cat: /data/in/x: No such file or directory", &[]),
            ("timeout: failed to run command ‘ruby’: No such file or directory", &[]),
            ("bash: line 1: foo: command not found", &[]),
        ],
    );
}

#[test]
fn without_a_root_of_its_own_the_host_says_what_is_missing() {
    let landlock = plan(Tier::Landlock, Network::None);
    check(
        &landlock,
        &[
            ("cat: /data/x.csv: No such file or directory", &[]),
            ("touch: cannot touch '/data/x': Read-only file system", &[]),
            (
                "cat: /data/x.csv: Permission denied",
                &[r#"not visible | /data/x.csv | EACCES | readable = ["/data/x.csv"]"#],
            ),
            (
                "mkdir: cannot create directory ‘/data/x’: Permission denied",
                &[r#"not visible | /data/x | EACCES | writable = ["/data/x"]"#],
            ),
            ("cat: /bin/x: Permission denied", &[]),
            ("rm: cannot remove '/data/cache/x': Permission denied", &[]),
            (
                "touch: cannot touch '/tmp/x': Permission denied",
                &["not visible | /tmp/x | EACCES | -"],
            ),
            (
                "touch: cannot touch '/bin/x': Permission denied",
                &["read-only: /usr | /bin/x | EACCES | -"],
            ),
            ("bash: line 1: .git/hooks/pre-commit: Permission denied", &[]),
        ],
    );
}

#[test]
fn writing_to_what_can_only_be_read_is_denied() {
    let full = plan(Tier::Full, Network::None);
    let granted: &[&str] =
        &[r#"read-only: /data/in | /data/in/x | EROFS | writable = ["/data/in/x"]"#];
    check(
        &full,
        &[
            ("touch: cannot touch '/data/in/x': Read-only file system", granted),
            ("OSError: [Errno 30] Read-only file system: '/data/in/x'", granted),
            ("Error: EROFS: read-only file system, open '/data/in/x'", granted),
            ("fatal: could not create work tree dir '/data/in/x': Read-only file system", granted),
            ("error: could not lock config file /data/in/x: Read-only file system", granted),
            ("fatal: cannot mkdir /data/in/x: Read-only file system", granted),
            ("bash: line 1: /data/in/x: Read-only file system", granted),
            ("/usr/bin/ld: cannot open output file /data/in/x: Read-only file system", granted),
            ("java.io.FileNotFoundException: /data/in/x (Read-only file system)", granted),
            ("mkdir /data/in/x: read-only file system", granted),
            ("error: could not write /data/in/x: Read-only file system (os error 30)", granted),
            ("tar: /data/in/x: Cannot open: Read-only file system", granted),
            ("Read-only file system @ rb_sysopen - /data/in/x (Errno::EROFS)", granted),
            ("cannot open /data/in/x: Read-only file system at -e line 1.", granted),
            (
                "\x1b[1m\x1b[31merror\x1b[0m: could not write /data/in/x: Read-only file system",
                granted,
            ),
            (
                "error: failed to write lock\n\nCaused by:\n  failed to open: /data/in/x\n\nCaused by:\n  Read-only file system (os error 30)",
                granted,
            ),
            (
                "mv: cannot move '/data/in/x' to '/srv/root/ws/x': Permission denied",
                &[r#"read-only: /data/in | /data/in/x | EACCES | writable = ["/data/in/x"]"#],
            ),
            (
                "touch: cannot touch '/usr/x': Read-only file system",
                &["read-only: /usr | /usr/x | EROFS | -"],
            ),
            (
                "rm: cannot remove '/bin/cat': Permission denied",
                &["read-only: /usr | /bin/cat | EACCES | -"],
            ),
            (
                "tee: /etc/ssl/certs/x.pem: Permission denied",
                &["read-only: /etc/ssl/certs | /etc/ssl/certs/x.pem | EACCES | -"],
            ),
            (
                "chmod: changing permissions of '/usr/bin/cat': Operation not permitted",
                &["read-only: /usr | /usr/bin/cat | EPERM | -"],
            ),
            (
                "bash: line 1: /etc/passwd: Read-only file system",
                &["read-only: /etc/passwd | /etc/passwd | EROFS | -"],
            ),
            (
                "mkdir: cannot create directory '/run/x': Read-only file system",
                &["not visible | /run/x | EROFS | -"],
            ),
            // Written or read: nobody knows, so no line is suggested.
            (
                "PermissionError: [Errno 13] Permission denied: '/data/in/x'",
                &["read-only: /data/in | /data/in/x | EACCES | -"],
            ),
            // Reading, or an ordinary matter of the workspace.
            ("cp: cannot open '/data/in/x' for reading: Permission denied", &[]),
            ("grep: /data/in/x: Permission denied", &[]),
            ("touch: cannot touch '/srv/root/ws/x': Permission denied", &[]),
            ("rm: cannot remove 'x/y': Permission denied", &[]),
            ("touch: cannot touch '/data/cache/x': Permission denied", &[]),
            ("bash: line 1: /dev/null: Permission denied", &[]),
            ("cat: /proc/1/environ: Permission denied", &[]),
        ],
    );
}

#[test]
fn no_line_is_suggested_for_what_must_stay_shut() {
    let full = plan(Tier::Full, Network::None);
    for path in [
        "/etc/shadow",
        "/etc/ssh/ssh_host_rsa_key",
        "/etc/sudoers.d/x",
        "/home/ann/.ssh/id_rsa",
        "/home/ann/.aws/credentials",
        "/home/ann/.netrc",
        "/data/x/.env.production",
        "/data/.carrel/keys",
        "/sys/class/net",
        "/dev/sda",
        "/run/docker.sock",
        "/var/run/docker.sock",
        "/srv/root/other/file",
        "/srv/root/.carrel/keys",
        "/home/ann",
        "/home",
        "/var",
        "/root",
        "/data/\u{fffd}",
    ] {
        let message = format!("cat: {path}: Permission denied");
        let found = inferred(&plan(Tier::Landlock, Network::None), &message);
        assert_eq!(found, [format!("not visible | {path} | EACCES | -")]);
        let found = inferred(&full, &format!("cat: {path}: No such file or directory"));
        assert!(found.iter().all(|line| line.ends_with("| -")), "{found:?}");
    }
}

#[test]
fn a_workspace_named_by_an_operator_has_neighbours_that_can_be_shared() {
    let alone = crate::denial::DenialContext { root: None, ..context() };
    let message = "cat: /srv/root/other/file: No such file or directory";
    let found = explain(&plan(Tier::Full, Network::None), &[], message, alone);
    assert_eq!(found[0].allow.as_deref(), Some(r#"readable = ["/srv/root/other/file"]"#));
}

#[test]
fn lines_of_toml_are_quoted() {
    let full = plan(Tier::Full, Network::None);
    check(
        &full,
        &[
            (
                r#"cat: '/data/a"b\c': No such file or directory"#,
                &[r#"not visible | /data/a"b\c | ENOENT | readable = ["/data/a\"b\\c"]"#],
            ),
            (
                "cat: /data/a\u{1}\tb: No such file or directory",
                &["not visible | /data/a\u{1}\tb | ENOENT | readable = [\"/data/a\\u0001\\tb\"]"],
            ),
            (
                "cat: '/data/größe': No such file or directory",
                &[r#"not visible | /data/größe | ENOENT | readable = ["/data/größe"]"#],
            ),
        ],
    );
}

#[test]
fn the_hooks_of_a_repository_stay() {
    let full = plan(Tier::Full, Network::None);
    let hook = "/srv/root/ws/.git/hooks/pre-commit";
    let from_the_top = |stderr: &str| {
        let top = crate::denial::DenialContext { directory: "".as_ref(), ..context() };
        explain(&full, &[], stderr, top)
    };
    let denial = |rule: &str, object: &str, errno: &str, hint: &str| Denial {
        rule: rule.to_owned(),
        object: object.to_owned(),
        errno: errno.to_owned(),
        source: Certainty::Inferred,
        count: 1,
        allow: None,
        hint: Some(hint.to_owned()),
        network: None,
        class: DenialClass::Files,
    };
    let why = "git hooks run outside the sandbox later, so commands cannot change them";
    let read_only = [denial("git hooks are read-only", hook, "EROFS", why)];
    for stderr in [
        "bash: line 1: .git/hooks/pre-commit: Read-only file system",
        "cp: cannot create regular file '.git/hooks/pre-commit': Read-only file system",
        "fatal: cannot copy '/usr/share/git-core/templates/hooks/a' to '/srv/root/ws/.git/hooks/pre-commit': Read-only file system",
    ] {
        assert_eq!(from_the_top(stderr), read_only, "{stderr}");
    }
    assert_eq!(
        from_the_top("rm: cannot remove '.git/hooks': Device or resource busy"),
        [denial("git hooks are read-only", "/srv/root/ws/.git/hooks", "EBUSY", why)]
    );
    let stays = "what is inside can be changed, but .git itself cannot be moved or removed";
    for stderr in [
        "mv: cannot move '.git' to 'g': Device or resource busy",
        "OSError: [Errno 16] Device or resource busy: '.git' -> 'g'",
        "Error: EBUSY: resource busy or locked, rename '.git' -> 'g'",
    ] {
        let expected = [denial(".git stays in place", "/srv/root/ws/.git", "EBUSY", stays)];
        assert_eq!(from_the_top(stderr), expected, "{stderr}");
    }
    assert_eq!(from_the_top("rm: cannot remove 'x/y': Device or resource busy"), []);
}

#[test]
fn links_between_separate_trees_are_explained() {
    let full = plan(Tier::Full, Network::None);
    check(
        &full,
        &[
            (
                "ln: failed to create hard link '/tmp/b' => '/srv/root/ws/a.c': Invalid cross-device link",
                &["separate trees: /tmp and /srv/root/ws | /tmp/b -> /srv/root/ws/a.c | EXDEV | -"],
            ),
            (
                "Error: EXDEV: cross-device link not permitted, rename '/srv/root/ws/.git/a' -> '/srv/root/ws/b/c'",
                &[
                    "separate trees: /srv/root/ws/.git and /srv/root/ws | /srv/root/ws/.git/a -> /srv/root/ws/b/c | EXDEV | -",
                ],
            ),
            ("mv: cannot move 'a/b' to 'c/d': Invalid cross-device link", &[]),
        ],
    );
    let old = crate::host::Host { landlock: 1, ..host() };
    let old = Plan::new(&policy(Network::None), &old, Tier::Landlock).unwrap();
    check(
        &old,
        &[(
            "mv: cannot move 'a/b' to 'c/d': Invalid cross-device link",
            &[
                "Landlock 1 keeps files in their directories | /srv/root/ws/sub/a/b -> /srv/root/ws/sub/c/d | EXDEV | -",
            ],
        )],
    );
}

#[test]
fn a_workspace_for_reading_says_so() {
    for tier in [Tier::Full, Tier::Landlock] {
        let policy = Policy { access: WorkspaceAccess::ReadOnly, ..policy(Network::None) };
        let plan = Plan::new(&policy, &host(), tier).unwrap();
        let expected: &[&str] = &["read-only: workspace | /srv/root/ws/sub/d/x | EACCES | -"];
        check(&plan, &[("rm: cannot remove 'd/x': Permission denied", expected)]);
    }
}

#[test]
fn a_directory_speaks_for_what_is_below_it() {
    let landlock = plan(Tier::Landlock, Network::None);
    let stderr = "find: ‘/data/x’: Permission denied\nfind: ‘/data/x/y’: Permission denied\n\
                  find: ‘/data/z’: Permission denied\nfind: ‘/data/z’: Permission denied\n";
    assert_eq!(
        inferred(&landlock, stderr),
        [
            r#"not visible | /data/x | EACCES | readable = ["/data/x"]"#,
            r#"not visible | /data/z | EACCES | readable = ["/data/z"]"#,
        ]
    );
    // But not for what can be shared where it cannot.
    let stderr = "ls: cannot open directory '/home': Permission denied\n\
                  ls: cannot open directory '/home/ann': Permission denied\n\
                  ls: cannot open directory '/home/ann/lib': Permission denied\n";
    assert_eq!(
        inferred(&landlock, stderr),
        [
            "not visible | /home | EACCES | -",
            r#"not visible | /home/ann/lib | EACCES | readable = ["/home/ann/lib"]"#,
        ]
    );
}
