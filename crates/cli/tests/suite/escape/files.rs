//! Files that are not of the workspace: those beside it, of other workspaces, of the operator, of
//! Carrel and of the system.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::{CANARY, Scenario, Tier, Who, open_to_all, scenes, set_mode};
use crate::Run;

const FILES: &str = include_str!("probes/files.py");
const CHANGES: &str = include_str!("probes/changes.py");

/// What a probe is told, and what it must see.
struct Targets {
    given: Value,
    labels: Vec<&'static str>,
}

impl Scenario {
    /// Makes a root with the workspaces `A` and `B`, and puts secrets where attackers look.
    fn plant(&self) -> Targets {
        for key in ["A", "B"] {
            let root = self.path("root");
            let mut create = self.carrel(&["workspace", "create", key, "--root"]);
            create.arg(root);
            let run = Run::of(create);
            assert_eq!(run.code, 0, "{}", run.stderr);
        }
        let scenario = |name: &str| self.make_file(name, CANARY);
        self.make_directory("beside");
        self.make_directory("home/.ssh");
        self.make_directory("state/carrel");
        // Modes must not be what keeps commands from Carrel's own directory.
        for name in ["root", "root/.carrel"] {
            set_mode(&self.path(name), 0o755);
        }
        open_to_all(&self.path("root/B"));
        let secrets: BTreeMap<&str, _> = [
            ("beside", scenario("beside/secret")),
            ("in the home", scenario("home/.ssh/id_ed25519")),
            ("in another workspace", scenario("root/B/secret")),
            ("among the records", scenario("root/.carrel/secret")),
            ("in the state directory", scenario("state/carrel/secret")),
            ("password hashes", "/etc/shadow".into()),
        ]
        .into();
        let directories: BTreeMap<&str, _> = [
            ("list beside", self.path("beside")),
            ("list the home", self.path("home")),
            ("list another workspace", self.path("root/B")),
            ("list the records", self.path("root/.carrel")),
            ("list the home of root", "/root".into()),
        ]
        .into();
        self.give(&self.path("root/A"));
        let labels = secrets.keys().copied().collect();
        Targets { given: json!({ "secrets": secrets, "directories": directories }), labels }
    }

    /// Makes the probe in workspace `A` of the root.
    fn inside_workspace_of_root(&self, given: &Value) -> Value {
        let workspace = self.path("root/A");
        let text = super::whole(FILES);
        let mut command = self.carrel(&["exec", "--json", "--tier", self.tier.name()]);
        command.arg("--workspace").arg(workspace);
        command.args(["--", super::PYTHON, "-c", &text, &given.to_string()]);
        super::Answer::of(command).seen()
    }
}

const ROUTES: [&str; 13] = [
    "read",
    "write",
    "climb",
    "climb from a descriptor",
    "link",
    "handle",
    "own root",
    "own root, upwards",
    "own thread's root",
    "own directory",
    "root of the first process",
    "directory of the first process",
    "root of the parent",
];

impl Targets {
    /// All routes to all secrets, with what came of each route.
    fn expected(&self, route: impl Fn(&str) -> &'static str, list: &str) -> Value {
        let routes: BTreeMap<&str, &str> = ROUTES.map(|name| (name, route(name))).into();
        let mut all: BTreeMap<&str, Value> =
            self.labels.iter().map(|label| (*label, json!(routes))).collect();
        let directories = self.given["directories"].as_object().unwrap();
        all.extend(directories.keys().map(|label| (label.as_str(), json!(list))));
        json!(all)
    }

    /// What is read without a sandbox, so that the probe is known to work.
    fn assert_open_outside(&self, scenario: &Scenario) {
        let seen = scenario.outside(FILES, &self.given);
        for label in self.labels.iter().filter(|label| **label != "password hashes") {
            for route in ["read", "write", "climb", "link", "handle", "own root", "own directory"] {
                assert_eq!(seen[label][route], "done", "{label} by {route}");
            }
        }
        if scenario.who == Who::Root {
            let root = scenario.outside_as(0, FILES, &self.given);
            assert_eq!(root["password hashes"]["read"], "done");
        }
    }
}

