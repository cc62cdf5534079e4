//! What a caller may do in the workspaces it covers.

use std::fmt;
use std::str::FromStr;

/// One kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Look at files, tasks and events.
    Read,
    /// IdempotentRequest files and tasks.
    Write,
    /// Run commands.
    Exec,
    /// Give commands a network.
    Net,
    /// Everything, and what concerns workspaces as a whole. It reaches no further workspace.
    Admin,
}

impl Scope {
    /// Every one there is.
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Exec, Self::Net, Self::Admin];

    /// Returns the word for it in tokens and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Exec => "exec",
            Self::Net => "net",
            Self::Admin => "admin",
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Write => 1 << 1,
            Self::Exec => 1 << 2,
            Self::Net => 1 << 3,
            Self::Admin => 1 << 4,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What an error repeats of a word that is not known.
const MAX_WORD_SHOWN: usize = 40;

/// Why a text lists no scopes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidScopes {
    /// A word is no scope.
    #[error("unknown scope {text:?}; known are {}", known())]
    Unknown {
        /// The word, shortened.
        text: String,
    },
    /// Nothing is listed.
    #[error("no scope given; known are {}", known())]
    Empty,
}

fn known() -> String {
    Scope::ALL.map(Scope::as_str).join(", ")
}

impl FromStr for Scope {
    type Err = InvalidScopes;

    fn from_str(text: &str) -> Result<Self, InvalidScopes> {
        let unknown =
            || InvalidScopes::Unknown { text: text.chars().take(MAX_WORD_SHOWN).collect() };
        Self::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or_else(unknown)
    }
}

/// A set of scopes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scopes(u8);

impl Scopes {
    /// None at all.
    pub const NONE: Self = Self(0);

    /// Every scope.
    pub const ALL: Self = Self::of(&Scope::ALL);

    /// What a new token gets when nothing is said.
    pub const STANDARD: Self = Self::of(&[Scope::Read, Scope::Write, Scope::Exec]);

    /// Returns the set of these scopes.
    pub const fn of(scopes: &[Scope]) -> Self {
        let mut bits = 0;
        let mut rest = scopes;
        while let [scope, others @ ..] = rest {
            bits |= scope.bit();
            rest = others;
        }
        Self(bits)
    }

    /// Tells whether work of this kind is allowed. `admin` allows every kind.
    pub const fn allow(self, scope: Scope) -> bool {
        self.0 & (scope.bit() | Scope::Admin.bit()) != 0
    }

    /// Returns the scopes that were named, in a fixed order.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.0 & scope.bit() != 0)
    }

    /// Reads words between spaces or commas, which may be none.
    pub(super) fn of_words(text: &str) -> Result<Self, InvalidScopes> {
        text.split([',', ' ']).filter(|word| !word.is_empty()).map(str::parse).collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        scopes.into_iter().fold(Self::NONE, |set, scope| Self(set.0 | scope.bit()))
    }
}

impl FromStr for Scopes {
    type Err = InvalidScopes;

    /// Reads `read,write` or `read write`; at least one scope.
    fn from_str(text: &str) -> Result<Self, InvalidScopes> {
        match Self::of_words(text)? {
            Self::NONE => Err(InvalidScopes::Empty),
            scopes => Ok(scopes),
        }
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.iter().map(Scope::as_str).collect();
        f.pad(&words.join(","))
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn scopes_are_read_between_commas_or_spaces() {
        let read_exec = Scopes::of(&[Scope::Read, Scope::Exec]);
        for text in ["read,exec", "exec read", " read , exec,", "read,read,exec"] {
            assert_eq!(text.parse(), Ok(read_exec), "{text:?}");
        }
        assert_eq!(read_exec.to_string(), "read,exec");
        assert_eq!(Scopes::STANDARD.to_string(), "read,write,exec");
    }

    #[test]
    fn an_unknown_word_is_named_beside_the_known_ones() {
        let message = |text: &str| text.parse::<Scopes>().unwrap_err().to_string();
        assert_eq!(
            message("read,root"),
            r#"unknown scope "root"; known are read, write, exec, net, admin"#
        );
        assert_eq!(message(" ,"), "no scope given; known are read, write, exec, net, admin");
        for text in ["Read", "read;write", "read\nwrite", "read\twrite", "*", "admin\0"] {
            assert!(text.parse::<Scopes>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn admin_allows_everything_and_nothing_else_does() {
        let allowed = |scopes: &[Scope]| {
            let set = Scopes::of(scopes);
            Scope::ALL.into_iter().filter(|scope| set.allow(*scope)).collect::<Vec<_>>()
        };
        assert_eq!(allowed(&[Scope::Admin]), Scope::ALL);
        for scope in Scope::ALL.into_iter().filter(|scope| *scope != Scope::Admin) {
            assert_eq!(allowed(&[scope]), [scope]);
        }
        assert_eq!(allowed(&[]), []);
    }
}
