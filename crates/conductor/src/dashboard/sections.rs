//! The parts of the picture.

use std::time::Duration;

use carrel_domain::Timestamp;
use serde_json::Value;

use super::frame::{Line, Look};
use super::words::{clock, count, length, link};
use crate::snapshot::{BlockedRow, NoticeRow, Phase, RetryRow, RunningRow, Snapshot};
use crate::state::Mode;

/// A table with a title.
pub(super) struct Section {
    title: Line,
    rows: Vec<Line>,
    /// How many rows are shown.
    shown: usize,
    /// The last rows tell most, and not the first.
    from_end: bool,
}

impl Section {
    fn new(title: Line, rows: Vec<Line>) -> Self {
        let shown = rows.len();
        Self { title, rows, shown, from_end: false }
    }

    /// Lines that it takes: a blank one, the title, the rows, and one that says how many are left out.
    fn height(&self) -> usize {
        2 + self.shown + usize::from(self.left_out() > 0 && !self.from_end)
    }

    fn left_out(&self) -> usize {
        self.rows.len() - self.shown
    }

    pub(super) fn draw(self) -> Vec<Line> {
        let left_out = self.left_out();
        let mut lines = vec![Line::default(), self.title];
        if self.from_end {
            lines.extend(self.rows.into_iter().skip(left_out));
            return lines;
        }
        lines.extend(self.rows.into_iter().take(self.shown));
        if left_out > 0 {
            lines.push(Line::of(&format!("  … and {left_out} more"), Look::Dim));
        }
        lines
    }
}

/// Takes rows from the longest section until all fit.
pub(super) fn share(sections: &mut [Section], room: usize) {
    let height = |sections: &[Section]| sections.iter().map(Section::height).sum::<usize>();
    while height(sections) > room {
        let longest = sections.iter_mut().max_by_key(|section| section.shown);
        match longest.filter(|section| section.shown > 0) {
            Some(section) => section.shown -= 1,
            None => return,
        }
    }
}

pub(super) fn head(snapshot: &Snapshot) -> Vec<Line> {
    let now = snapshot.generated_at;
    let (mode, look) = match snapshot.mode {
        Mode::Working => ("working", Look::Good),
        Mode::Paused => ("paused", Look::Warning),
        Mode::Draining => ("draining", Look::Warning),
    };
    let counts = snapshot.counts;
    let most = snapshot.max_concurrent_agents;
    let agents = format!("  {} of {most} agents  ", counts.running);
    let first = Line::of("Carrel", Look::Bold)
        .with("  ", Look::Plain)
        .with(mode, look)
        .with(&agents, Look::Plain)
        .with(&next_look(snapshot), Look::Dim)
        .with(&format!("  {} UTC", clock(now)), Look::Dim);
    let totals = snapshot.codex_totals;
    let time = length(Duration::from_secs_f64(totals.seconds_running.max(0.0)));
    let spent = format!(
        "Tokens  {} in  {} out  {} in all   Agents ran {time}   Today {} tokens, {} runs",
        count(totals.input_tokens),
        count(totals.output_tokens),
        count(totals.total_tokens),
        count(snapshot.today.total_tokens),
        snapshot.today.attempts,
    );
    let mut lines = vec![first, Line::of(&spent, Look::Plain)];
    lines.extend(snapshot.rate_limits.as_ref().and_then(|limits| rate_limits(limits, now)));
    if let Some(until) = snapshot.held_until {
        let text = format!("Held    nothing is begun for {}", length(now.age(until)));
        lines.push(Line::of(&text, Look::Warning));
    }
    if let Some(error) = &snapshot.workflow_error {
        let text = format!("Workflow file cannot be used, so nothing is begun: {error}");
        lines.push(Line::of(&text, Look::Bad));
    }
    lines
}

fn next_look(snapshot: &Snapshot) -> String {
    match snapshot.polling.next_poll_in_ms {
        _ if snapshot.polling.checking => "looking at the tracker".to_owned(),
        Some(millis) => format!("next look in {}", length(Duration::from_millis(millis))),
        None => "no further look".to_owned(),
    }
}

fn rate_limits(limits: &Value, now: Timestamp) -> Option<Line> {
    let limits = limits.get("rateLimits").unwrap_or(limits);
    let window = |name: &str| {
        let window = limits.get(name)?;
        let number = |keys: [&str; 2]| keys.iter().find_map(|key| window.get(key)?.as_f64());
        let used = number(["usedPercent", "used_percent"])?;
        let seconds = |number: f64| Duration::try_from_secs_f64(number).ok();
        let at = number(["resetsAt", "resets_at"]).and_then(seconds);
        let at = at.map(|since| now.age(Timestamp::from_millis(0).after(since)));
        let left = at.or(number(["resetsInSeconds", "resets_in_seconds"]).and_then(seconds));
        let again = left.map(|left| format!(", anew in {}", length(left))).unwrap_or_default();
        Some(format!("  {name} {used:.0} % used{again}"))
    };
    let text: String = ["primary", "secondary"].into_iter().filter_map(window).collect();
    (!text.is_empty()).then(|| Line::of(&format!("Limits{text}"), Look::Plain))
}

