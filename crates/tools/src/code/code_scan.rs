//! The tool `code_scan`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use carrel_code::{
    CodeMatch, CodeSearch, Constraints, Language, ParsedSource, Rule, SearchError, SearchResult,
    TimeBudget,
};
use carrel_domain::{Code, Failure, ToolGroup};
use carrel_fsroot::FileKind;
use carrel_search::{Cancel, Scope, source_files};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::AnswerFacts;
use super::left_out::LeftOut;
use super::outline::cut;
use crate::files::{WorkspaceFiles, run_cancellable, shown};
use crate::named_workspace::NamedWorkspace;
use crate::reply_limit::MaxBytes;
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;

/// Matches unless the call asks for more.
const DEFAULT_RESULTS: usize = 50;

const MAX_RESULTS: usize = 200;

/// The time of a scan over all files.
const SCAN_TIME: Duration = Duration::from_secs(30);

/// Bytes of the first line of a match, and of a captured text.
const MAX_LINE: usize = 120;
const MAX_CAPTURE: usize = 60;

pub(super) struct CodeScan;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// The pattern: source text with `$A` for one node and `$$$A` for any number of them.
    #[schemars(extend("x-brief" = "source text; $A is one node, $$$A any number"))]
    pattern: Option<String>,
    /// Instead of a pattern, an object of conditions that all hold: `pattern`, `kind`, `regex`, `inside`, `has`,
    /// `precedes`, `follows`, `all`, `any`, `not`.
    #[schemars(extend("x-brief" = "or {pattern,kind,regex,inside,has,all,any,not,…}"))]
    rule: Option<Value>,
    /// Conditions on metavariables: `{"A": {"regex": "…", "kind": "…"}}`.
    #[schemars(extend("x-brief" = false))]
    constraints: Option<Value>,
    /// The file or directory; the workspace by default.
    #[schemars(extend("x-brief" = ""))]
    path: Option<String>,
    /// Only files of this language; those whose grammar understands the pattern by default.
    #[schemars(extend("x-brief" = ""))]
    language: Option<String>,
    /// Maximum number of matches; 50 by default, at most 200.
    #[schemars(extend("x-brief" = ""))]
    max_results: Option<usize>,
    max_bytes: Option<MaxBytes>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    #[serde(flatten)]
    answer: AnswerFacts,
    /// Files that were looked at.
    scanned: usize,
    /// Matches in them; with a cut, those until then.
    total: usize,
    matches: Vec<MatchFacts>,
    /// Files that could not be read or parsed, with the reason.
    skipped: Vec<String>,
    /// The scan ended before all files were looked at.
    is_cut: bool,
}

/// A match.
#[derive(Debug, Serialize, JsonSchema)]
struct MatchFacts {
    path: String,
    line: usize,
    last_line: usize,
    symbol: String,
    captures: BTreeMap<String, String>,
}

impl Tool for CodeScan {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "code_scan",
        title: "Search by structure",
        group: ToolGroup::Code,
        in_default_set: false,
        description: "Finds code by its structure: `$A.unwrap_or($B)` matches whatever the layout.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        let question = ScanQuestion::of(&input)?;
        let files = WorkspaceFiles::of(context);
        let below = files.workspace.relative_or_top(input.path.as_deref());
        let limit = context.reply_limit(input.max_bytes);
        let most = input.max_results.filter(|most| *most > 0).unwrap_or(DEFAULT_RESULTS);
        let time = context.options.command_settings.timeout.unwrap_or(SCAN_TIME).min(SCAN_TIME);
        run_cancellable(context, move |workspace, cancel| {
            let since = SystemTime::now();
            let (scan, left_out) = Scan::of(workspace, &below, &question, cancel)?;
            let mut outcome = Outcome::new(most.min(MAX_RESULTS), limit, left_out);
            let is_cancelled = || cancel.is_cancelled();
            let budget = TimeBudget::of(time);
            let budget = budget.cancelled_by(&is_cancelled);
            for path in &scan.files {
                if !outcome.add_file(&files, &scan, path, &budget)? {
                    break;
                }
            }
            Ok(outcome.reply(&scan, since))
        })
        .await
    }
}

/// The rule of a scan and its constraints.
pub(super) struct ScanQuestion {
    rule: Rule,
    constraints: Constraints,
    language: Option<Language>,
}

