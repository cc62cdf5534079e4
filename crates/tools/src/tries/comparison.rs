//! The comparison of the candidates of a try, as text for people and models.

use std::fmt::Write as _;

use carrel_domain::Identifier;
use carrel_trial::{Candidate, DiffSize, Outcome, Phase, Score, Trial};

use crate::text::line;

/// The characters of a run that a table shows.
const MAX_TITLE: usize = 48;

/// The failed tests of a candidate that are named.
const MAX_FAILURES: usize = 3;

const HEADING: [&str; 8] =
    ["RANK", "CANDIDATE", "VERDICT", "TESTS", "SCORE", "DIFF", "TIME", "RUN"];

/// Returns the table of the candidates, what keeps each from winning, and the result. `promote` is what promotes a fork
/// by hand.
pub fn comparison(trial: &Trial, promote: impl Fn(&Identifier) -> String) -> String {
    let mut text = table(trial);
    for candidate in &trial.candidates {
        for said in remarks(candidate) {
            line(&mut text, &format!("candidate {}: {}", candidate.number, printable(&said)));
        }
    }
    let because = trial.ranking.first().and_then(|best| best.because.as_ref());
    match (&trial.outcome, trial.phase) {
        (None, Phase::Promoting) => line(&mut text, "the best candidate is being promoted"),
        (None, Phase::Running | Phase::Finished) => {
            let id = &trial.id;
            line(
                &mut text,
                &format!(
                    "the try {id} is not over; `carrel try --resume {id}` takes it up if its process ended"
                ),
            );
        }
        (Some(Outcome::NonePassed), _) => {
            line(&mut text, "no candidate passed, and nothing was promoted");
            add_forks(&mut text, trial, promote);
        }
        (Some(Outcome::Chosen { candidate }), _) => {
            add_best(&mut text, *candidate, because);
            add_forks(&mut text, trial, promote);
        }
        (Some(Outcome::NotPromoted { candidate, code, message }), _) => {
            add_best(&mut text, *candidate, because);
            line(&mut text, &format!("it was not promoted: {} [{code}]", printable(message)));
            add_forks(&mut text, trial, promote);
        }
        (Some(Outcome::Promoted(promotion)), _) => {
            add_best(&mut text, promotion.candidate, because);
            let base = printable(trial.base.as_str());
            line(&mut text, &format!("promoted candidate {} into {base}", promotion.candidate));
            if let Some(before) = &promotion.before {
                line(
                    &mut text,
                    &format!("the snapshot {before} of {base} has what was there before"),
                );
            }
            for ended in &promotion.ended {
                if let Some(snapshot) = &ended.snapshot {
                    let number = ended.candidate;
                    line(
                        &mut text,
                        &format!(
                            "the work of candidate {number} is the snapshot {snapshot} of {base}"
                        ),
                    );
                }
            }
        }
    }
    text
}

fn add_best(text: &mut String, candidate: u8, because: Option<&String>) {
    let because = because.map(|because| format!(": {because}")).unwrap_or_default();
    line(text, &format!("candidate {candidate} is the best{because}"));
}

fn add_forks(text: &mut String, trial: &Trial, promote: impl Fn(&Identifier) -> String) {
    let forks = trial.candidates.iter().filter_map(|one| Some((one, one.fork.as_ref()?)));
    for (candidate, fork) in forks.filter(|(one, _)| one.diff.is_some_and(|diff| diff.files > 0)) {
        line(text, &format!("promote candidate {}: {}", candidate.number, promote(fork)));
    }
}

fn table(trial: &Trial) -> String {
    let mut rows = vec![HEADING.map(str::to_owned)];
    let mut order: Vec<(String, &Candidate)> = Vec::new();
    for ranked in &trial.ranking {
        order.extend(trial.candidate(ranked.candidate).map(|one| (ranked.rank.to_string(), one)));
    }
    if order.is_empty() {
        order.extend(trial.candidates.iter().map(|one| ("-".to_owned(), one)));
    }
    rows.extend(order.into_iter().map(|(rank, candidate)| row(rank, candidate)));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; HEADING.len()] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let mut text = String::new();
    for row in &rows {
        let mut shown = String::new();
        for (cell, width) in row.iter().zip(widths) {
            write!(shown, "{cell:<width$}  ").expect("writing to a string cannot fail");
        }
        line(&mut text, shown.trim_end());
    }
    text
}

fn row(rank: String, candidate: &Candidate) -> [String; HEADING.len()] {
    let dash = || "-".to_owned();
    let tests = candidate.verification.as_ref().map(|verification| {
        let tests = verification.tests;
        format!("{}/{}", tests.passed, tests.passed + tests.failed + tests.errors)
    });
    let score = candidate.score.as_ref().map(|score| match score {
        Score::Value(value) => value.to_string(),
        Score::None(_) => "none".to_owned(),
    });
    [
        rank,
        candidate.number.to_string(),
        candidate.verdict_word().to_owned(),
        tests.unwrap_or_else(dash),
        score.unwrap_or_else(dash),
        candidate.diff.map_or_else(dash, size),
        candidate.ran.as_ref().map_or_else(dash, |ran| seconds(ran.millis)),
        title(candidate.run.title()),
    ]
}

fn size(diff: DiffSize) -> String {
    let plural = if diff.files == 1 { "" } else { "s" };
    format!("{} file{plural} +{} -{}", diff.files, diff.added, diff.removed)
}

fn seconds(millis: u64) -> String {
    format!("{}.{} s", millis / 1000, millis % 1000 / 100)
}

fn title(run: &str) -> String {
    let first = printable(run.lines().next().unwrap_or_default());
    let mut shown: String = first.chars().take(MAX_TITLE).collect();
    if shown.len() < first.len() || run.lines().count() > 1 {
        shown.push('…');
    }
    shown
}

/// Returns what a table does not say about a candidate.
fn remarks(candidate: &Candidate) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(disqualified) = &candidate.disqualified {
        all.push(disqualified.message.clone());
    }
    if let Some(verification) = &candidate.verification {
        all.extend(verification.reason.as_ref().map(|reason| first_line(reason)));
        let names = verification.failures.iter().take(MAX_FAILURES).map(String::as_str);
        let names = names.collect::<Vec<_>>().join(", ");
        if !names.is_empty() {
            all.push(format!("failed: {names}"));
        }
    }
    if let Some(Score::None(why)) = &candidate.score {
        all.push(why.clone());
    }
    all
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// Escapes control characters of texts that come from a project.
fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}
