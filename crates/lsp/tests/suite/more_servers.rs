//! Servers of further languages, on projects of two files. Those of the table that no registry has for this machine are
//! in no test: jdtls, ruby-lsp and lua-language-server.

use pretty_assertions::assert_eq;

use crate::test_environment::{TestEnvironment, answered, shown};

/// A function that two files of a project know.
struct Case {
    project: &'static str,
    server: &'static str,
    /// A use, with a mark at the name.
    used: (&'static str, &'static str),
    definition: &'static [&'static str],
    references: &'static [&'static str],
    /// The reason for which references are never called complete.
    incomplete: Option<&'static str>,
    /// A file that is not there yet, and its only reference.
    added: (&'static str, &'static str, &'static str),
    /// A text of the file with the use, one in its place that is wrong, and the problems.
    broken: (&'static str, &'static str, &'static [&'static str]),
    /// The words of a rename that cannot be made.
    no_rename: Option<&'static str>,
}

impl Case {
    async fn run(self) {
        let env = TestEnvironment::new(self.project);
        let (path, piece) = self.used;
        assert_eq!(env.definition(path, piece).await, self.definition);
        assert_eq!(self.references(&env).await, self.references);
        let (added, text, reference) = self.added;
        env.put(added, text);
        let mut with_added = self.references.to_vec();
        with_added.push(reference);
        with_added.sort_unstable();
        assert_eq!(self.references(&env).await, with_added);
        std::fs::remove_file(env.path(added)).unwrap();
        assert_eq!(self.references(&env).await, self.references);
        let (right, wrong, problems) = self.broken;
        assert_eq!(env.problems(path).await, Vec::<String>::new());
        env.replace(path, right, wrong);
        assert_eq!(env.problems(path).await, problems);
        env.replace(path, wrong, right);
        assert!(env.kill() > 0);
        assert_eq!(self.references(&env).await, self.references);
        let renamed = env.servers.rename(&env.context, &env.at(path, piece), "taxed").await;
        match self.no_rename {
            Some(words) => assert_eq!(renamed.unwrap_err().to_string(), words),
            None => assert!(!answered(renamed).value.files.is_empty()),
        }
        env.close().await;
    }

    async fn references(&self, env: &TestEnvironment) -> Vec<String> {
        let target = env.at(self.used.0, self.used.1);
        let answer = answered(env.servers.references(&env.context, &target, true).await);
        assert_eq!((answer.server, answer.incomplete.as_deref()), (self.server, self.incomplete));
        let mut found = shown(answer.value);
        found.sort_unstable();
        found
    }
}

#[tokio::test]
async fn intelephense_finds_what_there_is_before_and_after_changes() {
    let case = Case {
        project: "php",
        server: "intelephense",
        used: ("src/main.php", "echo |withTax(5)"),
        definition: &["src/prices.php:6:10"],
        references: &["src/main.php:7:19", "src/main.php:7:6", "src/prices.php:6:10"],
        incomplete: None,
        added: (
            "src/added.php",
            "<?php\n\nnamespace Shop;\n\necho withTax(7);\n",
            "src/added.php:5:6",
        ),
        broken: ("withTax(5)", "withoutTax(5)", &["7 Error P1010"]),
        no_rename: Some("intelephense cannot tell the change that renames a symbol"),
    };
    case.run().await;
}

#[tokio::test]
async fn bash_language_server_finds_what_there_is_before_and_after_changes() {
    let case = Case {
        project: "bash",
        server: "bash-language-server",
        used: ("main.sh", "\n|with_tax 5"),
        definition: &["prices.sh:3:1"],
        references: &["main.sh:3:1", "main.sh:4:1", "prices.sh:3:1"],
        incomplete: Some("this server finds uses by their names"),
        added: ("added.sh", "source ./prices.sh\nwith_tax 7\n", "added.sh:2:1"),
        broken: ("with_tax 5", "if with_tax 5", &[]),
        no_rename: None,
    };
    case.run().await;
}