impl ScanQuestion {
    fn of(input: &Input) -> Result<Self, Failure> {
        let rule = match (&input.pattern, &input.rule) {
            (Some(pattern), None) => Rule::pattern(pattern.as_str()),
            (None, Some(rule)) => decoded("rule", rule)?,
            _ => return Err(Failure::argument("pattern", "give pattern or rule, and not both")),
        };
        let constraints = input.constraints.as_ref();
        let constraints =
            constraints.map_or(Ok(Constraints::new()), |all| decoded("constraints", all))?;
        let language = input.language.as_deref().map(language_of).transpose()?;
        Ok(Self { rule, constraints, language })
    }
}

/// Reads a nested argument, whose errors name the field.
pub(super) fn decoded<T: serde::de::DeserializeOwned>(
    name: &str,
    value: &Value,
) -> Result<T, Failure> {
    // Some clients send nested values as text.
    let parsed = value.as_str().filter(|text| text.trim_start().starts_with(['{', '[']));
    let parsed = parsed.and_then(|text| serde_json::from_str(text).ok());
    let value = parsed.unwrap_or_else(|| value.clone());
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { String::new() } else { format!(" at {path}") };
        Failure::argument(name, format!("{name}{place}: {}", error.into_inner()))
    })
}

fn language_of(word: &str) -> Result<Language, Failure> {
    Language::of_name(word).ok_or_else(|| {
        let all: Vec<_> = Language::ALL.iter().map(|one| one.as_str()).collect();
        Failure::argument("language", format!("no language \"{word}\"; one of {}", all.join(", ")))
    })
}

/// The files of a scan, and the compiled rule of each language.
struct Scan {
    files: Vec<PathBuf>,
    searches: BTreeMap<Language, CodeSearch>,
}

impl Scan {
    fn of(
        workspace: &NamedWorkspace,
        below: &Path,
        question: &ScanQuestion,
        cancel: &Cancel,
    ) -> Result<(Self, LeftOut), Failure> {
        // A file that is named is searched in any language; in directories data has to be asked for.
        let is_file = workspace.files().metadata(if below.as_os_str().is_empty() {
            Path::new(".")
        } else {
            below
        })?;
        let is_file = is_file.kind == FileKind::File;
        let wanted = |path: &Path| {
            let is_wanted = |found: &Language| match question.language {
                Some(one) => one == *found,
                None => is_file || found.is_program(),
            };
            Language::of_path(path).filter(is_wanted)
        };
        let scope = Scope::at(workspace.files(), below);
        let list = source_files(&scope, |path| wanted(path).is_some(), cancel)?;
        let mut left_out = LeftOut::of_walk(&list);
        let mut files: Vec<_> = list.files.into_iter().map(|file| file.path).collect();
        let mut searches = BTreeMap::new();
        let mut refused = None;
        for path in &files {
            let Some(language) = wanted(path) else {
                return Err(unsupported(path, Code::ScanUnsupported));
            };
            if searches.contains_key(&language) {
                continue;
            }
            match CodeSearch::compile(language, &question.rule, &question.constraints) {
                Ok(search) => drop(searches.insert(language, Some(search))),
                Err(error) => {
                    // The files of other languages may understand it.
                    searches.insert(language, None);
                    refused.get_or_insert(error);
                }
            }
        }
        let searches: BTreeMap<_, _> = searches
            .into_iter()
            .filter_map(|(language, search)| Some((language, search?)))
            .collect();
        if let (true, Some(error)) = (searches.is_empty(), refused) {
            return Err(Failure::new(Code::InvalidPattern, error.to_string()));
        }
        files.retain(|path| {
            let Some(language) = wanted(path) else { return false };
            let is_searched = searches.contains_key(&language);
            if !is_searched {
                left_out.add_language(language);
            }
            is_searched
        });
        Ok((Self { files, searches }, left_out))
    }
}

pub(super) fn unsupported(path: &Path, code: Code) -> Failure {
    let name = shown(path);
    let message = format!("{name}: files of this name have no grammar here");
    Failure::new(code, message).with("path", name)
}

/// The matches so far.
struct Outcome {
    most: usize,
    limit: usize,
    scanned: usize,
    rows: String,
    matches: Vec<MatchFacts>,
    total: usize,
    left_out: LeftOut,
    is_cut: bool,
    /// The file in which the time was over.
    timed_out: Option<String>,
}

impl Outcome {
    fn new(most: usize, limit: usize, left_out: LeftOut) -> Self {
        Self {
            most,
            limit,
            scanned: 0,
            rows: String::new(),
            matches: Vec::new(),
            total: 0,
            left_out,
            is_cut: false,
            timed_out: None,
        }
    }

