//! Styled text: frames, lines and spans.

use std::fmt::Write as _;

use super::terminal_text::{char_width, strip_control};

/// The contents of a terminal, independent of escape sequences, so that tests can compare them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "lines from top to bottom")]
pub struct Frame {
    pub lines: Vec<StyledLine>,
}

/// A line of styled spans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "spans from left to right")]
pub struct StyledLine {
    pub spans: Vec<StyledSpan>,
}

/// Text in one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StyledSpan {
    /// The text, without control characters.
    pub text: String,
    /// The style of the whole span.
    pub style: Style,
    /// The target of a hyperlink, always an `http` or `https` address.
    pub link: Option<String>,
}

/// A text style, by meaning rather than by colour; terminals without colours show all of them alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say what the text expresses")]
pub enum Style {
    #[default]
    Plain,
    Dim,
    Bold,
    Good,
    Warning,
    Bad,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Dim => "\x1b[2m",
            Self::Bold => "\x1b[1m",
            Self::Good => "\x1b[32m",
            Self::Warning => "\x1b[33m",
            Self::Bad => "\x1b[31m",
        }
    }
}

impl Frame {
    /// Returns the text without styles, one line each.
    pub fn plain(&self) -> String {
        self.lines.iter().fold(String::new(), |text, line| text + line.plain().trim_end() + "\n")
    }
}

impl StyledLine {
    /// Creates a line of one span.
    pub fn of(text: &str, style: Style) -> Self {
        Self::default().with(text, style)
    }

    /// Appends a span, stripped of control characters.
    #[must_use]
    pub fn with(mut self, text: &str, style: Style) -> Self {
        self.spans.push(StyledSpan { text: strip_control(text), style, link: None });
        self
    }

    /// Appends text that is cut or padded to a number of columns, and a space.
    #[must_use]
    pub fn column(self, text: &str, columns: usize, style: Style) -> Self {
        let text = pad(&cut(&strip_control(text), columns), columns);
        self.with(&(text + " "), style)
    }

    /// Makes the last span a hyperlink.
    #[must_use]
    pub fn with_link(mut self, link: Option<&str>) -> Self {
        if let Some(span) = self.spans.last_mut() {
            span.link = link.map(str::to_owned);
        }
        self
    }

    /// Cuts the line to a number of columns.
    #[must_use]
    pub fn fit(mut self, columns: usize) -> Self {
        let mut left = columns;
        for span in &mut self.spans {
            if width(&span.text) > left {
                span.text = cut(&span.text, left);
            }
            left -= width(&span.text).min(left);
        }
        self.spans.retain(|span| !span.text.is_empty());
        self
    }

    /// Returns the text without styles.
    pub fn plain(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Returns the text with escape sequences for styles and hyperlinks, or without any if `colors` is
    /// false.
    pub fn ansi(&self, colors: bool) -> String {
        let mut text = String::new();
        for span in &self.spans {
            let code = if colors { span.style.code() } else { "" };
            let link = span.link.as_deref().filter(|_| colors);
            let words = span.text.trim_end_matches(' ');
            let rest = &span.text[words.len()..];
            if let Some(link) = link {
                let _ = write!(text, "\x1b]8;;{link}\x1b\\");
            }
            text.push_str(code);
            text.push_str(words);
            if !code.is_empty() {
                text.push_str("\x1b[0m");
            }
            if link.is_some() {
                text.push_str("\x1b]8;;\x1b\\");
            }
            text.push_str(rest);
        }
        text
    }
}

/// Returns the width of a text in terminal columns.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Cuts a text to a number of columns, with an ellipsis.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let fits = |c: &char| {
        let wide = char_width(*c);
        let fits = wide <= left;
        left -= wide.min(left);
        fits
    };
    let kept: String = text.chars().take_while(fits).collect();
    if columns == 0 { kept } else { kept + "…" }
}

fn pad(text: &str, columns: usize) -> String {
    let spaces = columns.saturating_sub(width(text));
    text.to_owned() + &" ".repeat(spaces)
}
