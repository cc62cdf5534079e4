//! What git would run later, outside: hooks and commands in its settings.
//!
//! Each attack ends with the operator's own git at work in the workspace, which must not run what
//! the command left there. It would say so in a file outside.

use serde_json::json;

use super::{Answer, Scenario, Tier, scenes};

/// Makes a program that says it ran, with the name of a hook. `$ran` is where it says so.
const EVIL: &str = "mkdir -p evil; printf '#!/bin/sh\\ntouch %s\\n' \"$ran\" > evil/pre-commit
                    chmod +x evil/pre-commit;";

impl Scenario {
    fn operators_git(&self, arguments: &[&str]) -> std::process::Output {
        let mut command = self.host_as(self.command_user(), "git");
        command.args(["-c", "user.name=o", "-c", "user.email=o@localhost"]).args(arguments);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap()
    }

    fn make_repository(&self) {
        let made = self.operators_git(&["init", "-q", "."]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }

    /// Empties the workspace for the next attack.
    fn start_over(&self) {
        // Modes are part of some attacks.
        let mut open = self.host_as(self.command_user(), "chmod");
        open.args(["-R", "u+rwx", "."]).status().unwrap();
        std::fs::remove_dir_all(self.workspace()).unwrap();
        std::fs::create_dir(self.workspace()).unwrap();
        self.give(&self.workspace());
    }

    /// Runs a line inside that knows where an evil program would leave its mark.
    fn attack(&self, line: &str) -> Answer {
        let ran = self.make_directory("marks").join("ran");
        let mark = format!("ran={}", ran.display());
        self.exec(&["--env", &mark], &["bash", "-c", &format!("{EVIL} {line}")])
    }

    /// Lets the operator work, and tells whether anything of the command's ran.
    fn is_fooled(&self) -> bool {
        for arguments in [&["status"][..], &["commit", "--allow-empty", "-qm", "x"], &["log"]] {
            self.operators_git(arguments);
        }
        self.path("marks/ran").exists()
    }
}

impl Answer {
    /// Paths and kinds of what was put back.
    fn put_back(&self) -> Vec<(&str, &str)> {
        let changes = self.0["trust_changes"].as_array().unwrap().iter();
        let restored = changes.filter(|change| change["restored"] == true);
        restored
            .map(|change| (change["path"].as_str().unwrap(), change["what"].as_str().unwrap()))
            .collect()
    }
}

/// Ways to have settings name a program, and what is then put back.
const SETTINGS: [(&str, &str, &str); 6] = [
    ("git config core.hooksPath $PWD/evil", ".git/config", "git config core.hooksPath"),
    ("git config core.fsmonitor $PWD/evil/pre-commit", ".git/config", "git config core.fsmonitor"),
    (
        "printf '[core]\\n\\thooksPath = %s/evil\\n' $PWD > more; git config include.path ../more",
        ".git/config",
        "git config include.path",
    ),
    (
        "git config extensions.worktreeConfig true
         git config --worktree core.hooksPath $PWD/evil",
        ".git/config.worktree",
        "git config core.hooksPath",
    ),
    (
        "printf '[CORE]hooksPATH=%s/evil\\n' $PWD >> .git/config; chmod 444 .git/config
         chmod 555 .git",
        ".git/config",
        "git config core.hooksPATH",
    ),
    ("git config core.pager $PWD/evil/pre-commit", ".git/config", "git config core.pager"),
];

fn assert_settings_put_back(tier: Tier) {
    for scenario in scenes(tier) {
        for (line, path, what) in SETTINGS {
            scenario.make_repository();
            let before = std::fs::read_to_string(scenario.workspace().join(".git/config")).unwrap();
            let answer = scenario.attack(line);
            assert_eq!(answer.0["exit_code"], 0, "{}", answer.stderr());
            assert_eq!(answer.put_back(), [(path, what)], "{line} as {:?}", scenario.who);
            let after = std::fs::read_to_string(scenario.workspace().join(".git/config")).unwrap();
            assert!(!after.to_lowercase().contains("evil"), "{after}");
            assert!(after.starts_with(&before) || path == ".git/config", "{after}");
            assert!(!scenario.is_fooled(), "{line} as {:?}", scenario.who);
            scenario.start_over();
        }
    }
}

/// Ways to a hook where there was no repository, so that no mount protects it.
const NEW_REPOSITORIES: [&str; 7] = [
    "git init -q; cp evil/pre-commit .git/hooks/",
    "git init -q; cp evil/pre-commit .git/hooks/; chmod 311 .git/hooks",
    "git init -q; cp evil/pre-commit .git/hooks/; chmod 311 .git",
    "git init -q; rm -r .git/hooks; ln -s ../evil .git/hooks",
    "git init -q x; mv x/.git real; cp evil/pre-commit real/hooks/; ln -s real .git",
    "git init -q x; mv x/.git real; cp evil/pre-commit real/hooks/; echo gitdir: real > .git",
    "git init -q --bare .; cp evil/pre-commit hooks/; git config core.bare false
     git config core.worktree $PWD",
];

fn assert_new_hooks_put_aside(tier: Tier) {
    for scenario in scenes(tier) {
        for line in NEW_REPOSITORIES {
            let answer = scenario.attack(line);
            assert_eq!(answer.0["exit_code"], 0, "{}", answer.stderr());
            assert_ne!(answer.put_back(), [], "{line} as {:?}", scenario.who);
            assert!(!scenario.is_fooled(), "{line} as {:?}", scenario.who);
            scenario.start_over();
        }
    }
}

/// A link where things are put aside does not make Carrel write outside.
fn assert_put_aside_inside(tier: Tier) {
    for scenario in scenes(tier) {
        scenario.make_directory("outside");
        let line = "ln -s ../outside .carrel-aside; git init -q; cp evil/pre-commit .git/hooks/";
        let answer = scenario.attack(line);
        assert_eq!(
            answer.put_back(),
            [(".carrel-aside", "link out of the workspace"), (".git/hooks/pre-commit", "git hook"),]
        );
        assert_eq!(scenario.names_below("outside").len(), 0, "{:?}", scenario.who);
        assert!(!scenario.is_fooled());
    }
}

/// What cannot be looked at after a command is not taken for the operator's own by the next.
fn assert_nothing_hidden_for_later(tier: Tier) {
    for scenario in scenes(tier) {
        scenario.attack("git init -q; cp evil/pre-commit .git/hooks/post-checkout; chmod 0 .git");
        let line = "chmod 755 .git; cp evil/pre-commit .git/hooks/";
        scenario.attack(line);
        super::set_mode(&scenario.workspace().join(".git"), 0o755);
        for hook in ["pre-commit", "post-checkout"] {
            let path = scenario.workspace().join(".git/hooks").join(hook);
            assert!(!path.exists(), "{hook} as {:?}", scenario.who);
        }
        assert!(!scenario.is_fooled(), "{:?}", scenario.who);
    }
}

/// Where the workspace itself is made unreadable, what was put there does not stay.
fn assert_nothing_behind_a_shut_workspace(tier: Tier) {
    for scenario in scenes(tier) {
        scenario.make_repository();
        scenario.attack(
            "git config core.hooksPath $PWD/evil; cp evil/pre-commit .git/hooks/; chmod 0 .",
        );
        // The operator opens it again, to see what the matter is.
        super::set_mode(&scenario.workspace(), 0o755);
        assert!(!scenario.is_fooled(), "{:?}", scenario.who);
    }
}

/// Ordinary work that must go on, and change nothing that counts.
fn assert_work_goes_on(tier: Tier) {
    for scenario in scenes(tier) {
        scenario.make_repository();
        let answer = scenario.line(
            "set -e; git config user.name Someone; git config user.email someone@localhost
             echo x > file; git add file; git commit -qm first; git branch other; git tag v1
             git init -q ../workspace/second; git clone -q . third; git -C third log --oneline
             git remote add origin https://example.com/x.git; git gc -q; git fsck; git status -s",
        );
        assert_eq!(answer.0["exit_code"], 0, "{:?}: {}", scenario.who, answer.stderr());
        assert_eq!(answer.0["trust_changes"], json!([]), "{:?}", scenario.who);
    }
}

mod full {
    use super::*;

