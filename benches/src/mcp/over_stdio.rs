//! Calls over stdio, against the reference server's answers to the same.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::lines::LineClient;
use super::program::Carrel;
use super::reference::{REFERENCE, Reference};
use super::{EDITED_BYTES, READ_LIMIT};
use crate::Fault;
use crate::corpus::{self, Corpus, Edits};
use crate::ground::Ground;
use crate::measure::{alone, interleave, timed};
use crate::report::{Budget, Row};
use crate::sandbox::installed;
use crate::say;
use crate::tools::{RG, edit_arguments, glob_arguments, grep_arguments, must_agree};

const START_LIMIT: Duration = Duration::from_millis(15);

pub(crate) fn rows(ground: &Ground, corpus: &Corpus, carrel: &Carrel) -> Result<Vec<Row>, Fault> {
    let reference = Reference::find();
    if let Err(why) = &reference {
        say(&format!("NOTHING IS COMPARED with {REFERENCE}: {why}"));
    }
    let mut ours = LineClient::ready(&mut carrel.over_stdio())?;
    let mut rows = vec![trivial(ground, &mut ours)?, grep(ground, corpus, &mut ours)?];
    let theirs = match &reference {
        Ok(reference) => Ok(LineClient::ready(&mut reference.command(corpus))?),
        Err(why) => Err(why.clone()),
    };
    let mut both = Both { ground, corpus, ours, theirs };
    rows.extend([both.read()?, both.list()?, both.edit()?, both.find()?]);
    rows.push(start(ground, corpus, carrel, &reference)?);
    Ok(rows)
}

/// Measures a call that does nothing against a line that comes back as it is.
fn trivial(ground: &Ground, ours: &mut LineClient) -> Result<Row, Fault> {
    ours.call("workspaces", &json!({}))?;
    let line = "x".repeat(ours.length() - 1) + "\n";
    let mut cat = LineClient::start(&mut Command::new("cat"))?;
    let pair = interleave(
        ground.pace.calls,
        || timed(|| cat.exchange(line.as_bytes())),
        || ours.time("workspaces", &json!({})),
    )?;
    Ok(Row::new("`workspaces` over stdio; as long a line through `cat`", pair, Budget::None))
}

fn grep(ground: &Ground, corpus: &Corpus, ours: &mut LineClient) -> Result<Row, Fault> {
    let work = format!("Grep a literal in {} over stdio; the `rg` program", corpus.size());
    if installed("rg").is_none() {
        return Ok(Row::left_out(work, "rg is not installed", Budget::None));
    }
    let (arguments, directory) = (grep_arguments(), corpus.haystack());
    must_agree("Grep", &ours.call("Grep", &arguments)?, &RG, &directory)?;
    let pair = interleave(
        ground.pace.searches,
        || timed(|| corpus::run(&RG, &directory)),
        || ours.time("Grep", &arguments),
    )?;
    Ok(Row::new(work, pair, Budget::None))
}

fn start(
    ground: &Ground,
    corpus: &Corpus,
    carrel: &Carrel,
    reference: &Result<Reference, String>,
) -> Result<Row, Fault> {
    let (work, budget) = ("`carrel mcp`, start to first `tools/list`", Budget::Time(START_LIMIT));
    let ours = || LineClient::time_start(&mut carrel.over_stdio());
    match reference {
        Ok(reference) => {
            let theirs = || LineClient::time_start(&mut reference.command(corpus));
            let pair = interleave(ground.pace.starts, theirs, ours)?;
            Ok(Row::new(format!("{work}; {REFERENCE}"), pair, budget))
        }
        Err(why) => Ok(Row::alone(work, alone(ground.pace.starts, ours)?, why, budget)),
    }
}

/// Carrel and the reference server, or why there is none.
struct Both<'a> {
    ground: &'a Ground,
    corpus: &'a Corpus,
    ours: LineClient,
    theirs: Result<LineClient, String>,
}

/// A call in the words of one server.
struct Asked {
    tool: &'static str,
    arguments: Box<dyn FnMut() -> Value>,
}

impl Asked {
    /// Asks with other arguments each time.
    fn new(tool: &'static str, arguments: impl FnMut() -> Value + 'static) -> Self {
        Self { tool, arguments: Box::new(arguments) }
    }

