//! Each server on a small project of several files, in the sandbox: what it finds, and what it finds after files were
//! written, created and removed without its knowledge, and after it was killed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pretty_assertions::assert_eq;

use crate::test_environment::{TestEnvironment, answered, tree};

/// A function of a project, and what is known about it.
struct Scenario {
    project: &'static str,
    server: &'static str,
    /// The function.
    name: &'static str,
    new_name: &'static str,
    /// A use, with a mark at the name.
    used: (&'static str, &'static str),
    definition: &'static [&'static str],
    /// With the declarations.
    references: &'static [&'static str],
    callers: &'static [&'static str],
    /// A function, with a mark, and what it calls; none if the server cannot tell.
    callees: Option<(&'static str, &'static str, &'static [&'static str])>,
    /// A file that is not there yet and uses the function once.
    added: (&'static str, &'static str, &'static str),
    /// A file with references whose first line gets another line above it.
    shifted: (&'static str, &'static str),
    /// A text of a file, one in its place that is wrong, and the problems.
    broken: (&'static str, &'static str, &'static str, &'static [&'static str]),
    /// An interface, with a mark, and what implements it.
    implemented: Option<(&'static str, &'static str, &'static [&'static str])>,
    /// A word of the function's documentation or signature.
    hover: &'static str,
}

impl Scenario {
    async fn run(self) {
        let env = TestEnvironment::new(self.project);
        self.run_in(env).await;
    }

    async fn run_in(self, env: TestEnvironment) {
        self.finds_everything(&env).await;
        self.sees_changes(&env).await;
        self.survives_a_kill(&env).await;
        self.tells_problems(&env).await;
        self.renames(&env).await;
        env.close().await;
    }

    async fn finds_everything(&self, env: &TestEnvironment) {
        let (path, piece) = self.used;
        assert_eq!(env.definition(path, piece).await, self.definition);
        assert_eq!(env.references(path, piece).await, self.references);
        assert_eq!(env.callers(path, piece).await, self.callers);
        if let Some((path, piece, callees)) = self.callees {
            assert_eq!(env.callees(path, piece).await, callees);
        }
        if let Some((path, piece, implementations)) = self.implemented {
            assert_eq!(env.implementations(path, piece).await, implementations);
        }
        let answer = answered(env.servers.hover(&env.context, &env.at(path, piece)).await);
        let text = answer.value.unwrap_or_default();
        assert!(text.contains(self.hover), "{text}");
        assert_eq!((answer.server, answer.incomplete), (self.server, None));
    }

    async fn sees_changes(&self, env: &TestEnvironment) {
        let (path, piece) = self.used;
        let (added, text, reference) = self.added;
        env.put(added, text);
        let mut with_added: Vec<_> = self.references.to_vec();
        with_added.push(reference);
        with_added.sort_unstable();
        let mut found = env.references(path, piece).await;
        // A file that has to be imported may be found twice: where it is, and in the import.
        found.retain(|found| !found.starts_with(added) || found == reference);
        found.sort_unstable();
        assert_eq!(found, with_added);

        std::fs::remove_file(env.path(added)).unwrap();
        assert_eq!(env.references(path, piece).await, self.references);

        let (shifted, line) = self.shifted;
        let before = env.text(shifted);
        env.put(shifted, &format!("{line}\n{before}"));
        let lower = self.references.iter().map(|reference| match reference.strip_prefix(shifted) {
            Some(place) => {
                let (line, column) = place[1..].split_once(':').unwrap();
                format!("{shifted}:{}:{column}", line.parse::<usize>().unwrap() + 1)
            }
            None => (*reference).to_owned(),
        });
        assert_eq!(env.references(path, piece).await, lower.collect::<Vec<_>>());
        env.put(shifted, &before);
        assert_eq!(env.references(path, piece).await, self.references);
    }

    async fn survives_a_kill(&self, env: &TestEnvironment) {
        let (path, piece) = self.used;
        assert!(env.kill() > 0);
        assert_eq!(env.references(path, piece).await, self.references);
    }

    async fn tells_problems(&self, env: &TestEnvironment) {
        let (path, right, wrong, problems) = self.broken;
        assert_eq!(env.problems(path).await, Vec::<String>::new());
        env.replace(path, right, wrong);
        assert_eq!(env.problems(path).await, problems);
        env.replace(path, wrong, right);
        assert_eq!(env.problems(path).await, Vec::<String>::new());
    }

    async fn renames(&self, env: &TestEnvironment) {
        let (path, piece) = self.used;
        let workspace = env.context.workspace.path();
        let before = tree(workspace);
        let change = env.rename(path, piece, self.new_name).await;
        assert_eq!(change.operations, []);
        assert_eq!(tree(workspace), before, "a proposal changes nothing");
        env.apply(&change);
        let is_source = |path: &PathBuf| {
            let ends = [".rs", ".go", ".py", ".ts", ".c", ".h"];
            ends.iter().any(|end| path.to_string_lossy().ends_with(end))
        };
        let renamed = before.into_iter().map(|(path, text)| {
            let text = if is_source(&path) { text.replace(self.name, self.new_name) } else { text };
            (path, text)
        });
        // Comments keep the name; the projects have none with it, except where a documentation must begin so.
        let keep = |texts: BTreeMap<PathBuf, String>| -> BTreeMap<PathBuf, String> {
            let lines = |text: String| {
                let lines = text.lines().filter(|line| !line.starts_with("// "));
                lines.collect::<Vec<_>>().join("\n")
            };
            texts.into_iter().map(|(path, text)| (path, lines(text))).collect()
        };
        assert_eq!(keep(tree(workspace)), keep(renamed.collect()));
        let piece = piece.replace(self.name, self.new_name);
        assert_eq!(env.definition(path, &piece).await, self.definition);
    }
}

#[tokio::test]
async fn rust_analyzer_finds_what_there_is_before_and_after_changes() {
    let scenario = Scenario {
        project: "rust",
        server: "rust-analyzer",
        name: "doubled",
        new_name: "two_times",
        used: ("src/report.rs", "= |doubled(rect"),
        definition: &["src/lib.rs:24:8"],
        references: &[
            "src/circle.rs:1:20",
            "src/circle.rs:14:5",
            "src/lib.rs:24:8",
            "src/report.rs:2:12",
            "src/report.rs:5:25",
        ],
        callers: &["report at 5:25", "twice at 14:5"],
        callees: Some(("src/report.rs", "pub fn |report", &["doubled at 5:25"])),
        added: (
            "tests/added.rs",
            "use shapes::*;\n#[test]\nfn area() { doubled(&Rectangle { width: 1.0, height: 1.0 }); }\n",
            "tests/added.rs:3:13",
        ),
        shifted: ("src/circle.rs", "// One line more."),
        broken: (
            "src/circle.rs",
            "-> f64 {\n    doubled",
            "-> u8 {\n    doubled",
            &["14 Error E0308"],
        ),
        implemented: Some((
            "src/lib.rs",
            "trait |Shape",
            &["src/circle.rs:7:16", "src/lib.rs:18:16"],
        )),
        hover: "fn doubled(shape: &dyn Shape) -> f64",
    };
    scenario.run().await;
}

#[tokio::test]
async fn gopls_finds_what_there_is_before_and_after_changes() {
    let scenario = Scenario {
        project: "go",
        server: "gopls",
        name: "Doubled",
        new_name: "TwoTimes",
        used: ("main.go", "shapes.|Doubled("),
        definition: &["shapes/shape.go:10:6"],
        references: &["main.go:10:30", "shapes/rectangle.go:10:9", "shapes/shape.go:10:6"],
        callers: &["main at 10:30", "quadrupled at 10:9"],
        callees: Some(("shapes/rectangle.go", "func |quadrupled", &["Doubled at 10:9"])),
        added: (
            "shapes/added.go",
            "package shapes\n\nvar two = Doubled(Rectangle{1, 1})\n",
            "shapes/added.go:3:11",
        ),
        shifted: ("shapes/rectangle.go", "// One line more."),
        broken: (
            "shapes/rectangle.go",
            "return Doubled(r) * 2",
            "return Doubled(1) * 2",
            &["10 Error InvalidIfaceAssign"],
        ),
        implemented: Some(("shapes/shape.go", "type |Shape", &["shapes/rectangle.go:4:6"])),
        hover: "returns twice the area",
    };
    scenario.run().await;
}

#[tokio::test]
async fn ty_finds_what_there_is_before_and_after_changes() {
    python("ty", &["8 Error unresolved-reference"]).run().await;
}

#[tokio::test]
async fn basedpyright_finds_what_there_is_before_and_after_changes() {
    let env = TestEnvironment::without_program("python", "ty");
    python(
        "basedpyright",
        &["8 Warning reportUnknownVariableType", "8 Error reportUndefinedVariable"],
    )
    .run_in(env)
    .await;
}

fn python(server: &'static str, problems: &'static [&'static str]) -> Scenario {
    Scenario {
        project: "python",
        server,
        name: "with_tax",
        new_name: "taxed",
        used: ("shop/main.py", ", |with_tax(5"),
        definition: &["shop/prices.py:6:5"],
        references: &[
            "shop/cart.py:1:25",
            "shop/cart.py:9:26",
            "shop/main.py:2:25",
            "shop/main.py:8:31",
            "shop/prices.py:6:5",
        ],
        callers: &["main at 8:31", "total at 9:26"],
        // `sum` has three overloads.
        callees: Some((
            "shop/cart.py",
            "def |total",
            &["sum at 9:22", "sum at 9:22", "sum at 9:22", "with_tax at 9:26"],
        )),
        added: (
            "shop/added.py",
            "import shop.prices\n\nx = shop.prices.with_tax(1)\n",
            "shop/added.py:3:17",
        ),
        shifted: ("shop/cart.py", "# One line more."),
        broken: ("shop/prices.py", "// 100", "// 100 + nothing", problems),
        implemented: None,
        hover: "Returns a price with its tax.",
    }
}

#[tokio::test]
async fn typescript_language_server_finds_what_there_is_before_and_after_changes() {
    typescript("typescript-language-server").run().await;
}

#[tokio::test]
async fn vtsls_finds_what_there_is_before_and_after_changes() {
    let env = TestEnvironment::without_program("typescript", "typescript-language-server");
    typescript("vtsls").run_in(env).await;
}

fn typescript(server: &'static str) -> Scenario {
    Scenario {
        project: "typescript",
        server,
        name: "withTax",
        new_name: "taxed",
        used: ("src/main.ts", " + |withTax("),
        definition: &["src/prices.ts:6:17"],
        references: &[
            "src/cart.ts:1:18",
            "src/cart.ts:7:62",
            "src/main.ts:2:10",
            "src/main.ts:6:29",
            "src/prices.ts:6:17",
        ],
        callers: &["main.ts at 6:29", "price at 7:62"],
        callees: Some((
            "src/cart.ts",
            "|price(): number {",
            &["reduce at 7:21", "withTax at 7:62"],
        )),
        added: (
            "src/added.ts",
            "import * as prices from \"./prices.js\";\nexport const x = prices.withTax(1);\n",
            "src/added.ts:2:25",
        ),
        shifted: ("src/cart.ts", "/* One line more. */"),
        broken: ("src/prices.ts", "return price * 1.19", "return \"1.19\"", &["7 Error 2322"]),
        implemented: Some(("src/prices.ts", "interface |Priced", &["src/cart.ts:3:14"])),
        hover: "Returns a price with its tax.",
    }
}

#[tokio::test]
async fn clangd_finds_what_there_is_before_and_after_changes() {
    let scenario = Scenario {
        project: "c-built",
        server: "clangd",
        name: "with_tax",
        new_name: "taxed",
        used: ("main.c", "+ |with_tax(5"),
        definition: &["prices.c:3:5"],
        references: &["cart.c:6:21", "main.c:7:29", "prices.c:3:5", "prices.h:5:5"],
        callers: &["main at 7:29", "total at 6:21"],
        // Version 14 of Debian knows no callees.
        callees: None,
        added: (
            "added.c",
            "#include \"prices.h\"\n\nint x(void) { return with_tax(1); }\n",
            "added.c:3:22",
        ),
        shifted: ("cart.c", "/* One line more. */"),
        broken: ("prices.c", "/ 100;", "/ nothing;", &["4 Error undeclared_var_use"]),
        implemented: None,
        hover: "Returns a price with its tax.",
    };
    scenario.run().await;
}
