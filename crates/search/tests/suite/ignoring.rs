use carrel_fsroot::Problem;
use carrel_search::{Cancel, Error, GlobRequest, GrepRequest, Scope, Sensitive, glob};
use pretty_assertions::assert_eq;

use crate::{TestTree, find, names_in, refused, shown_in, text_of};

/// Rules of the workspace's root, files, and those of them that stay visible.
#[test]
fn ignore_rules_mean_what_git_says() {
    let table: &[(&str, &[&str], &[&str])] = &[
        ("/a.txt", &["a.txt", "sub/a.txt"], &["sub/a.txt"]),
        ("a.txt", &["a.txt", "sub/a.txt", "b"], &["b"]),
        ("sub/a.txt", &["sub/a.txt", "deep/sub/a.txt"], &["deep/sub/a.txt"]),
        ("build/", &["build/x", "sub/build/y", "other/z"], &["other/z"]),
        ("build/", &["build", "x"], &["build", "x"]),
        ("**/gen", &["gen", "a/b/gen", "a/gene"], &["a/gene"]),
        ("a/**/z", &["a/z", "a/b/c/z", "b/z"], &["b/z"]),
        ("a/**", &["a/x", "a/b/y", "c"], &["c"]),
        ("*.log", &["x.log", "a/y.log", "log"], &["log"]),
        ("f[0-9]", &["f1", "fx"], &["fx"]),
        ("f[!0-9]", &["f1", "fx"], &["f1"]),
        ("?.c", &["a.c", "ab.c"], &["ab.c"]),
        ("*.o\n!keep.o", &["keep.o", "x.o", "sub/keep.o"], &["keep.o", "sub/keep.o"]),
        ("!keep.o\n*.o", &["keep.o"], &[]),
        // What lies in an ignored directory cannot be brought back.
        ("dir/\n!dir/keep", &["dir/keep", "x"], &["x"]),
        ("dir/*\n!dir/keep", &["dir/keep", "dir/no"], &["dir/keep"]),
        ("[bad\nok", &["[bad", "ok", "x"], &["[bad", "x"]),
        ("# note\n\\#real\n\n", &["#real", "# note"], &["# note"]),
        ("", &["x"], &["x"]),
    ];
    for (rules, files, visible) in table {
        for name in [".gitignore", ".ignore", ".rgignore", ".git/info/exclude"] {
            let tree_fixture = TestTree::with(&[(name, rules)]);
            for file in *files {
                tree_fixture.file(file, "");
            }
            assert_eq!(shown_in(&tree_fixture.scope()), *visible, "{rules:?} in {name}");
            assert_eq!(
                shown_in(&Scope { ignored: true, ..tree_fixture.scope() }).len(),
                files.len()
            );
        }
    }
}

#[test]
fn rules_of_a_directory_end_with_it() {
    let tree_fixture = TestTree::with(&[
        (".gitignore", "*.log\n"),
        ("a/.gitignore", "!keep.log\nlocal\n"),
        ("a/keep.log", ""),
        ("a/no.log", ""),
        ("a/local", ""),
        ("b/keep.log", ""),
        ("b/local", ""),
        ("a/deep/keep.log", ""),
        ("ab/local", ""),
    ]);
    assert_eq!(
        shown_in(&tree_fixture.scope()),
        ["a/deep/keep.log", "a/keep.log", "ab/local", "b/local"]
    );
    // The rules above a scope count in it, and the ones beside it do not.
    assert_eq!(shown_in(&tree_fixture.at("a")), ["a/deep/keep.log", "a/keep.log"]);
    assert_eq!(shown_in(&tree_fixture.at("b")), ["b/local"]);
    assert_eq!(shown_in(&tree_fixture.at("a/deep")), ["a/deep/keep.log"]);
}

#[test]
fn stronger_ignore_files_overrule_weaker_ones() {
    let tree_fixture = TestTree::with(&[
        (".gitignore", "x\ny\nz\n"),
        (".ignore", "!x\n"),
        (".rgignore", "!y\n"),
        ("sub/.gitignore", "x\n"),
        ("x", ""),
        ("y", ""),
        ("z", ""),
        ("sub/x", ""),
    ]);
    // A weaker file does not overrule a stronger one from further down.
    assert_eq!(shown_in(&tree_fixture.scope()), ["sub/x", "x", "y"]);
}

#[test]
fn ignore_files_above_the_workspace_do_not_count() {
    let tree_fixture = TestTree::with(&[("a.txt", "")]);
    std::fs::write(tree_fixture.directory.path().join(".gitignore"), "*\n").unwrap();
    std::fs::write(tree_fixture.directory.path().join(".ignore"), "*\n").unwrap();
    assert_eq!(shown_in(&tree_fixture.scope()), ["a.txt"]);
}

#[test]
fn a_nested_repository_has_its_own_rules() {
    let tree_fixture = TestTree::with(&[
        (".gitignore", "*.tmp\n"),
        (".ignore", "*.bak\n"),
        ("nested/.git/HEAD", ""),
        ("nested/.git/info/exclude", "mine\n"),
        ("nested/a.tmp", ""),
        ("nested/a.bak", ""),
        ("nested/mine", ""),
        ("plain/a.tmp", ""),
    ]);
    assert_eq!(shown_in(&tree_fixture.scope()), ["nested/a.tmp"]);
    assert_eq!(shown_in(&tree_fixture.at("nested")), ["nested/a.tmp"]);
}

