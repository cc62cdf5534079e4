//! Random edits of real sources: all outside of the replaced range stays, and no syntax error is added.
//!
//! The files below `tests/real` are edited in every run, and some of Carrel's own. `CARREL_SOURCES=DIR` edits all files of
//! a directory instead of the latter. A run prints how many edits were made and refused in each language, and
//! `CARREL_SEED` repeats it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use carrel_code::{
    EditError, EditedSource, FileSymbols, Language, LeadingComments, ParsedSource, Side, Symbol,
    SymbolTarget, SyntaxTree, TargetError,
};

/// The symbols of one file that are edited in a run.
const SYMBOLS: usize = 12;

/// The largest file of a directory that is edited.
const MAX_BYTES: usize = 200_000;

/// Files of Carrel that are edited in a run.
const OWN_FILES: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    OwnBody,
    NewBody,
    OwnSignature,
    CopyBefore,
    CopyAfter,
    OwnDefinition,
    OwnWhole,
    Delete,
}

const OPERATIONS: [Operation; 8] = [
    Operation::OwnBody,
    Operation::NewBody,
    Operation::OwnSignature,
    Operation::CopyBefore,
    Operation::CopyAfter,
    Operation::OwnDefinition,
    Operation::OwnWhole,
    Operation::Delete,
];

/// The outcomes of the edits of one operation in one language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tally {
    changed: usize,
    unchanged: usize,
    refused: usize,
}

/// A body that is valid in any function of a language.
fn some_body(language: Language) -> &'static str {
    match language {
        Language::Rust => "\n    todo!()\n",
        Language::Go => "\n\tpanic(1)\n",
        Language::Python => "raise E(1)",
        Language::JavaScript | Language::TypeScript | Language::Tsx => "\n  throw 1;\n",
        Language::Java | Language::CSharp => "\n    throw null;\n",
        Language::Kotlin => "\n    throw E()\n",
        Language::Scala => "???",
        Language::Swift => "\n    fatalError()\n",
        Language::Ruby => "raise 1",
        Language::Lua => "return",
        Language::Bash => ":",
        _ => "\n    return;\n",
    }
}

fn apply(
    source: &ParsedSource<'_>,
    symbol: &Symbol,
    target: &SymbolTarget,
    operation: Operation,
) -> Option<Result<EditedSource, EditError>> {
    let text = source.text();
    let whole = || {
        // The indentation of the first line belongs to the copy.
        let line = text[..symbol.whole.start].rfind('\n').map_or(0, |feed| feed + 1);
        let is_alone = text[line..symbol.whole.start].trim().is_empty();
        let end =
            symbol.definition.end + usize::from(text[symbol.definition.end..].starts_with(';'));
        &text[if is_alone { line } else { symbol.whole.start }..end]
    };
    let body = symbol.body.clone().filter(|_| symbol.kind.is_callable());
    Some(match operation {
        Operation::OwnBody => {
            let body = body?;
            let inner = &text[body.clone()];
            let is_braced = inner.starts_with('{') && source.language() != Language::Ruby;
            let line = text[..body.start].rfind('\n').map_or(0, |feed| feed + 1);
            let is_alone = text[line..body.start].trim().is_empty();
            let own = match (is_braced, is_alone) {
                (true, _) => &text[body.start + 1..body.end - 1],
                (false, true) => &text[line..body.end],
                (false, false) => inner,
            };
            source.replace_body(target, own)
        }
        Operation::NewBody => {
            body?;
            source.replace_body(target, some_body(source.language()))
        }
        Operation::OwnSignature => {
            let body = body?;
            let head = text[symbol.head..body.start.max(symbol.head)].trim_end();
            source.replace_signature(target, head)
        }
        Operation::CopyBefore => source.insert(target, Side::Before, whole()),
        Operation::CopyAfter => source.insert(target, Side::After, whole()),
        Operation::OwnDefinition => {
            source.replace_symbol(target, &text[symbol.definition.clone()], LeadingComments::Keep)
        }
        Operation::OwnWhole => source.replace_symbol(target, whole(), LeadingComments::Replace),
        Operation::Delete => source.delete_symbol(target),
    })
}

/// Returns the names of the symbols outside of a range.
fn names_outside(symbols: &FileSymbols, range: &std::ops::Range<usize>) -> Vec<String> {
    let is_outside = |symbol: &&Symbol| {
        let name = &symbol.name_range;
        name.end <= range.start || name.start >= range.end
    };
    let outside = symbols.symbols.iter().filter(is_outside);
    outside.map(|symbol| format!("{} {}", symbol.kind, symbol.name)).collect()
}

/// Returns the texts that the grammar did not understand.
fn error_words(tree: &SyntaxTree, text: &str) -> Vec<String> {
    tree.errors().into_iter().map(|error| text[error].trim().to_owned()).collect()
}

/// Checks what every edit promises.
fn check(source: &ParsedSource<'_>, edited: &EditedSource, what: &str) {
    let (old, new) = (&edited.change.old, &edited.change.new);
    assert_eq!(source.text()[..old.start], edited.text[..new.start], "{what}");
    assert_eq!(source.text()[old.end..], edited.text[new.end..], "{what}");
    let tree = SyntaxTree::parse(source.language(), &edited.text).unwrap();
    let known = error_words(source.tree(), source.text());
    let words = error_words(&tree, &edited.text);
    // Macros of C are errors of one word.
    let is_macro = |word: &&String| !known.is_empty() && !word.is_empty() && !word.contains(' ');
    let unknown = words.iter().filter(|word| !is_macro(word)).count();
    assert!(unknown <= known.len(), "{what}:\n{}", edited.text);
    let symbols = FileSymbols::of(&tree, &edited.text);
    assert_eq!(names_outside(source.symbols(), old), names_outside(&symbols, new), "{what}");
    let lines = |text: &str| text.matches('\n').count();
    let (before, after) = (lines(source.text()), lines(&edited.text));
    assert_eq!(
        before - lines(&source.text()[old.clone()]),
        after - lines(&edited.text[new.clone()])
    );
}