    /// Always asks the same.
    fn always(tool: &'static str, arguments: Value) -> Self {
        Self::new(tool, move || arguments.clone())
    }

    fn time(&mut self, client: &mut LineClient) -> Result<Duration, Fault> {
        let arguments = (self.arguments)();
        client.time(self.tool, &arguments)
    }

    fn lines(&mut self, client: &mut LineClient) -> Result<usize, Fault> {
        let text = client.call(self.tool, &(self.arguments)())?;
        Ok(text.lines().filter(|line| !line.is_empty()).count())
    }
}

impl Both<'_> {
    fn read(&mut self) -> Result<Row, Fault> {
        let mut ours = Asked::always("Read", json!({ "file_path": corpus::LARGE }));
        let path = self.corpus.path.join(corpus::LARGE);
        let mut theirs = Asked::always("read_text_file", json!({ "path": path }));
        self.agree(&mut ours, &mut theirs)?;
        let (rounds, budget) = (self.ground.pace.calls, Budget::Time(READ_LIMIT));
        self.row("Read 101 KB", rounds, &mut ours, &mut theirs, budget)
    }

    fn list(&mut self) -> Result<Row, Fault> {
        let mut ours = Asked::always("LS", json!({ "path": corpus::LISTED }));
        let path = self.corpus.path.join(corpus::LISTED);
        let mut theirs = Asked::always("list_directory", json!({ "path": path }));
        self.agree(&mut ours, &mut theirs)?;
        let work = format!("LS of {} entries", corpus::LISTED_ENTRIES);
        self.row(&work, self.ground.pace.calls, &mut ours, &mut theirs, Budget::None)
    }

    fn edit(&mut self) -> Result<Row, Fault> {
        let (own, other) = ("edited-over-stdio.txt", "edited-by-reference.txt");
        self.corpus.add_edited(own, EDITED_BYTES)?;
        let path = self.corpus.add_edited(other, EDITED_BYTES)?;
        self.ours.call("Read", &json!({ "file_path": own }))?;
        let (mut own_edits, mut other_edits) = (Edits::default(), Edits::default());
        let mut ours = Asked::new("Edit", move || edit_arguments(own, &mut own_edits));
        let mut theirs = Asked::new("edit_file", move || {
            let (old, new) = other_edits.next();
            json!({ "path": path, "edits": [{ "oldText": old, "newText": new }] })
        });
        let rounds = self.ground.pace.slow;
        self.row("Edit of a 101 KB file", rounds, &mut ours, &mut theirs, Budget::None)
    }

    fn find(&mut self) -> Result<Row, Fault> {
        let mut ours = Asked::always("Glob", glob_arguments());
        let pattern = format!("**/{}", corpus::SOME_NAMES);
        let arguments = json!({ "path": self.corpus.haystack(), "pattern": pattern });
        let mut theirs = Asked::always("search_files", arguments);
        self.agree(&mut ours, &mut theirs)?;
        let work = format!("Glob in {}", self.corpus.size());
        self.row(&work, self.ground.pace.trees, &mut ours, &mut theirs, Budget::None)
    }

    /// Makes sure that both answer with as many lines; a fast wrong answer is worth nothing.
    fn agree(&mut self, ours: &mut Asked, theirs: &mut Asked) -> Result<(), Fault> {
        let Ok(client) = &mut self.theirs else { return Ok(()) };
        let (own, other) = (ours.lines(&mut self.ours)?, theirs.lines(client)?);
        if own == other && own > 0 {
            return Ok(());
        }
        Err(format!("{} has {own} lines, {} has {other}", ours.tool, theirs.tool).into())
    }

    fn row(
        &mut self,
        work: &str,
        rounds: usize,
        ours: &mut Asked,
        theirs: &mut Asked,
        budget: Budget,
    ) -> Result<Row, Fault> {
        let work = format!("{work} over stdio; `{}` of {REFERENCE}", theirs.tool);
        let own = || ours.time(&mut self.ours);
        match &mut self.theirs {
            Ok(client) => {
                Ok(Row::new(work, interleave(rounds, || theirs.time(client), own)?, budget))
            }
            Err(why) => Ok(Row::alone(work, alone(rounds, own)?, why, budget)),
        }
    }
}