#[test]
fn what_is_always_left_out_cannot_be_brought_back() {
    let tree_fixture = TestTree::with(&[
        (".gitignore", "!node_modules\n!.git\n!.carrel-write-7-1\n"),
        (".ignore", "!node_modules/\n!.git/\n"),
        ("node_modules/x.js", "needle"),
        ("sub/node_modules/y.js", "needle"),
        (".git/config", "needle"),
        ("sub/.git/config", "needle"),
        (".carrel-write-7-1", "needle"),
        ("a.js", "needle"),
    ]);
    assert_eq!(text_of(&tree_fixture.scope(), "needle"), "a.js:1:needle\n");
    let all = Scope { hidden: true, ignored: true, ..tree_fixture.scope() };
    let text = text_of(&all, "needle");
    let expected = "a.js:1:needle\nnode_modules/x.js:1:needle\nsub/node_modules/y.js:1:needle\n";
    assert_eq!(text, expected);
    // A glob brings nothing back either.
    for pattern in [".git/*", "**/.git/config", ".carrel-write*"] {
        assert!(names_in(&all, pattern).is_empty(), "{pattern}");
    }
    // The path itself does.
    assert_eq!(text_of(&tree_fixture.at(".git"), "needle"), ".git/config:1:needle\n");
    assert_eq!(
        text_of(&tree_fixture.at("sub/.git/config"), "needle"),
        "sub/.git/config:1:needle\n"
    );
    assert_eq!(text_of(&tree_fixture.at("node_modules"), "needle"), "node_modules/x.js:1:needle\n");
}

#[test]
fn hidden_names_are_included_on_request() {
    let tree_fixture =
        TestTree::with(&[(".github/ci.yml", "needle"), (".env", "needle"), ("a", "needle")]);
    assert_eq!(shown_in(&tree_fixture.scope()), ["a"]);
    assert_eq!(
        shown_in(&Scope { hidden: true, ..tree_fixture.scope() }),
        [".env", ".github/ci.yml", "a"]
    );
    assert_eq!(shown_in(&tree_fixture.at(".github")), [".github/ci.yml"]);
    // A rule of the workspace shows them, too.
    tree_fixture.file(".ignore", "!.github\n");
    assert_eq!(shown_in(&tree_fixture.scope()), [".github/ci.yml", "a"]);
}

#[test]
fn a_glob_does_not_overrule_ignore_and_hidden_rules() {
    let tree_fixture = TestTree::with(&[
        (".gitignore", "ignored.go\nbuild/\n"),
        ("ignored.go", "needle"),
        ("build/x.go", "needle"),
        (".hidden.go", "needle"),
        ("a.go", "needle"),
        ("a.rs", "needle"),
    ]);
    for globs in [&["*.go"][..], &["ignored.go", "*.go", "build/**", ".hidden.go"]] {
        let globs = globs.iter().map(|&glob| glob.to_owned()).collect();
        let request = GrepRequest { globs, ..GrepRequest::new("needle") };
        assert_eq!(find(&tree_fixture.scope(), &request).text(), "a.go:1:needle\n");
    }
    assert_eq!(names_in(&tree_fixture.scope(), "ignored.go"), Vec::<String>::new());
}

#[test]
fn what_is_named_is_searched_whatever_the_rules_say() {
    let tree_fixture = TestTree::with(&[
        (".gitignore", "secret.txt\nbuild/\n*.log\n"),
        ("secret.txt", "needle"),
        ("build/out.txt", "needle"),
        ("build/out.log", "needle"),
    ]);
    assert_eq!(text_of(&tree_fixture.at("secret.txt"), "needle"), "secret.txt:1:needle\n");
    // The directory is named, what is in it is not.
    assert_eq!(text_of(&tree_fixture.at("build"), "needle"), "build/out.txt:1:needle\n");
}

#[test]
fn credentials_are_hidden_from_browsing_doors() {
    let tree_fixture =
        TestTree::with(&[(".ssh/id", "needle"), (".aws/x", "needle"), ("a", "needle")]);
    tree_fixture.link(".ssh", "innocent");
    let tool = Scope { hidden: true, ..tree_fixture.scope() };
    assert_eq!(text_of(&tool, "needle"), ".aws/x:1:needle\n.ssh/id:1:needle\na:1:needle\n");
    let browsing = Scope { sensitive: Sensitive::Hidden, ..tool };
    assert_eq!(text_of(&browsing, "needle"), "a:1:needle\n");
    for path in [".ssh", ".ssh/id", "innocent", "innocent/id"] {
        let scope = Scope { path: path.into(), ..browsing.clone() };
        match refused(&scope, &GrepRequest::new("needle")) {
            Error::Path(error) => assert_eq!(error.problem(), Problem::Sensitive, "{path}"),
            other => panic!("{path}: {other}"),
        }
    }
}

#[test]
fn an_ignore_file_that_is_too_large_is_reported_and_does_not_count() {
    let tree_fixture = TestTree::with(&[("a.txt", ""), ("sub/b.txt", "")]);
    tree_fixture.file("sub/.gitignore", "b.txt\n".repeat(100_000));
    let report = glob(&tree_fixture.scope(), &GlobRequest::new("*"), &Cancel::new()).unwrap();
    assert_eq!((report.total, report.unreadable.total), (2, 1));
    assert_eq!(report.unreadable.first[0].path.to_str(), Some("sub/.gitignore"));
}