    #[test]
    fn read_only_mount_keeps_hooks_as_they_are() {
        for scenario in scenes(Tier::Full) {
            scenario.make_repository();
            let before = scenario.names_below("workspace/.git");
            let answer = scenario.attack(
                "cp evil/pre-commit .git/hooks/; cp -f evil/pre-commit .git/hooks/x.sample
                 rm -rf .git/hooks; mv .git/hooks .git/old; ln -sfn ../evil .git/hooks
                 rmdir .git/hooks; chmod 777 .git/hooks; mv evil .git/hooks; true",
            );
            assert_eq!(answer.0["trust_changes"], json!([]));
            assert!(answer.stderr().contains("Read-only file system"), "{}", answer.stderr());
            assert_eq!(scenario.names_below("workspace/.git"), before);
            assert!(!scenario.is_fooled(), "{:?}", scenario.who);
        }
    }

    #[test]
    fn mount_point_keeps_the_repository_from_being_renamed() {
        for scenario in scenes(Tier::Full) {
            scenario.make_repository();
            let answer = scenario.attack(
                "mv .git old; mkdir new; mv --exchange .git new; mv -T new .git; rmdir .git
                 ln -sfn evil .git; mv ../workspace ../moved; true",
            );
            assert_eq!(answer.0["trust_changes"], json!([]));
            assert!(answer.stderr().contains("Device or resource busy"), "{}", answer.stderr());
            assert!(scenario.workspace().join(".git/HEAD").exists());
            assert!(!scenario.is_fooled(), "{:?}", scenario.who);
        }
    }

