//! Secret values, which print as `***`.

use std::fmt;

/// A secret value. It prints as `***` in every format and can only be read by [`Secret::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value, so that it cannot be printed by accident.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Returns the value. Reviewers look at every call of this.
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
    fn every_occurrence_of_a_secret_is_masked() {
        assert_eq!(Secret::new("hunter2").mask("a=hunter2,hunter2"), "a=***,***");
        assert_eq!(Secret::new("").mask("text"), "text");
    }
}
