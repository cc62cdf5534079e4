//! Random changes of a project, and after every fifty of them each answer compared with that of a server which was
//! started after them: definition, references, rename and problems. The server that has seen all of them is also asked
//! after a random one of the fifty, so that it is told about them in pieces. An answer that may lack something is asked
//! for again until it lacks nothing.
//!
//! `CARREL_SOAK=1` makes the runs long: a hundred comparisons for each server instead of two.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use carrel_config::LanguageServerPolicy;
use carrel_lsp::{LanguageServers, QueryError, Reply};
use fastrand::Rng;
use pretty_assertions::assert_eq;

use crate::test_environment::{ANSWER_TIME, TestEnvironment, answered, shown, tree};

/// Comparisons of a short run, and of a long one.
const COMPARISONS: [usize; 2] = [2, 100];

/// Changes between two comparisons.
const CHANGES: usize = 50;

/// The pause before an answer that may lack something is asked for again.
const PAUSE: Duration = Duration::from_millis(200);

/// A project in one language that random changes leave readable.
#[derive(Clone, Copy)]
struct Grammar {
    project: &'static str,
    /// The server that would be asked first, and is not there.
    without: Option<&'static str>,
    directory: &'static str,
    extension: &'static str,
    /// Text at the end of a file that makes the added files a part of the project.
    included: Option<(&'static str, &'static str)>,
    /// The definition of the function that is asked for: its file, and the text around the mark.
    definition: (&'static str, &'static str),
    /// A comment line with the number of the change.
    comment: fn(usize) -> String,
    /// A file that uses the function the given number of times.
    user: fn(number: usize, uses: usize) -> String,
}