    /// Looks at one file; false if the reply is full or the time over.
    fn add_file(
        &mut self,
        files: &WorkspaceFiles,
        scan: &Scan,
        path: &Path,
        budget: &TimeBudget<'_>,
    ) -> Result<bool, Failure> {
        let Some(search) = Language::of_path(path).and_then(|one| scan.searches.get(&one)) else {
            return Ok(true);
        };
        let name = shown(path);
        let loaded = match files.load(path) {
            Ok(loaded) => loaded,
            Err(failure) => {
                self.left_out.add_unread(&name, &failure);
                return Ok(true);
            }
        };
        self.scanned += 1;
        let Ok(text) = std::str::from_utf8(&loaded.bytes) else {
            self.left_out.add(&name, "not UTF-8");
            return Ok(true);
        };
        if !search.may_match(&loaded.bytes) {
            return Ok(true);
        }
        let source = match ParsedSource::parse(search.language(), text) {
            Ok(source) => source,
            Err(error) => {
                self.left_out.add(&name, &error.to_string());
                return Ok(true);
            }
        };
        let mut found = SearchResult::default();
        match search.run_into(&source, budget, &mut found) {
            Ok(()) => {}
            Err(error @ SearchError::Cancelled) => {
                return Err(Failure::new(Code::Cancelled, error.to_string()));
            }
            Err(SearchError::TimedOut) => self.timed_out = Some(name.clone()),
            Err(error @ (SearchError::TooDeep | SearchError::OtherLanguage { .. })) => {
                self.left_out.add(&name, &error.to_string());
            }
        }
        self.is_cut |= found.is_cut || self.timed_out.is_some();
        let mut ranges = Vec::new();
        for one in &found.matches {
            self.total += 1;
            if self.matches.len() >= self.most || self.rows.len() >= self.limit {
                self.is_cut = true;
                continue;
            }
            ranges.push(one.lines);
            self.add(&name, text, one);
        }
        let (hash, lines) = (loaded.hash(), carrel_edit::lines(text).count());
        for (first, last) in ranges.into_iter().filter(|(first, last)| first == last) {
            let extent = crate::read_tracker::ReadExtent::Lines(first, last, lines);
            files.record_read(loaded.key.clone(), hash, &extent);
        }
        Ok(!self.is_cut)
    }

    fn add(&mut self, name: &str, text: &str, one: &CodeMatch) {
        let captures: BTreeMap<_, _> = one
            .captures
            .iter()
            .map(|capture| (capture.name.clone(), one_line(capture.text(text), MAX_CAPTURE)))
            .collect();
        let first = text.get(one.range.clone()).unwrap_or_default();
        let first = one_line(first.lines().next().unwrap_or_default(), MAX_LINE);
        let symbol = one.symbol.join("::");
        let around = if symbol.is_empty() { String::new() } else { format!("[{symbol}] ") };
        let values = captures.iter().map(|(name, text)| format!("${name}={text}"));
        let values = values.collect::<Vec<_>>().join(", ");
        let values = if values.is_empty() { values } else { format!("  {{{values}}}") };
        let (line_number, last_line) = one.lines;
        line(&mut self.rows, &format!("{name}:{line_number}:{around}{first}{values}"));
        let path = name.to_owned();
        self.matches.push(MatchFacts { path, line: line_number, last_line, symbol, captures });
    }

    fn reply(self, scan: &Scan, since: SystemTime) -> Reply<Facts> {
        let Self { scanned, rows, matches, total, left_out, is_cut, timed_out, .. } = self;
        let mut text = format!("scanned={scanned} matches={total}");
        if total == 0 && timed_out.is_some() {
            line(&mut text, "No matches until the time was over.");
        } else if total == 0 {
            line(&mut text, "No matches.");
            // Only a hint for the one language that was asked.
            if let [only] = scan.searches.values().collect::<Vec<_>>()[..]
                && let Some(hint) = only.hint()
            {
                line(&mut text, &format!("[{hint}]"));
            }
        }
        line(&mut text, rows.trim_end());
        if let Some(name) = timed_out {
            let advice = "narrow the files, or add a `kind` or a literal word to the rule";
            line(&mut text, &format!("[incomplete: the time was over in {name}; {advice}]"));
        } else if is_cut {
            line(&mut text, "[cut; max_results shows up to 200, or name a path]");
        }
        left_out.notes("scanned").for_each(|note| line(&mut text, &note));
        let answer = left_out.answer(since, is_cut.then_some("matches behind the last one"));
        let skipped = left_out.files();
        Reply::text(text, Facts { answer, scanned, total, matches, skipped, is_cut })
    }
}

fn one_line(text: &str, limit: usize) -> String {
    cut(&text.split_whitespace().collect::<Vec<_>>().join(" "), limit)
}
