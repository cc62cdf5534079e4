use std::time::Duration;

use carrel_agent::{Event, FailureKind};
use carrel_config::TierChoice;
use carrel_domain::Tier;
use carrel_testkit::processes::processes_with;
use pretty_assertions::assert_eq;

use crate::test_environment::{DEADLINE, TestEnvironment, command};

#[tokio::test]
async fn item_056_launch_uses_the_workspace_and_bash() {
    let test_env = TestEnvironment::new().await;
    let script = "pwd; [[ -n $BASH_VERSION ]] && shopt -q login_shell && echo 'a login bash'";
    let (ended, heard) = test_env.command(script).await;
    assert_eq!(ended, Ok("a login bash".to_owned()));
    assert_eq!(
        heard.said("message")[0],
        test_env.inside("").to_str().unwrap().trim_end_matches('/')
    );
}

#[tokio::test]
async fn item_074_112_and_129_no_secret_of_a_tracker_reaches_the_agent() {
    let variables = [("LINEAR_API_KEY", "lin_secret"), ("MY_TRACKER", "ghp_secret")];
    let test_env = TestEnvironment::with(TierChoice::Auto, &variables).await;
    let profile = "export LINEAR_API_KEY=lin_secret GITHUB_TOKEN=x MY_TRACKER=ghp_secret\n\
                   export CARREL_SECRET_A=sealed CARREL_GIT_TOKEN_X=y DATABASE_URL=z SHOWN=1\n";
    std::fs::write(test_env.own_home(".bash_profile"), profile).unwrap();
    let yaml = command("env > seen", "").replace("agent: {", "agent: {env: [HOME_KEY], ");
    let mut config = crate::test_environment::config(&yaml);
    config.secret_variables = vec!["MY_TRACKER".to_owned()];
    let mut opened = test_env.open_config(&config).await.unwrap();
    opened.session.turn("").await.unwrap();
    opened.close().await;
    let seen = test_env.read("seen");
    for shown in ["SHOWN=1", "CARREL_ISSUE_IDENTIFIER=CAR-1", "CARREL_WORKSPACE=/"] {
        assert!(seen.contains(shown), "{shown}: {seen}");
    }
    for secret in ["secret", "GITHUB_TOKEN", "sealed", "CARREL_GIT_TOKEN_X", "DATABASE_URL"] {
        assert!(!seen.contains(secret), "{secret}: {seen}");
    }
}

#[tokio::test]
async fn a_profile_that_makes_a_secret_permanent_keeps_the_agent_from_starting() {
    let test_env = TestEnvironment::new().await;
    std::fs::write(test_env.own_home(".bash_profile"), "readonly LINEAR_API_KEY=lin_secret\n")
        .unwrap();
    let failure = test_env.command("env > seen").await.0.unwrap_err();
    assert!(failure.message.contains("status 126"), "{failure}");
    assert!(!test_env.inside("seen").exists());
}

#[tokio::test]
async fn variables_of_the_operator_are_seen_when_they_are_listed() {
    let test_env =
        TestEnvironment::with(TierChoice::Auto, &[("MODEL_KEY", "sk-1"), ("OTHER", "o")]).await;
    let yaml = command("echo $MODEL_KEY/$OTHER/$CARREL_SANDBOX", "");
    let yaml = yaml.replace("agent: {", "agent: {env: [MODEL_KEY], ");
    let mut opened = test_env.open(&yaml).await.unwrap();
    assert_eq!(opened.session.turn("").await, Ok("sk-1//1".to_owned()));
    opened.close().await;
}

#[tokio::test]
async fn a_program_below_home_is_found_and_the_home_is_not_seen() {
    let test_env = TestEnvironment::new().await;
    test_env.install("my-agent", "#!/bin/sh\ncat \"$1\" 2>&1; echo; echo ran $0");
    std::fs::write(test_env.home("private"), "mine").unwrap();
    let script = format!("my-agent {}", test_env.home("private").display());
    let (ended, heard) = test_env.command(&script).await;
    let program = test_env.home("bin/my-agent");
    assert_eq!(ended, Ok(format!("ran {}", program.display())));
    assert!(!heard.said("message").contains(&"mine".to_owned()), "{:?}", heard.all());
}

#[tokio::test]
async fn a_program_is_found_through_symbolic_links() {
    let test_env = TestEnvironment::new().await;
    test_env.install("my-agent", "#!/bin/sh\necho ran");
    std::os::unix::fs::symlink(test_env.home("bin"), test_env.home("link")).unwrap();
    let by_path = test_env.home("link/my-agent").display().to_string();
    assert_eq!(test_env.command(&by_path).await.0, Ok("ran".to_owned()));
    std::os::unix::fs::symlink(test_env.home("bin/my-agent"), test_env.home("linked-agent"))
        .unwrap();
    let by_link = test_env.home("linked-agent").display().to_string();
    assert_eq!(test_env.command(&format!("exec {by_link} --now")).await.0, Ok("ran".to_owned()));
}

