//! The tool `search_code`.

use carrel_code::{Language, SearchHit, SearchRequest, SymbolKind};
use carrel_domain::{Failure, ToolGroup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer::AnswerFacts;
use super::outline::cut;
use super::source_file::SourceFile;
use super::symbol_indexes::refresh;
use crate::files::{WorkspaceFiles, check_given, run_cancellable, shown};
use crate::response::Reply;
use crate::text::line;
use crate::tool::{About, Tool, ToolResult};
use crate::tool_context::ToolContext;

/// Hits of a search unless the call asks for more.
const DEFAULT_LIMIT: usize = 10;

/// Bytes of a signature in a hit.
const MAX_SIGNATURE: usize = 100;

pub(super) struct SearchCode;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Input {
    /// Words of names, comments, signatures or bodies; `rateLimit` and `rate_limit` are the same.
    #[schemars(extend("x-brief" = ""))]
    query: String,
    /// Only below this directory, or in this file.
    #[schemars(extend("x-brief" = ""))]
    path: Option<String>,
    /// Only symbols of this kind, such as `function`, `class` or `method`.
    #[schemars(extend("x-brief" = ""))]
    kind: Option<String>,
    /// Only files of this language, such as `rust`.
    #[schemars(extend("x-brief" = false))]
    language: Option<String>,
    /// Maximum number of hits; 10 by default, at most 100.
    #[schemars(extend("x-brief" = ""))]
    limit: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Facts {
    #[serde(flatten)]
    answer: AnswerFacts,
    hits: Vec<Hit>,
    /// Hits whose files could not be read any more, with the reason.
    left_out: Vec<String>,
}

/// A symbol that fits the query.
#[derive(Debug, Serialize, JsonSchema)]
struct Hit {
    path: String,
    line: usize,
    last_line: usize,
    symbol: String,
    kind: &'static str,
    score: f64,
}

impl Tool for SearchCode {
    type Input = Input;
    type Facts = Facts;

    const ABOUT: About = About {
        name: "search_code",
        title: "Search for symbols by words",
        group: ToolGroup::Code,
        in_default_set: false,
        description: "Finds symbols by words of their names, comments, signatures and bodies, the \
            best first: for where something is done.",
        ..About::READ
    };

    async fn call(context: &ToolContext, input: Input) -> ToolResult<Facts> {
        check_given("query", input.query.trim())?;
        let files = WorkspaceFiles::of(context);
        let request = request(&files, &input)?;
        let own = context.clone();
        run_cancellable(context, move |workspace, cancel| {
            let fresh = refresh(&own, workspace, cancel)?;
            let hits = fresh.view().search(&request);
            let answer = AnswerFacts::of_index(&fresh);
            let shown = ShownHits::of(&hits, |hit| described(&own, &files, hit));
            let mut text = shown.text(&input.query);
            answer.notes().for_each(|note| line(&mut text, &note));
            let ShownHits { hits, left_out, .. } = shown;
            Ok(Reply::text(text, Facts { answer, hits, left_out }))
        })
        .await
    }
}

/// The hits whose files are still as the index knows them, and the others.
struct ShownHits {
    rows: Vec<String>,
    hits: Vec<Hit>,
    left_out: Vec<String>,
}

impl ShownHits {
    fn of(hits: &[SearchHit], described: impl Fn(&SearchHit) -> Result<String, Failure>) -> Self {
        let mut all = Self { rows: Vec::new(), hits: Vec::new(), left_out: Vec::new() };
        for hit in hits {
            match described(hit) {
                Ok(row) => {
                    all.rows.push(row);
                    all.hits.push(fact(hit));
                }
                // It vanished since it was listed, for example.
                Err(failure) => {
                    let name = shown(&hit.definition.file);
                    let reason = failure.message.trim_start_matches(&*name);
                    let reason = reason.trim_start_matches([':', ' ']);
                    all.left_out.push(format!("{name} ({reason})"));
                }
            }
        }
        all
    }

    fn text(&self, query: &str) -> String {
        let mut text = match self.rows.len() {
            0 => format!("no results for \"{query}\""),
            count => format!("{count} results for \"{query}\":"),
        };
        for (number, row) in self.rows.iter().enumerate() {
            line(&mut text, &format!("{}. {row}", number + 1));
        }
        if !self.left_out.is_empty() {
            line(&mut text, &format!("[left out: {}]", self.left_out.join(", ")));
        }
        text
    }
}

fn request(files: &WorkspaceFiles, input: &Input) -> Result<SearchRequest, Failure> {
    let kind = input.kind.as_deref().map(|word| {
        SymbolKind::of_word(word).ok_or_else(|| {
            let all: Vec<_> = SymbolKind::ALL.iter().map(|kind| kind.as_str()).collect();
            Failure::argument("kind", format!("no kind \"{word}\"; one of {}", all.join(", ")))
        })
    });
    let language = input.language.as_deref().map(|word| {
        Language::of_name(word).ok_or_else(|| {
            let all: Vec<_> = Language::ALL.iter().map(|one| one.as_str()).collect();
            Failure::argument(
                "language",
                format!("no language \"{word}\"; one of {}", all.join(", ")),
            )
        })
    });
    Ok(SearchRequest {
        query: input.query.clone(),
        below: files.workspace.relative_or_top(input.path.as_deref()),
        kinds: kind.transpose()?.into_iter().collect(),
        language: language.transpose()?,
        limit: input.limit.filter(|limit| *limit > 0).unwrap_or(DEFAULT_LIMIT),
    })
}

/// Returns the place, the path of names where the signature does not say it, and the signature.
fn described(
    context: &ToolContext,
    files: &WorkspaceFiles,
    hit: &SearchHit,
) -> Result<String, Failure> {
    let one = &hit.definition;
    let file = SourceFile::load(files, &context.toolbox.symbols, &one.file)?;
    let signature = cut(&file.signature(one), MAX_SIGNATURE);
    let above = one.path.split_last().map_or(String::new(), |(_, above)| above.join("::"));
    let above = if above.is_empty() { above } else { format!("{above}: ") };
    file.record_shown(files, [(one.line, one.line)]);
    let (first, last) = (one.line, one.lines.1);
    let lines = if first == last { first.to_string() } else { format!("{first}-{last}") };
    Ok(format!("{}:{lines} {above}{signature}", shown(&one.file)))
}

fn fact(hit: &SearchHit) -> Hit {
    let one = &hit.definition;
    Hit {
        path: shown(&one.file),
        line: one.line,
        last_line: one.lines.1,
        symbol: one.path.join("::"),
        kind: one.kind.as_str(),
        score: (hit.score * 100.0).round() / 100.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carrel_code::Definition;
    use carrel_domain::Code;
    use pretty_assertions::assert_eq;

    fn hit(file: &str) -> SearchHit {
        let definition = Definition {
            file: file.into(),
            language: Language::Rust,
            path: vec!["take".into()],
            kind: SymbolKind::Function,
            line: 3,
            lines: (3, 5),
            bytes: (0, 0, 9),
            has_body: true,
            depth: 0,
        };
        SearchHit { definition, score: 1.0 }
    }

    #[test]
    fn a_file_that_vanished_takes_no_other_hit_with_it() {
        let described = |hit: &SearchHit| match hit.definition.file.to_str() {
            Some("gone.rs") => Err(Failure::new(Code::NotFound, "gone.rs: no such file")),
            _ => Ok(format!("{}:3-5 fn take()", shown(&hit.definition.file))),
        };
        let found = ShownHits::of(&[hit("a.rs"), hit("gone.rs"), hit("b.rs")], described);
        assert_eq!(
            found.text("take"),
            "2 results for \"take\":\n1. a.rs:3-5 fn take()\n2. b.rs:3-5 fn take()\n\
             [left out: gone.rs (no such file)]\n"
        );
        assert_eq!(found.hits.iter().map(|hit| &*hit.path).collect::<Vec<_>>(), ["a.rs", "b.rs"]);
    }
}
