use std::path::Path;
use std::time::Duration;

use carrel_config::{
    Diagnostic, Environment, LanguageServerPolicy, MAX_POLICY_BYTES, OperatorPolicy, PolicyError,
    SnapshotPolicy, TOOLCHAINS, TierChoice, ToolchainChoice, Trust,
};
use carrel_domain::{ByteSize, Network, NetworkPolicy, ResourceLimits, Tier};
use pretty_assertions::assert_eq;

const FILE: &str = "/etc/carrel/policy.toml";

fn parse(text: &str) -> Result<(OperatorPolicy, Vec<Diagnostic>), PolicyError> {
    let environment = Environment::from_pairs([("HOME", "/home/anna"), ("DATA", "/srv/data")]);
    OperatorPolicy::parse(text.as_bytes(), Path::new(FILE), &environment)
}

fn policy(text: &str) -> OperatorPolicy {
    parse(text).expect(text).0
}

/// Returns the one thing that is wrong with a file, behind the file's name.
fn refusal(text: &str) -> String {
    let error = parse(text).expect_err(text);
    assert_eq!(error.problems().len(), 1, "{error}");
    error.to_string().strip_prefix("/etc/carrel/policy.toml:").expect("the file's name").to_owned()
}

fn warnings(text: &str) -> Vec<String> {
    let (_, warnings) = parse(text).expect(text);
    warnings.iter().map(|warning| warning.located(Path::new("p"))).collect()
}

#[test]
fn every_setting_is_read() {
    let text = r#"
        tier = "full"
        network = "loopback"
        network_limit = "loopback"
        readable = ["/srv/a/../b/", "~/data", "$DATA", "/srv/b"]
        writable = ["~/.cache/shared"]
        path = ["/opt/tool/bin"]
        toolchains = ["go", "rust", "go"]
        trust = "report"
        environment = { NAME = "value", _a1 = "" }
        limits.wall = "90s"
        limits.wall_limit = "2h"
        limits.cpu = "1d"
        limits.memory = "1G"
        limits.session_memory = "5GiB"
        limits.processes = 0x10
        limits.file_size = "4KiB"
        limits.open_files = 1_024
        limits.log = "1 MiB"
        uids = { first = 65536, count = 2 }
        language_servers.programs = ["/opt/servers"]
        snapshots = { tasks = false, commands = true, keep = 7, keep_for = "2h", keep_bytes = "64MiB" }
        forks.idle = "30m"
    "#;
    let policy = policy(text);
    let expected = OperatorPolicy {
        tier: TierChoice::Only(Tier::Full),
        network: Network::Loopback,
        network_limit: Some(Network::Loopback),
        readable: vec![
            "/srv/b".into(),
            "/home/anna/data".into(),
            "/srv/data".into(),
            "/opt/servers".into(),
        ],
        writable: vec!["/home/anna/.cache/shared".into()],
        path: vec!["/opt/tool/bin".into()],
        toolchains: ToolchainChoice::Only(vec![&TOOLCHAINS[3], &TOOLCHAINS[0]]),
        trust: Trust::Report,
        environment: Environment::from_pairs([("NAME", "value"), ("_a1", "")]),
        limits: ResourceLimits {
            wall: Duration::from_secs(90),
            cpu: Duration::from_hours(24),
            memory: ByteSize::gib(1),
            session_memory: ByteSize::gib(5),
            processes: 16,
            file_size: ByteSize::kib(4),
            open_files: 1024,
            log: ByteSize::mib(1),
        },
        wall_limit: Duration::from_hours(2),
        uids: policy.uids,
        language_servers: LanguageServerPolicy {
            programs: vec!["/opt/servers".into()],
            ..LanguageServerPolicy::default()
        },
        snapshots: SnapshotPolicy {
            tasks: false,
            turns: true,
            commands: true,
            keep: 7,
            keep_for: Duration::from_hours(2),
            keep_bytes: ByteSize::mib(64),
        },
        fork_idle: Duration::from_mins(30),
    };
    assert_eq!(policy, expected);
    assert_eq!((policy.uids.first(), policy.uids.count()), (65_536, 2));
}