type Tallies = BTreeMap<(Language, Operation), Tally>;

/// Edits some symbols of a source in every way, and returns descriptions of edits that should have been made.
fn edit_some(
    language: Language,
    path: &Path,
    text: &str,
    random: &mut fastrand::Rng,
    tallies: &mut Tallies,
) -> Vec<String> {
    let Ok(source) = ParsedSource::parse(language, text) else { return Vec::new() };
    let mut symbols: Vec<usize> = (0..source.symbols().symbols.len()).collect();
    random.shuffle(&mut symbols);
    let mut suspicious = Vec::new();
    for index in symbols.into_iter().take(SYMBOLS) {
        let symbol = &source.symbols().symbols[index];
        let name = source.symbols().path(index).join("::");
        let Ok(target) = SymbolTarget::parse(&name) else { continue };
        let target = target.at_line(symbol.line).of_kind(symbol.kind);
        for operation in OPERATIONS {
            let what = format!("{}:{} {name} {operation:?}", path.display(), symbol.line);
            let Some(result) = apply(&source, symbol, &target, operation) else { continue };
            let tally = tallies.entry((language, operation)).or_default();
            match result {
                Ok(edited) => {
                    check(&source, &edited, &what);
                    tally.changed += 1;
                    if matches!(operation, Operation::OwnDefinition | Operation::OwnWhole) {
                        suspicious
                            .push(format!("{what} changed lines {:?}", edited.change.old_lines));
                    }
                }
                Err(EditError::NoChange) => tally.unchanged += 1,
                Err(EditError::Target(TargetError::Ambiguous { .. })) => {}
                Err(error) => {
                    tally.refused += 1;
                    // A copy of what was not understood is not understood either. The grammar of Kotlin takes an
                    // annotation with arguments before some definitions for an expression.
                    let is_understood = !source.tree().has_error() && language != Language::Kotlin;
                    if operation != Operation::Delete && is_understood {
                        suspicious.push(format!("{what}: {error}"));
                    }
                }
            }
        }
    }
    suspicious
}

fn real_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries.filter(|path| !path.ends_with("README.md")).collect();
    files.sort();
    files
}

#[test]
fn edits_of_real_files_change_what_they_name_and_nothing_else() {
    let mut tallies = Tallies::new();
    let mut suspicious = Vec::new();
    let (seed, mut random) = random();
    for path in real_files() {
        let language = Language::of_path(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let crlf = text.replace("\r\n", "\n").replace('\n', "\r\n");
        suspicious.extend(edit_some(language, &path, &text, &mut random, &mut tallies));
        edit_some(language, &path, &crlf, &mut random, &mut tallies);
    }
    print(&tallies, &[format!("CARREL_SEED={seed}")]);
    for path in real_files() {
        let language = Language::of_path(&path).unwrap();
        let is_own =
            |((of, _), tally): (&(Language, _), &Tally)| *of == language && tally.changed > 0;
        assert!(language.grammar().is_err() || tallies.iter().any(is_own), "{language}");
    }
    assert!(suspicious.is_empty(), "{}", suspicious.join("\n"));
}

#[test]
fn edits_of_a_directory_change_what_they_name_and_nothing_else() {
    let mut tallies = Tallies::new();
    let mut suspicious = Vec::new();
    let (seed, mut random) = random();
    let mut files = sources();
    if std::env::var_os("CARREL_SOURCES").is_none() {
        random.shuffle(&mut files);
        files.truncate(OWN_FILES);
    }
    let mut edited = 0;
    for path in files {
        let Some(language) = Language::of_path(&path) else { continue };
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        if language.grammar().is_ok() && text.len() <= MAX_BYTES {
            edited += 1;
            suspicious.extend(edit_some(language, &path, &text, &mut random, &mut tallies));
        }
    }
    print(&tallies, &[format!("CARREL_SEED={seed}"), format!("{edited} files")]);
    assert!(edited > 0, "no file was edited");
    assert!(suspicious.is_empty(), "{}", suspicious.join("\n"));
}

/// Returns a seed, of `CARREL_SEED` if that is set, and what it makes.
fn random() -> (u64, fastrand::Rng) {
    let seed = std::env::var("CARREL_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    (seed, fastrand::Rng::with_seed(seed))
}

/// Returns the source files of the directory that `CARREL_SOURCES` names, or of all crates of Carrel.
fn sources() -> Vec<PathBuf> {
    let own = || Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned();
    let mut folders = vec![std::env::var_os("CARREL_SOURCES").map_or_else(own, PathBuf::from)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && Language::of_path(&entry.path()).is_some() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    files
}

#[expect(clippy::print_stdout, reason = "shown for a failed test, or on request")]
fn print(tallies: &Tallies, remarks: &[String]) {
    for ((language, operation), tally) in tallies {
        let Tally { changed, unchanged, refused } = tally;
        println!(
            "{language:<12} {operation:<14?} changed {changed:>6} unchanged {unchanged:>6} refused {refused:>6}"
        );
    }
    println!("{}", remarks.join("\n"));
}
