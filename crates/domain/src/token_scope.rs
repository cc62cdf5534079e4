//! The rights that a token carries.
//!
//! A scope says which kind of work its bearer may do in the workspaces that the token covers. Every route
//! and every tool names exactly one scope; a token allows it by carrying that scope or `admin`. Scopes do
//! not include each other otherwise: `write` without `read` may write files and not read them.

use std::fmt;
use std::str::FromStr;

/// A right that a token carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TokenScope {
    /// Read files, tasks and events.
    Read,
    /// Change files and tasks.
    Write,
    /// Run programs, git included: they can do more than their arguments show, and git uses the
    /// operator's credentials.
    Exec,
    /// Give commands access to the network.
    Net,
    /// Everything, and the management of workspaces. It extends no token to further workspaces.
    Admin,
}

impl TokenScope {
    /// Every scope, from the least to the most powerful.
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Exec, Self::Net, Self::Admin];

    /// Returns the word in tokens and on the command line.
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

impl fmt::Display for TokenScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The characters of an unknown word that an error repeats.
const MAX_WORD_SHOWN: usize = 40;

/// A text that lists no scopes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTokenScopes {
    /// A word is no scope.
    #[error("unknown scope {text:?}; known are {}", known())]
    Unknown {
        /// The word, shortened.
        text: String,
    },
    /// The list is empty.
    #[error("no scope given; known are {}", known())]
    Empty,
}

fn known() -> String {
    TokenScope::ALL.map(TokenScope::as_str).join(", ")
}

impl FromStr for TokenScope {
    type Err = InvalidTokenScopes;

    fn from_str(text: &str) -> Result<Self, InvalidTokenScopes> {
        let unknown =
            || InvalidTokenScopes::Unknown { text: text.chars().take(MAX_WORD_SHOWN).collect() };
        Self::ALL.into_iter().find(|scope| scope.as_str() == text).ok_or_else(unknown)
    }
}

/// A set of scopes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenScopes(u8);

impl TokenScopes {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Every scope.
    pub const ALL: Self = Self::of(&TokenScope::ALL);

    /// The scopes of a new token by default.
    pub const STANDARD: Self = Self::of(&[TokenScope::Read, TokenScope::Write, TokenScope::Exec]);

    /// Returns the set of these scopes.
    pub const fn of(scopes: &[TokenScope]) -> Self {
        let mut bits = 0;
        let mut rest = scopes;
        while let [scope, others @ ..] = rest {
            bits |= scope.bit();
            rest = others;
        }
        Self(bits)
    }

    /// Tells whether the set allows work of a scope: by that scope, or by `admin`.
    pub const fn allow(self, scope: TokenScope) -> bool {
        self.0 & (scope.bit() | TokenScope::Admin.bit()) != 0
    }

    /// Returns the scopes of the set in the order of [`TokenScope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = TokenScope> {
        TokenScope::ALL.into_iter().filter(move |scope| self.0 & scope.bit() != 0)
    }

    /// Parses words between spaces or commas; an empty text is the empty set.
    pub fn of_words(text: &str) -> Result<Self, InvalidTokenScopes> {
        text.split([',', ' ']).filter(|word| !word.is_empty()).map(str::parse).collect()
    }
}

impl FromIterator<TokenScope> for TokenScopes {
    fn from_iter<I: IntoIterator<Item = TokenScope>>(scopes: I) -> Self {
        scopes.into_iter().fold(Self::NONE, |set, scope| Self(set.0 | scope.bit()))
    }
}

impl FromStr for TokenScopes {
    type Err = InvalidTokenScopes;

    /// Parses `read,write` or `read write`; at least one scope.
    fn from_str(text: &str) -> Result<Self, InvalidTokenScopes> {
        match Self::of_words(text)? {
            Self::NONE => Err(InvalidTokenScopes::Empty),
            scopes => Ok(scopes),
        }
    }
}

impl fmt::Display for TokenScopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.iter().map(TokenScope::as_str).collect();
        f.pad(&words.join(","))
    }
}

impl fmt::Debug for TokenScopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn scopes_are_parsed_between_commas_or_spaces() {
        let read_exec = TokenScopes::of(&[TokenScope::Read, TokenScope::Exec]);
        for text in ["read,exec", "exec read", " read , exec,", "read,read,exec"] {
            assert_eq!(text.parse(), Ok(read_exec), "{text:?}");
        }
        assert_eq!(read_exec.to_string(), "read,exec");
        assert_eq!(TokenScopes::STANDARD.to_string(), "read,write,exec");
    }

    #[test]
    fn an_unknown_word_is_named_beside_the_known_ones() {
        let message = |text: &str| text.parse::<TokenScopes>().unwrap_err().to_string();
        assert_eq!(
            message("read,root"),
            r#"unknown scope "root"; known are read, write, exec, net, admin"#
        );
        assert_eq!(message(" ,"), "no scope given; known are read, write, exec, net, admin");
        for text in ["Read", "read;write", "read\nwrite", "read\twrite", "*", "admin\0"] {
            assert!(text.parse::<TokenScopes>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn admin_allows_everything_and_nothing_else_does() {
        let allowed = |scopes: &[TokenScope]| {
            let set = TokenScopes::of(scopes);
            TokenScope::ALL.into_iter().filter(|scope| set.allow(*scope)).collect::<Vec<_>>()
        };
        assert_eq!(allowed(&[TokenScope::Admin]), TokenScope::ALL);
        for scope in TokenScope::ALL.into_iter().filter(|scope| *scope != TokenScope::Admin) {
            assert_eq!(allowed(&[scope]), [scope]);
        }
        assert_eq!(allowed(&[]), []);
    }
}