/// Tells what of the system can be written. What would succeed is undone, or changes nothing.
const WRITE_SYSTEM: &str = "for at in / /usr /usr/bin /etc /bin /dev /proc /var; do
        name=$at/.carrel-escape
        { : > $name; } 2>/dev/null && rm $name && echo file in $at
        mkdir $name 2>/dev/null && rmdir $name && echo directory in $at
        ln -s x $name 2>/dev/null && rm $name && echo link in $at
    done
    for at in /etc/passwd /usr/bin/id; do
        { : >> $at; } 2>/dev/null && echo $at
        ln $at $at.carrel-escape 2>/dev/null && rm $at.carrel-escape && echo link to $at
        chmod $(stat -c %a $at) $at 2>/dev/null && echo mode of $at
    done;";

/// Lists what nobody inside has any business with.
const LIST_SYSTEM: &str = "ls -A /home 2>/dev/null | grep -vx carrel;
    ls -A /root/.ssh /sys /boot /mnt /srv /media 2>/dev/null; true";

/// Whether a route leads through a process that does not let itself be looked into.
fn leads_through_a_process(route: &str) -> bool {
    route.contains("process") || route.contains("parent")
}

/// Makes a directory that an attacker would like to change.
fn plant_changes(scenario: &Scenario) -> Value {
    scenario.make_directory("beside");
    scenario.make_directory("beside/empty");
    scenario.make_file("beside/secret", CANARY);
    scenario.make_file("beside/other", CANARY);
    json!({ "outside": scenario.path("beside") })
}

fn assert_untouched(scenario: &Scenario) {
    let names: Vec<_> = scenario.names_below("beside").into_iter().collect();
    assert_eq!(names, ["empty", "other", "secret"].map(|name| scenario.path("beside").join(name)));
    for name in ["beside/secret", "beside/other"] {
        assert_eq!(std::fs::read_to_string(scenario.path(name)).unwrap(), CANARY);
    }
}

fn assert_all_done_outside(tier: Tier) {
    for scenario in scenes(tier) {
        let given = plant_changes(&scenario);
        let seen = scenario.outside(CHANGES, &given);
        let not_done: Vec<_> =
            seen.as_object().unwrap().iter().filter(|(_, came)| **came != "done").collect();
        // What `replace` put there is gone when `remove` comes.
        assert_eq!(not_done, Vec::<(&String, &Value)>::new());
    }
}

mod full {
    use super::*;

    #[test]
    fn mount_namespace_hides_files_beside_the_workspace_in_others_and_of_carrel() {
        for scenario in scenes(Tier::Full) {
            let targets = scenario.plant();
            targets.assert_open_outside(&scenario);
            let expected = targets.expected(
                |route| if leads_through_a_process(route) { "EACCES" } else { "ENOENT" },
                "ENOENT",
            );
            let seen = scenario.inside_workspace_of_root(&targets.given);
            pretty_assertions::assert_eq!(seen, expected, "{:?}", scenario.who);
        }
    }

    #[test]
    fn mount_namespace_leaves_nothing_outside_to_change() {
        assert_all_done_outside(Tier::Full);
        for scenario in scenes(Tier::Full) {
            let given = plant_changes(&scenario);
            let seen = scenario.inside(CHANGES, &given);
            for (attack, came) in seen.as_object().unwrap() {
                assert_eq!(came, "ENOENT", "{attack} as {:?}", scenario.who);
            }
            assert_untouched(&scenario);
        }
    }

    #[test]
    fn mount_namespace_gives_a_tmp_of_its_own() {
        for scenario in scenes(Tier::Full) {
            let before = scenario.names_below("");
            let name = format!("carrel-escape-{}-{:?}", std::process::id(), scenario.who);
            let secret = Path::new("/tmp").join(&name);
            std::fs::write(&secret, CANARY).unwrap();
            let answer = scenario.line(&format!(
                "cat /tmp/{name} /var/tmp/{name}; ls -A /tmp | grep -c {name}; touch ../mine /tmp/mine"
            ));
            let left = Path::new("/tmp/mine").exists();
            std::fs::remove_file(&secret).unwrap();
            assert_eq!(answer.stdout(), "0\n");
            assert!(!left && !scenario.path("mine").exists());
            let mut after = scenario.names_below("");
            after.retain(|path| !path.starts_with(scenario.path("state")));
            assert!(after.is_subset(&before), "{after:?}");
        }
    }

