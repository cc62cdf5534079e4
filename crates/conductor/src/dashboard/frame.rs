//! Lines of text with a look.

use std::fmt::Write as _;

use super::words::{clean, columns_of};

/// What a terminal shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// From top to bottom.
    pub lines: Vec<Line>,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// From left to right.
    pub spans: Vec<Span>,
}

/// Text with one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// What it says. Holds no control character.
    pub text: String,
    /// How it looks.
    pub look: Look,
    /// Where it leads. Always an address that a browser opens as a page.
    pub link: Option<String>,
}

/// How text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    /// Like other text.
    #[default]
    Plain,
    /// Of less weight.
    Dim,
    /// Of more weight.
    Bold,
    /// All is well.
    Good,
    /// Somebody may want to look.
    Warning,
    /// Something is wrong.
    Bad,
}

impl Look {
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
    /// Returns the text alone.
    pub fn plain(&self) -> String {
        self.lines.iter().fold(String::new(), |text, line| text + line.plain().trim_end() + "\n")
    }
}

impl Line {
    /// Begins a line with text of one look.
    pub fn of(text: &str, look: Look) -> Self {
        Self::default().with(text, look)
    }

    /// Adds text.
    #[must_use]
    pub fn with(mut self, text: &str, look: Look) -> Self {
        self.spans.push(Span { text: clean(text), look, link: None });
        self
    }

    /// Adds text that takes exactly so many columns, and a space.
    #[must_use]
    pub fn column(self, text: &str, columns: usize, look: Look) -> Self {
        let text = pad(&cut(&clean(text), columns), columns);
        self.with(&(text + " "), look)
    }

    /// Makes the last text lead somewhere.
    #[must_use]
    pub fn leading_to(mut self, link: Option<&str>) -> Self {
        if let Some(span) = self.spans.last_mut() {
            span.link = link.map(str::to_owned);
        }
        self
    }

    /// Cuts what does not fit.
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

    /// Returns the text alone.
    pub fn plain(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Returns the text as a terminal takes it.
    pub fn ansi(&self, colours: bool) -> String {
        let mut text = String::new();
        for span in &self.spans {
            let code = if colours { span.look.code() } else { "" };
            let link = span.link.as_deref().filter(|_| colours);
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

/// Returns how many columns a text takes.
pub(super) fn width(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// Cuts a text to so many columns.
pub(super) fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let fits = |c: &char| {
        let wide = columns_of(*c);
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
