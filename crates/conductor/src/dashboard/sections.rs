//! The sections of the dashboard.

use std::time::Duration;

use carrel_domain::Timestamp;
use serde_json::Value;

use super::frame::{Style, StyledLine};
use super::terminal_text::{count, duration, time_of_day, web_link};
use crate::snapshot::{BlockedRow, Phase, RetryRow, RunningRow, Snapshot, WaitingRow};
use crate::state::{Mode, NumberedNotice};

pub(super) struct Section {
    title: StyledLine,
    rows: Vec<StyledLine>,
    shown: usize,
    from_end: bool,
}

impl Section {
    fn new(title: StyledLine, rows: Vec<StyledLine>) -> Self {
        let shown = rows.len();
        Self { title, rows, shown, from_end: false }
    }

    /// Returns the number of lines: a blank one, the title, the rows, and one with the number of hidden
    /// rows.
    fn height(&self) -> usize {
        2 + self.shown + usize::from(self.left_out() > 0 && !self.from_end)
    }

    fn left_out(&self) -> usize {
        self.rows.len() - self.shown
    }

    pub(super) fn draw(self) -> Vec<StyledLine> {
        let left_out = self.left_out();
        let mut lines = vec![StyledLine::default(), self.title];
        if self.from_end {
            lines.extend(self.rows.into_iter().skip(left_out));
            return lines;
        }
        lines.extend(self.rows.into_iter().take(self.shown));
        if left_out > 0 {
            lines.push(StyledLine::of(&format!("  … and {left_out} more"), Style::Dim));
        }
        lines
    }
}

/// Hides rows of the longest section until all sections fit.
pub(super) fn fit_height(sections: &mut [Section], body_height: usize) {
    let height = |sections: &[Section]| sections.iter().map(Section::height).sum::<usize>();
    while height(sections) > body_height {
        let longest = sections.iter_mut().max_by_key(|section| section.shown);
        match longest.filter(|section| section.shown > 0) {
            Some(section) => section.shown -= 1,
            None => return,
        }
    }
}

pub(super) fn head(snapshot: &Snapshot) -> Vec<StyledLine> {
    let now = snapshot.generated_at;
    let (mode, style) = match snapshot.mode {
        Mode::Working => ("working", Style::Good),
        Mode::Paused => ("paused", Style::Warning),
        Mode::Draining => ("draining", Style::Warning),
    };
    let counts = snapshot.counts;
    let most = snapshot.max_concurrent_agents;
    let agents = format!("  {} of {most} agents  ", counts.running);
    let first = StyledLine::of("Carrel", Style::Bold)
        .with("  ", Style::Plain)
        .with(mode, style)
        .with(&agents, Style::Plain)
        .with(&next_poll(snapshot), Style::Dim)
        .with(&format!("  {} UTC", time_of_day(now)), Style::Dim);
    let totals = snapshot.codex_totals;
    let time = duration(Duration::from_secs_f64(totals.seconds_running.max(0.0)));
    let spent = format!(
        "Tokens  {} in  {} out  {} in all   Agents ran {time}   Today {} tokens, {} runs",
        count(totals.input_tokens),
        count(totals.output_tokens),
        count(totals.total_tokens),
        count(snapshot.today.total_tokens),
        snapshot.today.attempts,
    );
    let mut lines = vec![first, StyledLine::of(&spent, Style::Plain)];
    lines.extend(snapshot.rate_limits.as_ref().and_then(|limits| rate_limits(limits, now)));
    if let Some(until) = snapshot.held_until {
        let text = format!("Rate limit, nothing is dispatched for {}", duration(now.age(until)));
        lines.push(StyledLine::of(&text, Style::Warning));
    }
    if let Some(error) = &snapshot.workflow_error {
        let text = format!("The workflow file is invalid, so nothing is dispatched: {error}");
        lines.push(StyledLine::of(&text, Style::Bad));
    }
    lines
}

fn next_poll(snapshot: &Snapshot) -> String {
    match snapshot.polling.next_poll_in_ms {
        _ if snapshot.polling.checking => "polling the tracker".to_owned(),
        Some(millis) => format!("next poll in {}", duration(Duration::from_millis(millis))),
        None => "no further poll".to_owned(),
    }
}

fn rate_limits(limits: &Value, now: Timestamp) -> Option<StyledLine> {
    let limits = limits.get("rateLimits").unwrap_or(limits);
    let window = |name: &str| {
        let window = limits.get(name)?;
        let number = |keys: [&str; 2]| keys.iter().find_map(|key| window.get(key)?.as_f64());
        let used = number(["usedPercent", "used_percent"])?;
        let seconds = |number: f64| Duration::try_from_secs_f64(number).ok();
        let at = number(["resetsAt", "resets_at"]).and_then(seconds);
        let at = at.map(|since| now.age(Timestamp::from_millis(0).after(since)));
        let left = at.or(number(["resetsInSeconds", "resets_in_seconds"]).and_then(seconds));
        let again = left.map(|left| format!(", resets in {}", duration(left))).unwrap_or_default();
        Some(format!("  {name} {used:.0} % used{again}"))
    };
    let text: String = ["primary", "secondary"].into_iter().filter_map(window).collect();
    (!text.is_empty()).then(|| StyledLine::of(&format!("Limits{text}"), Style::Plain))
}

