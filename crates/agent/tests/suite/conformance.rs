//! One suite for every kind of agent. Scripted agents play each scenario in the words of their own protocol.

use std::time::{Duration, Instant};

use carrel_agent::{AgentFailure, Event, FailureKind};
use carrel_config::TierChoice;
use carrel_testkit::agents;
use carrel_testkit::processes::processes_with;
use pretty_assertions::assert_eq;

use crate::test_environment::{Opened, ProcessEvent, TestEnvironment, config, until_there_is};

/// A kind of agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Codex,
    Acp,
    Command,
}

impl Kind {
    /// Describes an agent of this kind that plays a scenario.
    pub(crate) fn plays(self, scenario: &str) -> String {
        self.plays_for(scenario, 60_000)
    }

    /// Describes one that may be silent for as many milliseconds.
    pub(crate) fn plays_for(self, scenario: &str, silence: u32) -> String {
        let name = match self {
            Self::Codex => {
                return format!(
                    "codex: {{command: 'scripted {scenario}', turn_timeout_ms: {silence}"
                );
            }
            Self::Acp => "acp",
            Self::Command => "command",
        };
        format!(
            "agent: {{kind: {name}, command: 'scripted {scenario}'}}\ncodex: {{turn_timeout_ms: {silence}"
        )
    }

    pub(crate) async fn test_env(self) -> TestEnvironment {
        self.install(TestEnvironment::new().await)
    }

    pub(crate) fn install(self, test_env: TestEnvironment) -> TestEnvironment {
        let script = match self {
            Self::Codex => agents::CODEX,
            Self::Acp => agents::ACP,
            Self::Command => agents::COMMAND,
        };
        test_env.install("scripted", script);
        test_env
    }

    /// Opens a session. More settings of `codex` may follow.
    pub(crate) async fn open(
        self,
        test_env: &TestEnvironment,
        scenario: &str,
        more: &str,
    ) -> Result<Opened, AgentFailure> {
        test_env.open(&format!("{}{more}}}", self.plays(scenario))).await
    }

    /// Takes one turn and closes the session.
    async fn turn(
        self,
        scenario: &str,
    ) -> (Result<String, AgentFailure>, ProcessEvent, TestEnvironment) {
        let test_env = self.test_env().await;
        let (ended, heard) = self.turn_in(&test_env, scenario).await;
        (ended, heard, test_env)
    }

    async fn turn_in(
        self,
        test_env: &TestEnvironment,
        scenario: &str,
    ) -> (Result<String, AgentFailure>, ProcessEvent) {
        one_turn(self.open(test_env, scenario, "").await.unwrap()).await
    }

    /// Takes one turn of an agent that may be silent for as many milliseconds.
    async fn impatient_turn(self, scenario: &str, silence: u32) -> Result<String, AgentFailure> {
        let test_env = self.test_env().await;
        let yaml = format!("{}}}", self.plays_for(scenario, silence));
        one_turn(test_env.open(&yaml).await.unwrap()).await.0
    }
}

async fn one_turn(mut opened: Opened) -> (Result<String, AgentFailure>, ProcessEvent) {
    let ended = opened.session.turn("the prompt").await;
    (ended, opened.close().await)
}

pub(crate) async fn a_turn_ends_with_what_was_said_last(kind: Kind) {
    let test_env = kind.test_env().await;
    let mut opened = kind.open(&test_env, "success", "").await.unwrap();
    for turn in ["the first prompt", "the second prompt"] {
        assert_eq!(opened.session.turn(turn).await, Ok("done".to_owned()));
        assert!(test_env.read("received").contains(turn));
    }
    let heard = opened.close().await;
    let sessions: Vec<_> = heard
        .all()
        .into_iter()
        .filter_map(|event| match event {
            Event::SessionStarted { session, thread, .. } => Some((session, thread)),
            _ => None,
        })
        .collect();
    let [(first, thread), (second, same)] = sessions.try_into().expect("there were two turns");
    assert!(thread == same && first != second, "{first} {second}");
    assert!(first.starts_with(&format!("{thread}-")), "{first}");
    let used = heard.all().into_iter().filter_map(|event| match event {
        Event::Usage(tokens) => Some((tokens.input, tokens.output, tokens.total)),
        _ => None,
    });
    assert_eq!(used.collect::<Vec<_>>(), [(10, 1, 11), (20, 2, 22)]);
}