#[test]
fn small_forms_mean_what_they_say() {
    assert_eq!(policy("tier = 'landlock'").tier, TierChoice::Only(Tier::Landlock));
    assert_eq!(policy("toolchains = []").toolchains, ToolchainChoice::Only(vec![]));
    assert_eq!(policy("toolchains = 'auto'").toolchains, ToolchainChoice::Auto);
    assert_eq!(policy("").fork_idle, Duration::from_hours(1));
    assert_eq!(policy("forks.idle = 0").fork_idle, Duration::ZERO);
    assert_eq!(policy("\u{feff}trust = 'report'").trust, Trust::Report);
    // A deadline beyond the usual limit raises the limit, unless that is written too.
    assert_eq!(policy("limits.wall = '3h'").wall_limit, Duration::from_hours(3));
    assert_eq!(policy("limits.wall = '3m'").wall_limit, Duration::from_hours(1));
}

#[test]
fn a_wrong_value_is_refused_with_its_place_its_rule_and_a_way_out() {
    for (text, message) in [
        (
            "tier = 'ful'",
            r#"1:8: tier must be one of "auto", "full", "landlock", found "ful"; did you mean "full"?"#,
        ),
        (
            "\nnetwork = 'internet'",
            r#"2:11: network must be one of "none", "loopback", "full", found "internet""#,
        ),
        ("trust = true", r#"1:9: trust must be one of "restore", "report", found true"#),
        (
            "network = 'full'\nnetwork_limit = 'loopback'",
            r#"1:11: network is "full" and more than network_limit, "loopback"; lower the one or raise the other"#,
        ),
        (
            "readable = '/opt'",
            r#"1:12: readable must be a list of absolute paths, found "/opt"; write ["/opt"]"#,
        ),
        ("readable = ['/opt', 5]", "1:21: readable must be a list of absolute paths, found 5"),
        (
            "toolchains = 'rust'",
            r#"1:14: toolchains must be "auto" or a list of names, found "rust"; write ["rust"]"#,
        ),
        (
            "toolchains = 'none'",
            r#"1:14: toolchains must be "auto" or a list of names, found "none"; write [] for none"#,
        ),
        (
            "toolchains = ['rsut']",
            r#"1:15: toolchains cannot hold "rsut": there is no such toolchain; did you mean "rust"?"#,
        ),
        (
            "toolchains = ['fortran']",
            r#"1:15: toolchains cannot hold "fortran": there is no such toolchain; there are rust, node, python, go, java, ruby, deno, bun; for another, use readable and path"#,
        ),
        (
            "[limits]\nwall = 120",
            r#"2:8: limits.wall must be a time from 1s to 30d, found 120; write it as "90s", "15m" or "2h""#,
        ),
        (
            "limits.cpu = '0s'",
            r#"1:14: limits.cpu must be a time from 1s to 30d, found "0s"; write it as "90s", "15m" or "2h""#,
        ),
        (
            "limits.memory = '1M'",
            r#"1:17: limits.memory must be a size from 16MiB to 16TiB, found "1M"; write it as "512MiB" or "2GiB""#,
        ),
        (
            "limits.log = '65536'",
            r#"1:14: limits.log must be a size from 4KiB to 16TiB, found "65536"; write it as "512MiB" or "2GiB""#,
        ),
        (
            "limits.processes = '256'",
            r#"1:20: limits.processes must be a whole number from 8 to 4194304, found "256"; write it without quotes"#,
        ),
        (
            "limits.open_files = 99999999999999999999",
            "1:21: limits.open_files must be a whole number from 16 to 1048576, found 99999999999999999999",
        ),
        (
            "limits.wall_limit = '1m'",
            r#"1:21: limits.wall_limit is less than limits.wall, "120s"; raise the one or lower the other"#,
        ),
        (
            "uids.first = 1000",
            "1:14: uids.first must be a whole number from 65536 to 2147483647, found 1000",
        ),
        (
            "uids.first = 2147483647",
            "1:14: uids.count is too large: the last id would be 2147549182 and may be at most 2147483647; write a smaller count, or a smaller uids.first",
        ),
        (
            "netwrok_limit = 'none'",
            "1:1: netwrok_limit is not a setting; did you mean network_limit?",
        ),
    ] {
        assert_eq!(refusal(text), message, "{text}");
    }
}

#[test]
fn a_path_that_must_stay_the_hosts_own_is_refused() {
    let own = |directory: &str| {
        format!("every sandbox has its own {directory}, and never the host's; take the path out")
    };
    let whole = "it is the whole file system; write the directories that commands need";
    let relative = "it is relative; write the absolute path, or begin it with ~/";
    for (written, reason) in [
        ("/", whole.to_owned()),
        ("//", whole.to_owned()),
        ("/opt/../..", whole.to_owned()),
        ("/proc", own("/proc")),
        ("/proc/self/fd", own("/proc")),
        ("/sys/", own("/sys")),
        ("/srv/../dev/shm", own("/dev")),
        ("opt/data", relative.to_owned()),
        ("./data", relative.to_owned()),
        ("~bert", "\"~bert\" names another user's home directory; write the absolute path".into()),
        ("$HOME/data", "\"$HOME/data\" is not expanded; write ~/data".into()),
        (
            "$NOPE",
            "the variable NOPE is not set; set it to a path, or write the path itself".into(),
        ),
        ("/a\\u0000b", "the path contains a NUL byte".into()),
    ] {
        for key in ["readable", "writable", "path"] {
            let text = format!("{key} = [\"{written}\"]");
            let shown = written.replace("\\u0000", "\\0");
            let column = key.len() + 5;
            let message = format!("1:{column}: {key} cannot hold \"{shown}\": {reason}");
            assert_eq!(refusal(&text), message, "{text}");
        }
    }
}

#[test]
fn commands_may_not_change_the_system_or_the_policy_itself() {
    let text = "writable = ['/usr/local/bin']";
    let message = r#"1:13: writable cannot hold "/usr/local/bin": /usr belongs to the host's own programs; write a directory below /srv, /var or ~"#;
    assert_eq!(refusal(text), message);
    let environment = Environment::from_pairs([("HOME", "/home/anna")]);
    let file = Path::new("/home/anna/.config/carrel/policy.toml");
    let error = OperatorPolicy::parse(b"writable = ['~/.config']", file, &environment).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"/home/anna/.config/carrel/policy.toml:1:13: writable cannot hold "~/.config": commands could then change the policy /home/anna/.config/carrel/policy.toml; write a directory that does not hold it"#
    );
}