impl Grammar {
    #[expect(clippy::print_stderr, reason = "the seed repeats a run that failed")]
    async fn run(&self) {
        let seed = std::env::var("CARREL_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| fastrand::u64(..));
        eprintln!("CARREL_SEED={seed}");
        let mut random = Rng::with_seed(seed);
        let is_long = std::env::var_os("CARREL_SOAK").is_some();
        let env = match self.without {
            Some(missing) => TestEnvironment::without_program(self.project, missing),
            None => TestEnvironment::new(self.project),
        };
        if let Some((path, text)) = self.included {
            env.put(path, &format!("{}{text}", env.text(path)));
        }
        let before = tree(env.context.workspace.path());
        let mut compared = 0;
        for comparison in 0..COMPARISONS[usize::from(is_long)] {
            let asked_after = random.usize(..CHANGES);
            for number in 0..CHANGES {
                self.change(&env, &before, &mut random, number);
                if number == asked_after {
                    let target = env.at(self.definition.0, self.definition.1);
                    answered(env.servers.references(&env.context, &target, true).await);
                }
            }
            let (kept, fresh) = (self.ask(&env, &env.servers).await, self.ask_fresh(&env).await);
            assert_eq!(kept, fresh, "seed {seed}, comparison {comparison}");
            assert!(kept.len() > 1, "{kept:?}");
            compared += 1;
        }
        let servers: Vec<_> = env.servers.running().into_iter().map(|(name, _)| name).collect();
        eprintln!(
            "{servers:?}: {compared} comparisons with a fresh server after {CHANGES} changes each"
        );
        env.close().await;
    }

    /// Asks a server that has seen none of the changes.
    async fn ask_fresh(&self, env: &TestEnvironment) -> Vec<String> {
        let servers = LanguageServers::new(LanguageServerPolicy::default());
        let found = self.ask(env, &servers).await;
        servers.close_workspace(env.context.workspace.path()).await;
        found
    }

    /// Returns all references, the definition, the edits of a rename, and the problems of the definition's file and of the
    /// added ones.
    async fn ask(&self, env: &TestEnvironment, servers: &LanguageServers) -> Vec<String> {
        let target = env.at(self.definition.0, self.definition.1);
        let context = &env.context;
        let mut found =
            shown(complete(async || servers.references(context, &target, true).await).await);
        let definition = complete(async || servers.definition(context, &target).await).await;
        found.extend(shown(definition).into_iter().map(|place| format!("defined at {place}")));
        let change = complete(async || servers.rename(context, &target, "AnotherName").await).await;
        let edits = change.files.iter().flat_map(|file| {
            let edits = file.edits.iter().map(|edit| format!("{:?} {}", edit.range, edit.text));
            edits.map(|edit| format!("rename {} {edit}", file.path.display()))
        });
        found.extend(edits);
        let added = (0..4).map(|number| self.added(number)).filter(|path| env.path(path).exists());
        for path in added.chain([self.definition.0.to_owned()]) {
            // Some servers know but a part of the problems, and say so each time.
            let answer = answered(servers.diagnostics(context, Path::new(&path)).await);
            found.extend(answer.value.iter().map(|one| {
                let start = one.range.start;
                format!(
                    "{path}:{}:{} {:?} {}",
                    start.line, start.char_column, one.severity, one.code
                )
            }));
        }
        found
    }

    fn added(&self, number: usize) -> String {
        let name = format!("random{number}.{}", self.extension);
        Path::new(self.directory).join(name).to_string_lossy().into_owned()
    }

    /// Adds a line to a file, takes one back, adds a file, changes one or removes one.
    fn change(
        &self,
        env: &TestEnvironment,
        before: &BTreeMap<PathBuf, String>,
        random: &mut Rng,
        number: usize,
    ) {
        let sources = before.iter().filter(|(path, _)| {
            path.extension().is_some_and(|extension| extension == self.extension)
        });
        let sources: Vec<_> = sources.collect();
        let (path, original) = sources[random.usize(..sources.len())];
        let path = path.to_str().unwrap();
        let own = self.added(random.usize(..4));
        match random.usize(..5) {
            0 | 1 => env.put(path, &format!("{}\n{}", (self.comment)(number), env.text(path))),
            2 => env.put(path, original),
            3 => {
                let name =
                    own.bytes().filter(u8::is_ascii_digit).map(|digit| usize::from(digit - b'0'));
                env.put(&own, &(self.user)(name.sum(), random.usize(1..4)));
            }
            _ if env.path(&own).exists() => std::fs::remove_file(env.path(&own)).unwrap(),
            _ => {}
        }
    }
}

/// Asks until an answer lacks nothing.
async fn complete<T: Debug>(ask: impl AsyncFn() -> Result<Reply<T>, QueryError>) -> T {
    let end = Instant::now() + ANSWER_TIME;
    loop {
        let answer = answered(ask().await);
        let Some(reason) = answer.incomplete else { return answer.value };
        assert!(Instant::now() < end, "no complete answer: {reason}");
        tokio::time::sleep(PAUSE).await;
    }
}

const PYTHON: Grammar = Grammar {
    project: "python",
    without: None,
    directory: "shop",
    extension: "py",
    included: None,
    definition: ("shop/prices.py", "def |with_tax"),
    comment: |number| format!("# \u{1d49c} line {number}"),
    user: |_, uses| {
        let line = "x = \"\u{1d49c}\" and prices.with_tax(1)\n";
        format!("from shop import prices\n\n{}", line.repeat(uses))
    },
};

#[tokio::test]
async fn ty_agrees_with_a_fresh_server_after_random_changes() {
    PYTHON.run().await;
}

#[tokio::test]
async fn basedpyright_agrees_with_a_fresh_server_after_random_changes() {
    Grammar { without: Some("ty"), ..PYTHON }.run().await;
}

#[tokio::test]
async fn gopls_agrees_with_a_fresh_server_after_random_changes() {
    let grammar = Grammar {
        project: "go",
        without: None,
        directory: "shapes",
        extension: "go",
        included: None,
        definition: ("shapes/shape.go", "func |Doubled"),
        comment: |number| format!("// \u{1d49c} line {number}\n"),
        user: |name, uses| {
            let line = "\t_ = Doubled(Rectangle{1, 1})\n";
            format!("package shapes\n\nfunc random{name}() {{\n{}}}\n", line.repeat(uses))
        },
    };
    grammar.run().await;
}

#[tokio::test]
async fn clangd_agrees_with_a_fresh_server_after_random_changes() {
    let grammar = Grammar {
        project: "c-built",
        without: None,
        directory: "",
        extension: "c",
        included: None,
        definition: ("prices.c", "int |with_tax"),
        comment: |number| format!("/* \u{1d49c} line {number} */"),
        user: |name, uses| {
            let line = "  x += with_tax(x);\n";
            format!(
                "#include \"prices.h\"\nint random{name}(int x) {{\n{}  return x;\n}}\n",
                line.repeat(uses)
            )
        },
    };
    grammar.run().await;
}

const TYPESCRIPT: Grammar = Grammar {
    project: "typescript",
    without: None,
    directory: "src",
    extension: "ts",
    included: None,
    definition: ("src/prices.ts", "function |withTax"),
    comment: |number| format!("/* \u{1d49c} line {number} */"),
    user: |name, uses| {
        let line = "/* \u{1d49c} */ withTax(1);\n";
        format!(
            "import {{ withTax }} from \"./prices.js\";\nexport const x{name} = 1;\n{}",
            line.repeat(uses)
        )
    },
};

#[tokio::test]
async fn typescript_language_server_agrees_with_a_fresh_server_after_random_changes() {
    TYPESCRIPT.run().await;
}

#[tokio::test]
async fn vtsls_agrees_with_a_fresh_server_after_random_changes() {
    Grammar { without: Some("typescript-language-server"), ..TYPESCRIPT }.run().await;
}

#[tokio::test]
async fn rust_analyzer_agrees_with_a_fresh_server_after_random_changes() {
    let grammar = Grammar {
        project: "rust",
        without: None,
        directory: "src",
        extension: "rs",
        included: Some((
            "src/lib.rs",
            "\nmod random0;\nmod random1;\nmod random2;\nmod random3;\n",
        )),
        definition: ("src/lib.rs", "pub fn |doubled"),
        comment: |number| format!("// \u{1d49c} line {number}"),
        user: |_, uses| {
            // One use is inside of a macro.
            let line = "    crate::doubled(shape);\n".repeat(uses);
            format!(
                "pub fn f(shape: &dyn crate::Shape) {{\n{line}    assert!(crate::doubled(shape) > 0.0);\n}}\n"
            )
        },
    };
    grammar.run().await;
}
