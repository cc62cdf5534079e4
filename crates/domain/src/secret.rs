//! Values that must never be printed.

use std::fmt;

/// A secret value. It prints as `***` and is only readable by asking for it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value so that it can no longer be printed by accident.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Returns the value. Every call site is a place a reviewer looks at.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Replaces every occurrence of the value in a text by `***`.
    pub fn mask(&self, text: &str) -> String {
        if self.0.is_empty() { text.to_owned() } else { text.replace(&self.0, "***") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_prints_as_stars_in_every_format() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "*** *** Some(***)");
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn a_secret_is_masked_wherever_it_stands() {
        assert_eq!(Secret::new("hunter2").mask("a=hunter2,hunter2"), "a=***,***");
        assert_eq!(Secret::new("").mask("text"), "text");
    }
}