#[test]
fn a_directory_for_programs_is_one_and_fits_into_a_search_path() {
    let message = r#"1:9: path cannot hold "/opt/a:b": PATH cannot hold a colon; give the directory another name"#;
    assert_eq!(refusal("path = ['/opt/a:b']"), message);
    let message = r#"1:9: path cannot hold "/bin/sh": it is not a directory; write the directory that holds the program"#;
    assert_eq!(refusal("path = ['/bin/sh']"), message);
}

#[test]
fn a_link_is_judged_by_where_it_leads() {
    let scratch = tempfile::tempdir().unwrap();
    let link = scratch.path().join("link");
    std::os::unix::fs::symlink("/proc", &link).unwrap();
    let text = format!("readable = [{:?}]", link.display().to_string());
    let reason = "every sandbox has its own /proc, and never the host's; take the path out";
    assert!(refusal(&text).ends_with(reason));
}

#[test]
fn a_path_that_is_missing_or_says_too_much_is_kept_with_a_warning() {
    let (kept, _) = parse("readable = ['/nowhere/at/all', '/usr/share']").unwrap();
    assert_eq!(kept.readable, [Path::new("/nowhere/at/all"), Path::new("/usr/share")]);
    assert_eq!(
        warnings("readable = ['/nowhere/at/all', '/usr/share']"),
        [
            r#"p:1:13: readable "/nowhere/at/all" cannot be used and is skipped: No such file or directory (os error 2)"#
        ]
    );
    let doubts = warnings("writable = ['~']");
    assert_eq!(
        doubts.last().map(String::as_str),
        Some(
            r#"p:1:13: writable "~" gives commands the whole home directory, keys and tokens included; write the directories they need"#
        )
    );
}