pub(crate) async fn a_turn_that_fails_says_why(kind: Kind) {
    let (ended, _, _) = kind.turn("failure").await;
    let failure = ended.unwrap_err();
    assert_eq!(failure.kind, FailureKind::TurnFailed);
    assert!(failure.message.contains("no such model"), "{failure}");
}

pub(crate) async fn a_limit_of_the_provider_is_an_outcome_of_its_own(kind: Kind) {
    let (ended, heard, _) = kind.turn("limit").await;
    let failure = ended.unwrap_err();
    assert!(matches!(failure.kind, FailureKind::RateLimited { .. }), "{failure}");
    assert_eq!(heard.said("rate_limited").len(), 1, "{:?}", heard.all());
    let limits = |event: &Event| matches!(event, Event::RateLimits { .. });
    // That protocol has no word for them.
    assert_eq!(heard.all().iter().any(limits), kind != Kind::Acp, "{:?}", heard.all());
}

pub(crate) async fn item_062_silence_ends_a_turn(kind: Kind) {
    let begun = Instant::now();
    let failure = kind.impatient_turn("silence", 900).await.unwrap_err();
    assert_eq!(failure.kind, FailureKind::TurnTimeout, "{failure}");
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

pub(crate) async fn item_132_every_sign_of_life_begins_the_silence_anew(kind: Kind) {
    assert_eq!(kind.impatient_turn("slow", 2000).await, Ok("done".to_owned()));
}

pub(crate) async fn item_063_a_malformed_line_is_reported_and_skipped(kind: Kind) {
    let (ended, heard, _) = kind.turn("malformed").await;
    assert_eq!(ended, Ok("done".to_owned()));
    assert_eq!(heard.said("malformed").len(), 1, "{:?}", heard.all());
}

pub(crate) async fn item_102_and_127_a_long_line_is_read(kind: Kind) {
    let (ended, _, _) = kind.turn("long").await;
    assert_eq!(ended.map(|answer| answer.len()), Ok(1_100_000));
}

pub(crate) async fn a_line_without_end_is_not_kept(kind: Kind) {
    let (ended, heard, _) = kind.turn("endless").await;
    assert_eq!(ended, Ok("done".to_owned()));
    assert_eq!(heard.said("malformed"), ["a line of 11000000 bytes"]);
}

pub(crate) async fn item_064_and_128_stderr_is_no_part_of_the_protocol(kind: Kind) {
    let (ended, heard, _) = kind.turn("noise").await;
    assert_eq!(ended, Ok("done".to_owned()));
    assert_eq!(heard.said("malformed"), Vec::<String>::new());
}

pub(crate) async fn item_074_and_129_no_secret_reaches_the_agent(kind: Kind) {
    let variables = [("LINEAR_API_KEY", "lin-secret"), ("OF_TRACKER", "own-secret")];
    let test_env = kind.install(TestEnvironment::with(TierChoice::Auto, &variables).await);
    let profile = "export LINEAR_API_KEY=lin-secret OF_TRACKER=own-secret SHOWN=1\n";
    std::fs::write(test_env.own_home(".bash_profile"), profile).unwrap();
    let mut config = config(&format!("{}}}", kind.plays("secrets")));
    config.secret_variables = vec!["OF_TRACKER".to_owned()];
    let mut opened = test_env.open_config(&config).await.unwrap();
    opened.session.turn("").await.unwrap();
    opened.close().await;
    let seen = test_env.read("seen");
    assert!(seen.contains("SHOWN=1") && !seen.contains("secret"), "{seen}");
}

pub(crate) async fn processes_that_the_agent_left_are_killed_when_it_closes(kind: Kind) {
    let test_env = kind.test_env().await;
    let word = format!("orphan-of-{}", test_env.directory.path().file_name().unwrap().display());
    let mut opened = kind.open(&test_env, &format!("orphan {word}"), "").await.unwrap();
    assert_eq!(opened.session.turn("").await, Ok("done".to_owned()));
    opened.close().await;
    assert_eq!(processes_with(&word), 0);
}

pub(crate) async fn an_agent_that_falls_over_is_noticed(kind: Kind) {
    let begun = Instant::now();
    let (ended, _, _) = kind.turn("exit").await;
    let failure = ended.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Exited, "{failure}");
    assert!(failure.message.contains("about to fall over"), "{failure}");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

pub(crate) async fn item_067_a_question_ends_the_turn_with_its_text(kind: Kind) {
    let (ended, heard, _) = kind.turn("input").await;
    let failure = ended.unwrap_err();
    assert_eq!((failure.kind, &*failure.message), (FailureKind::InputRequired, "Which one?"));
    assert_eq!(heard.said("turn_input_required"), ["Which one?"]);
}

pub(crate) async fn an_agent_is_stopped_in_the_middle(kind: Kind) {
    let test_env = kind.test_env().await;
    let patient = kind.plays("silence");
    let mut opened = test_env.open(&format!("{patient}}}")).await.unwrap();
    let (heard, stop) = (opened.heard.clone(), opened.stop.clone());
    let stopping = async {
        heard.wait_for(|event| matches!(event, Event::SessionStarted { .. })).await;
        stop.cancel();
    };
    let begun = Instant::now();
    let (ended, ()) = tokio::join!(opened.session.turn(""), stopping);
    assert_eq!(ended.unwrap_err().kind, FailureKind::Stopped);
    assert_eq!(opened.session.turn("").await.unwrap_err().kind, FailureKind::Stopped);
    opened.close().await;
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

pub(crate) async fn an_agent_that_heeds_nothing_is_ended_in_time(kind: Kind) {
    let test_env = kind.test_env().await;
    let word = format!("stubborn-in-{}", test_env.directory.path().file_name().unwrap().display());
    let patient = kind.plays(&format!("stubborn {word}"));
    let mut opened = test_env.open(&format!("{patient}}}")).await.unwrap();
    let (heard, stop) = (opened.heard.clone(), opened.stop.clone());
    let stopping = async {
        heard.wait_for(|event| matches!(event, Event::SessionStarted { .. })).await;
        until_there_is(&word).await;
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(opened.session.turn(""), stopping);
    assert_eq!(ended.unwrap_err().kind, FailureKind::Stopped);
    let begun = Instant::now();
    opened.close().await;
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
    assert_eq!(processes_with(&word), 0);
}

pub(crate) async fn a_program_that_is_missing_is_named(kind: Kind) {
    let test_env = TestEnvironment::new().await;
    let opened = kind.open(&test_env, "success", "").await;
    let failure = match opened {
        Err(failure) => failure,
        Ok(mut opened) => {
            let failure = opened.session.turn("").await.unwrap_err();
            opened.close().await;
            failure
        }
    };
    assert_eq!(failure.kind, FailureKind::NotFound, "{failure}");
    assert!(failure.message.contains("scripted"), "{failure}");
}

pub(crate) async fn item_028_an_agent_does_not_start_in_a_removed_workspace(kind: Kind) {
    let test_env = kind.test_env().await;
    let path = test_env.inside("");
    std::fs::remove_dir_all(&path).unwrap();
    std::os::unix::fs::symlink("/usr", path.to_str().unwrap().trim_end_matches('/')).unwrap();
    let failure = kind.open(&test_env, "success", "").await.err().expect("there is no workspace");
    assert_eq!(failure.kind, FailureKind::Launch, "{failure}");
}

macro_rules! suite {
    ($module:ident, $kind:expr; $($name:ident)+) => {
        mod $module {
            $(#[tokio::test]
            async fn $name() {
                super::$name($kind).await;
            })+
        }
    };
    ($module:ident, $kind:expr) => {
        suite! { $module, $kind;
            a_turn_ends_with_what_was_said_last
            a_turn_that_fails_says_why
            a_limit_of_the_provider_is_an_outcome_of_its_own
            item_062_silence_ends_a_turn
            item_132_every_sign_of_life_begins_the_silence_anew
            item_063_a_malformed_line_is_reported_and_skipped
            item_102_and_127_a_long_line_is_read
            a_line_without_end_is_not_kept
            item_064_and_128_stderr_is_no_part_of_the_protocol
            item_074_and_129_no_secret_reaches_the_agent
            processes_that_the_agent_left_are_killed_when_it_closes
            an_agent_that_falls_over_is_noticed
            item_067_a_question_ends_the_turn_with_its_text
            an_agent_is_stopped_in_the_middle
            an_agent_that_heeds_nothing_is_ended_in_time
            a_program_that_is_missing_is_named
            item_028_an_agent_does_not_start_in_a_removed_workspace
        }
    };
}

suite! { codex, super::Kind::Codex }
suite! { acp, super::Kind::Acp }
suite! { command, super::Kind::Command }