pub(super) fn all(snapshot: &Snapshot) -> Vec<Section> {
    let now = snapshot.generated_at;
    let section = |name, rows| Section::new(title(name, ""), rows);
    let waiting = snapshot.waiting.iter().map(|row| waiting(row, now)).collect();
    let retrying = snapshot.retrying.iter().map(|row| retry(row, now)).collect();
    let blocked = snapshot.blocked.iter().map(|row| blocked(row, now)).collect();
    let events = snapshot.recent_events.iter().map(event).collect();
    let mut sections = vec![
        section("Waiting for a slot", waiting),
        section("Retrying", retrying),
        section("Blocked", blocked),
    ];
    sections.retain(|section| !section.rows.is_empty());
    sections.insert(0, agents(snapshot, now));
    sections.push(Section { from_end: true, ..section("Events", events) });
    sections
}

fn title(text: &str, columns: &str) -> StyledLine {
    StyledLine::of(text, Style::Bold).with(columns, Style::Dim)
}

fn issue(identifier: &str, url: Option<&str>) -> StyledLine {
    StyledLine::of("  ", Style::Plain)
        .column(identifier, 10, Style::Bold)
        .with_link(url.and_then(web_link))
}

fn agents(snapshot: &Snapshot, now: Timestamp) -> Section {
    let rows: Vec<StyledLine> = snapshot.running.iter().map(|row| agent(row, now)).collect();
    if rows.is_empty() {
        return Section::new(title("Agents", ""), vec![StyledLine::of("  none", Style::Dim)]);
    }
    let columns = "       STATE          PHASE        TURN      AGE   TOKENS  LAST";
    Section::new(title("Agents", columns), rows)
}

fn agent(row: &RunningRow, now: Timestamp) -> StyledLine {
    let (doing, style) = match row.phase {
        Phase::Checking => ("checking", Style::Dim),
        Phase::PreparingWorkspace => ("workspace", Style::Plain),
        Phase::StartingAgent => ("starting", Style::Plain),
        Phase::Turn => ("turn", Style::Good),
        Phase::BetweenTurns => ("between turns", Style::Plain),
        Phase::Finishing => ("finishing", Style::Plain),
        Phase::Stopping => ("stopping", Style::Warning),
    };
    let age = row.started_at.map_or(String::new(), |at| duration(at.age(now)));
    let last = row.last_message.as_ref().or(row.last_event.as_ref());
    issue(&row.issue_identifier, row.issue_url.as_deref())
        .column(&row.state, 14, Style::Plain)
        .column(doing, 12, style)
        .with(&format!("{:>4} {age:>8} ", row.turn_count), Style::Plain)
        .with(&format!("{:>8}  ", count(row.tokens.total_tokens)), Style::Plain)
        .with(last.map_or("", String::as_str), Style::Dim)
}

fn waiting(row: &WaitingRow, now: Timestamp) -> StyledLine {
    issue(&row.issue_identifier, row.issue_url.as_deref())
        .column(&row.state, 14, Style::Plain)
        .with(&format!("for {}", duration(row.since.age(now))), Style::Dim)
}

fn retry(row: &RetryRow, now: Timestamp) -> StyledLine {
    let when = if row.waits_for_slot {
        "waits for a slot".to_owned()
    } else {
        format!("in {}", duration(now.age(row.due_at)))
    };
    issue(&row.issue_identifier, row.issue_url.as_deref())
        .column(&format!("attempt {}", row.attempt), 11, Style::Plain)
        .column(&when, 18, Style::Plain)
        .column(&row.why.to_string(), 28, Style::Dim)
        .with(row.error.as_deref().unwrap_or_default(), Style::Warning)
}

fn blocked(row: &BlockedRow, now: Timestamp) -> StyledLine {
    issue(&row.issue_identifier, row.issue_url.as_deref())
        .column(&row.state, 14, Style::Plain)
        .column(&format!("for {}", duration(row.blocked_at.age(now))), 12, Style::Dim)
        .with(&row.error, Style::Warning)
}

fn event(row: &NumberedNotice) -> StyledLine {
    let style = if row.warning { Style::Warning } else { Style::Plain };
    StyledLine::of(&format!("  {}  ", time_of_day(row.at)), Style::Dim).with(&row.message, style)
}