pub(super) fn all(snapshot: &Snapshot) -> Vec<Section> {
    let now = snapshot.generated_at;
    let mut sections = vec![agents(snapshot, now)];
    if !snapshot.waiting.is_empty() {
        let rows = snapshot.waiting.iter().map(|row| {
            issue(&row.issue_identifier, row.issue_url.as_deref())
                .column(&row.state, 14, Look::Plain)
                .with(&format!("for {}", length(row.since.age(now))), Look::Dim)
        });
        sections.push(Section::new(title("Waiting for a place", ""), rows.collect()));
    }
    if !snapshot.retrying.is_empty() {
        let rows = snapshot.retrying.iter().map(|row| retry(row, now));
        sections.push(Section::new(title("To be taken up again", ""), rows.collect()));
    }
    if !snapshot.blocked.is_empty() {
        let rows = snapshot.blocked.iter().map(|row| blocked(row, now));
        sections.push(Section::new(title("Waiting for somebody", ""), rows.collect()));
    }
    let events: Vec<Line> = snapshot.recent_events.iter().map(event).collect();
    let events = Section::new(title("Events", ""), events);
    sections.push(Section { from_end: true, ..events });
    sections
}

fn title(text: &str, columns: &str) -> Line {
    Line::of(text, Look::Bold).with(columns, Look::Dim)
}

fn issue(identifier: &str, url: Option<&str>) -> Line {
    Line::of("  ", Look::Plain).column(identifier, 10, Look::Bold).leading_to(url.and_then(link))
}

fn agents(snapshot: &Snapshot, now: Timestamp) -> Section {
    let rows: Vec<Line> = snapshot.running.iter().map(|row| agent(row, now)).collect();
    if rows.is_empty() {
        return Section::new(title("Agents", ""), vec![Line::of("  none", Look::Dim)]);
    }
    let columns = format!(
        "       {:<14} {:<12} {:>4} {:>8} {:>8}  LAST",
        "STATE", "DOING", "TURN", "AGE", "TOKENS"
    );
    Section::new(title("Agents", &columns), rows)
}

fn agent(row: &RunningRow, now: Timestamp) -> Line {
    let (doing, look) = match row.phase {
        Phase::Checking => ("checking", Look::Dim),
        Phase::PreparingWorkspace => ("workspace", Look::Plain),
        Phase::StartingAgent => ("starting", Look::Plain),
        Phase::Turn => ("at work", Look::Good),
        Phase::BetweenTurns => ("turn over", Look::Plain),
        Phase::Finishing => ("finishing", Look::Plain),
        Phase::Stopping => ("stopping", Look::Warning),
    };
    let age = row.started_at.map_or(String::new(), |at| length(at.age(now)));
    let last = row.last_message.as_ref().or(row.last_event.as_ref());
    issue(&row.issue_identifier, row.issue_url.as_deref())
        .column(&row.state, 14, Look::Plain)
        .column(doing, 12, look)
        .with(&format!("{:>4} {age:>8} ", row.turn_count), Look::Plain)
        .with(&format!("{:>8}  ", count(row.tokens.total_tokens)), Look::Plain)
        .with(last.map_or("", String::as_str), Look::Dim)
}

fn retry(row: &RetryRow, now: Timestamp) -> Line {
    let when = if row.waits_for_slot {
        "waits for a place".to_owned()
    } else {
        format!("in {}", length(now.age(row.due_at)))
    };
    let error = row.error.clone().unwrap_or_default();
    issue(&row.issue_identifier, row.issue_url.as_deref())
        .column(&format!("attempt {}", row.attempt), 11, Look::Plain)
        .column(&when, 18, Look::Plain)
        .column(&row.why.to_string(), 28, Look::Dim)
        .with(&error, Look::Warning)
}

fn blocked(row: &BlockedRow, now: Timestamp) -> Line {
    issue(&row.issue_identifier, row.issue_url.as_deref())
        .column(&row.state, 14, Look::Plain)
        .column(&format!("for {}", length(row.blocked_at.age(now))), 12, Look::Dim)
        .with(&row.error, Look::Warning)
}

fn event(row: &NoticeRow) -> Line {
    let look = if row.warning { Look::Warning } else { Look::Plain };
    Line::of(&format!("  {}  ", clock(row.at)), Look::Dim).with(&row.message, look)
}