#[test]
fn a_variable_that_is_not_the_operators_to_set_is_refused_and_no_value_is_shown() {
    for (text, message) in [
        (
            "PATH = 's3cret'",
            r#"environment.PATH is set by Carrel; add directories with path = ["/opt/tool/bin"]"#,
        ),
        ("HOME = 's3cret'", "environment.HOME is set by Carrel; it is the workspace; take it out"),
        (
            "network = 's3cret'",
            "environment.network is a setting and would be a variable here; write it above the first [table]",
        ),
        (
            "'A-B' = 's3cret'",
            "environment.A-B does not name a variable; use letters, digits and _, and no digit first",
        ),
        (
            "DATABASE_URL = 's3cret'",
            "environment.DATABASE_URL belongs to the server and is kept from commands; take it out",
        ),
        (
            "CARREL_LOG = 's3cret'",
            "environment.CARREL_LOG belongs to the server and is kept from commands; take it out",
        ),
        ("A = 5", "environment.A must be text, found a number; put it in quotes"),
        ("A = 2001-01-01", "environment.A must be text, found a date; put it in quotes"),
        (
            "A = \"s3cret\\u0000\"",
            "environment.A contains a NUL byte, which no variable can hold; take it out",
        ),
    ] {
        let refusal = refusal(&format!("[environment]\n{text}"));
        assert_eq!(refusal, format!("2:1: {message}"));
    }
    assert_eq!(
        refusal("environment = 's3cret'"),
        r#"1:15: environment must be a table of texts, found text; write [environment], and NAME = "value" below it"#
    );
    let shown = format!("{:?}", policy("environment.A = 's3cret'"));
    assert!(shown.contains(r#"{"A"}"#) && !shown.contains("s3cret"), "{shown}");
}

#[test]
fn text_that_is_not_toml_is_refused_with_its_place() {
    for (text, message) in [
        ("tier = full", "1:8: text must stand in quotes"),
        ("readable = [~/data, '/x']", "1:13: text must stand in quotes"),
        ("limits.wall = 90s", "1:15: text must stand in quotes"),
        ("tier 'full'", "1:6: this is not TOML: key with no value, expected `=`"),
        ("tier = 'full'\ntier = 'auto'", "2:1: this is not TOML: duplicate key"),
        ("a\0b", "1:2: the file contains a NUL byte"),
    ] {
        assert_eq!(refusal(text), message, "{text}");
    }
    let bytes = OperatorPolicy::parse(b"a = '\xff'", Path::new("p"), &Environment::default());
    assert_eq!(
        bytes.unwrap_err().to_string(),
        "p:1:6: byte 6 of the file (0xff) is not valid UTF-8; save the file as UTF-8"
    );
    let large = "#".repeat(MAX_POLICY_BYTES + 1);
    assert_eq!(refusal(&large), " the file is larger than 65536 bytes; shorten it");
    assert_eq!(policy(&"#".repeat(MAX_POLICY_BYTES)), OperatorPolicy::default());
    let deep = format!("a = {}", "[".repeat(MAX_POLICY_BYTES - 4));
    assert!(parse(&deep).is_err());
}

#[test]
fn everything_that_is_wrong_is_reported_in_the_order_of_the_file() {
    let error = parse("trust = 1\n[uids]\ncount = 0\n[limits]\nlog = 1\nwal = 2\n").unwrap_err();
    let keys: Vec<_> =
        error.problems().iter().map(|diagnostic| diagnostic.key.as_deref()).collect();
    assert_eq!(keys, [Some("trust"), Some("uids.count"), Some("limits.log"), Some("limits.wal")]);
}

#[test]
fn a_limit_of_the_network_that_no_file_writes_is_not_full() {
    let none = NetworkPolicy { default: Network::None, limit: None };
    assert_eq!(OperatorPolicy::default().networks(), none);
    let cases = [
        ("", none),
        ("network = 'full'", NetworkPolicy { default: Network::Full, limit: None }),
        ("network_limit = 'full'", NetworkPolicy { limit: Some(Network::Full), ..none }),
        ("network_limit = 'none'", NetworkPolicy { limit: Some(Network::None), ..none }),
    ];
    for (text, expected) in cases {
        assert_eq!(policy(text).networks(), expected, "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn no_input_makes_the_reader_panic(bytes: Vec<u8>, text in "[a-z.= \\[\\]'\"{}0-9\n]{0,80}") {
        let environment = Environment::default();
        let _ = OperatorPolicy::parse(&bytes, Path::new("p"), &environment);
        let _ = OperatorPolicy::parse(text.as_bytes(), Path::new("p"), &environment);
    }
}