    #[test]
    fn read_only_mounts_keep_the_system_as_it_is() {
        for scenario in scenes(Tier::Full) {
            let answer = scenario.line(&format!("{WRITE_SYSTEM} {LIST_SYSTEM}"));
            assert_eq!(answer.stdout(), "", "{:?}", scenario.who);
        }
    }

    #[test]
    fn mount_namespace_keeps_links_that_were_there_from_leading_out() {
        for scenario in scenes(Tier::Full) {
            scenario.make_file("secret", CANARY);
            for (link, target) in [("relative", "../secret"), ("root", "/"), ("up", "..")] {
                std::os::unix::fs::symlink(target, scenario.workspace().join(link)).unwrap();
            }
            let absolute = scenario.path("secret");
            std::os::unix::fs::symlink(&absolute, scenario.workspace().join("absolute")).unwrap();
            let control = scenario.host("cat").arg("relative").arg("absolute").output().unwrap();
            assert_eq!(String::from_utf8(control.stdout).unwrap(), format!("{CANARY}{CANARY}"));
            let answer = scenario.line(&format!(
                "cat relative absolute up/secret root{}; echo x > relative; echo x > absolute",
                absolute.display()
            ));
            assert_eq!(answer.stdout(), "");
            assert_eq!(std::fs::read_to_string(&absolute).unwrap(), CANARY);
        }
    }
}

mod landlock {
    use super::*;

    #[test]
    fn path_rules_shut_files_beside_the_workspace_in_others_and_of_carrel() {
        for scenario in scenes(Tier::Landlock) {
            let targets = scenario.plant();
            targets.assert_open_outside(&scenario);
            let seen = scenario.inside_workspace_of_root(&targets.given);
            let expected = targets.expected(|_| "EACCES", "EACCES");
            pretty_assertions::assert_eq!(seen, expected, "{:?}", scenario.who);
        }
    }

    #[test]
    fn path_rules_leave_only_metadata_outside_to_change() {
        assert_all_done_outside(Tier::Landlock);
        for scenario in scenes(Tier::Landlock) {
            let given = plant_changes(&scenario);
            let seen = scenario.inside(CHANGES, &given);
            let metadata = ["change the mode", "change the times", "set an attribute"];
            let kept = scenario.promises("outside_metadata_unchanged");
            for (attack, came) in seen.as_object().unwrap() {
                let came = came.as_str().unwrap();
                if metadata.contains(&attack.as_str()) {
                    assert_eq!(came != "done", kept, "{attack} as {:?}: {came}", scenario.who);
                } else {
                    // The kernel answers as if another disk were meant where a link would do.
                    assert!(["EACCES", "EXDEV"].contains(&came), "{attack}: {came}");
                }
            }
            assert_untouched(&scenario);
        }
    }

    #[test]
    fn path_rules_keep_the_hosts_tmp_shut() {
        for scenario in scenes(Tier::Landlock) {
            let answer = scenario.line(
                "ls /tmp /var/tmp /dev/shm; touch /tmp/mine /var/tmp/mine /dev/shm/mine ../mine
                 touch $TMPDIR/mine && echo $TMPDIR",
            );
            let own = answer.stdout().trim();
            assert!(Path::new(own).starts_with(scenario.path("state")), "{own}");
            assert!(!Path::new(own).exists(), "it ends with the command");
            for path in ["/tmp/mine", "/var/tmp/mine", "/dev/shm/mine"] {
                assert!(!Path::new(path).exists());
            }
        }
    }

    #[test]
    fn path_rules_keep_the_system_as_it_is() {
        for scenario in scenes(Tier::Landlock) {
            let answer = scenario.line(&format!("{WRITE_SYSTEM} {LIST_SYSTEM}"));
            assert_eq!(answer.stdout(), "", "{:?}", scenario.who);
        }
    }

    /// The other side of the wall: what it must not take away.
    #[test]
    fn path_rules_let_files_move_between_directories_of_the_workspace() {
        for scenario in scenes(Tier::Landlock) {
            let probe = "os.mkdir('a'); os.mkdir('b'); open('a/x', 'w').close()\n\
                         attempt('rename', lambda: os.rename('a/x', 'b/x'))\n\
                         attempt('link', lambda: os.link('b/x', 'a/y'))";
            let seen = scenario.inside(probe, &json!({}));
            assert_eq!(seen, json!({ "rename": "done", "link": "done" }), "{:?}", scenario.who);
        }
    }
}