    #[test]
    fn trust_diff_puts_settings_back() {
        assert_settings_put_back(Tier::Full);
    }

    #[test]
    fn trust_diff_puts_hooks_of_new_repositories_aside() {
        assert_new_hooks_put_aside(Tier::Full);
    }

    #[test]
    fn trust_diff_writes_nothing_outside() {
        assert_put_aside_inside(Tier::Full);
    }

    #[test]
    fn trust_diff_finds_what_was_hidden_from_it() {
        assert_nothing_hidden_for_later(Tier::Full);
    }

    #[test]
    fn trust_diff_finds_what_lies_in_a_workspace_that_was_shut() {
        assert_nothing_behind_a_shut_workspace(Tier::Full);
    }

    #[test]
    fn work_with_git_goes_on() {
        assert_work_goes_on(Tier::Full);
    }
}

mod landlock {
    use super::*;

    #[test]
    fn trust_diff_puts_hooks_and_renamed_repositories_back() {
        let attacks = [
            "cp evil/pre-commit .git/hooks/",
            "mv .git old; cp -r old .git; cp evil/pre-commit .git/hooks/",
            "mv .git/hooks .git/old; mkdir .git/hooks; cp evil/pre-commit .git/hooks/",
            "rm -rf .git/hooks; ln -s ../evil .git/hooks",
            "mv .git real; cp evil/pre-commit real/hooks/; ln -s real .git",
            "mv .git real; cp evil/pre-commit real/hooks/; echo gitdir: real > .git",
        ];
        for scenario in scenes(Tier::Landlock) {
            for line in attacks {
                scenario.make_repository();
                let answer = scenario.attack(line);
                assert_ne!(answer.put_back(), [], "{line} as {:?}", scenario.who);
                assert!(!scenario.is_fooled(), "{line} as {:?}", scenario.who);
                scenario.start_over();
            }
        }
    }

    #[test]
    fn trust_diff_puts_settings_back() {
        assert_settings_put_back(Tier::Landlock);
    }

    #[test]
    fn trust_diff_puts_hooks_of_new_repositories_aside() {
        assert_new_hooks_put_aside(Tier::Landlock);
    }

    #[test]
    fn trust_diff_writes_nothing_outside() {
        assert_put_aside_inside(Tier::Landlock);
    }

    #[test]
    fn trust_diff_finds_what_was_hidden_from_it() {
        assert_nothing_hidden_for_later(Tier::Landlock);
    }

    #[test]
    fn trust_diff_finds_what_lies_in_a_workspace_that_was_shut() {
        assert_nothing_behind_a_shut_workspace(Tier::Landlock);
    }

    #[test]
    fn work_with_git_goes_on() {
        assert_work_goes_on(Tier::Landlock);
    }
}

/// The control: without Carrel in between, the operator is fooled.
#[test]
fn control_the_operators_git_runs_what_is_left_for_it() {
    for scenario in scenes(Tier::Full) {
        scenario.make_repository();
        let mut command = scenario.host_as(scenario.command_user(), "bash");
        let ran = scenario.make_directory("marks").join("ran");
        command.env("ran", ran).args(["-c", &format!("{EVIL} cp evil/pre-commit .git/hooks/")]);
        assert!(command.status().unwrap().success());
        assert!(scenario.is_fooled());
    }
}