#[tokio::test]
async fn paths_of_the_workflow_file_are_seen_as_it_says() {
    let test_env = TestEnvironment::new().await;
    for name in ["read", "write", "alone"] {
        std::fs::create_dir(test_env.home(name)).unwrap();
        std::fs::write(test_env.home(name).join("file"), name).unwrap();
    }
    let [read, write, alone] = ["read", "write", "alone/file"].map(|name| test_env.home(name));
    let script = format!(
        "cat {0}/file {2}; (echo x > {0}/file) 2>/dev/null || echo ' refused'; echo new > {1}/file",
        read.display(),
        write.display(),
        alone.display(),
    );
    let sandbox = format!(
        "agent: {{sandbox: {{readable: [{}, {}], writable: [{}]}}, ",
        read.display(),
        alone.display(),
        write.display()
    );
    let yaml = command(&script, "").replace("agent: {", &sandbox);
    let mut opened = test_env.open(&yaml).await.unwrap();
    assert_eq!(opened.session.turn("").await, Ok("readalone refused".to_owned()));
    opened.close().await;
    assert_eq!(std::fs::read_to_string(write.join("file")).unwrap(), "new\n");
    assert_eq!(std::fs::read_to_string(read.join("file")).unwrap(), "read");
}

#[tokio::test]
async fn an_agent_reaches_the_network_unless_the_workflow_denies_it() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("(exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo yes || echo no");
    let test_env = TestEnvironment::new().await;
    assert_eq!(test_env.command(&script).await.0, Ok("yes".to_owned()));
    let yaml = command(&script, "").replace("agent: {", "agent: {network: none, ");
    let mut opened = test_env.open(&yaml).await.unwrap();
    assert_eq!(opened.session.turn("").await, Ok("no".to_owned()));
    opened.close().await;
}

#[tokio::test]
async fn processes_that_outlive_the_command_are_killed_when_the_session_closes() {
    let test_env = TestEnvironment::new().await;
    let word = format!("orphan-of-{}", test_env.directory.path().file_name().unwrap().display());
    let script = format!(
        "setsid sh -c 'trap \"\" TERM; : {word}; touch begun; while :; do sleep 1; done' &
         until [ -e begun ]; do sleep 0.01; done; echo started; wait"
    );
    let mut opened = test_env.open(&command(&script, "")).await.unwrap();
    let (heard, stop) = (opened.heard.clone(), opened.stop.clone());
    let stopping = async {
        heard
            .wait_for(|event| matches!(event, Event::Other { kind, .. } if kind == "message"))
            .await;
        assert!(processes_with(&word) > 0);
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(opened.session.turn(""), stopping);
    assert_eq!(ended.unwrap_err().kind, FailureKind::Stopped);
    opened.close().await;
    assert_eq!(processes_with(&word), 0);
}

#[tokio::test]
async fn item_127_long_lines_are_read_and_endless_ones_are_not_kept() {
    let test_env = TestEnvironment::new().await;
    let script = "head -c 1100000 /dev/zero | tr '\\0' x; echo; \
                  head -c 11000000 /dev/zero | tr '\\0' y; echo; echo end";
    let (ended, heard) = test_env.command(script).await;
    assert_eq!(ended, Ok("end".to_owned()));
    assert_eq!(heard.said("malformed"), ["a line of 11000000 bytes"]);
    assert_eq!(heard.said("message").len(), 2);
}

#[tokio::test]
async fn item_128_noise_is_no_malformed_line_and_half_an_object_is() {
    let test_env = TestEnvironment::new().await;
    let (_, heard) = test_env.command("echo '{not json' >&2; echo '{\"event\":'; echo plain").await;
    assert_eq!(heard.said("malformed"), ["{\"event\":"]);
    assert_eq!(heard.said("stderr"), ["{not json"]);
}

#[tokio::test]
async fn a_sandbox_without_namespaces_confines_an_agent_as_well() {
    carrel_skip::needs!(Ordinary);
    let test_env = TestEnvironment::with(TierChoice::Only(Tier::Landlock), &[]).await;
    std::fs::write(test_env.home("private"), "mine").unwrap();
    test_env.install("my-agent", "#!/bin/sh\ncat \"$1\" || echo refused");
    let script = format!("my-agent {}", test_env.home("private").display());
    assert_eq!(test_env.command(&script).await.0, Ok("refused".to_owned()));
}

#[tokio::test]
async fn nothing_is_kept_of_an_agent_that_has_left() {
    let test_env = TestEnvironment::new().await;
    let scratch = test_env.directory.path().join("root/.carrel/scratch");
    let kept = || std::fs::read_dir(&scratch).map_or(0, Iterator::count);
    let mut opened = test_env.open(&command("touch /tmp/x; echo done", "")).await.unwrap();
    opened.session.turn("").await.unwrap();
    let (during, cells) = (kept(), processes_below());
    opened.close().await;
    if kept() == 0 && during == 0 {
        return carrel_skip::unavailable("scratch directories below the root");
    }
    assert_eq!((during, kept()), (1, 0));
    let gone = async {
        while processes_below() >= cells {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(DEADLINE, gone).await.expect("the process of its cell ends");
}

/// Counts the processes that this one has started, and those that they have.
fn processes_below() -> usize {
    let stats = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let stats: Vec<(u32, u32)> = stats
        .filter_map(|entry| {
            let text = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            let (name, rest) = text.rsplit_once(')')?;
            Some((name.split(' ').next()?.parse().ok()?, rest.split(' ').nth(2)?.parse().ok()?))
        })
        .collect();
    let mut below = vec![std::process::id()];
    let mut next = 0;
    while let Some(parent) = below.get(next).copied() {
        below.extend(stats.iter().filter(|(_, above)| *above == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    below.len() - 1
}
