//! Calls of a function, and which of them fit its parameters.
//!
//! Arguments and parameters are counted in the syntax trees. Nothing is known of types, so that a call that fits may
//! still be wrong; but one whose number of arguments is outside of what the head takes is wrong, if it means this
//! function. Keywords, spread arguments, decorated functions and uses that are no calls cannot be told.
//!
//! ```text
//! def move(self, to, *, fast=False)      required 1, at most 1, behind a receiver
//!     car.move(home)         fits
//!     car.move(home, 3)      does not
//!     Car.move(car, home)    fits: the receiver is an argument here
//!     car.move(to=home)      cannot be told
//! ```

mod calls;
mod parameters;

use std::ops::Range;

use crate::language::Language;
use crate::syntax::SyntaxTree;

/// The languages whose calls and parameters are known.
const LANGUAGES: [Language; 10] = [
    Language::Rust,
    Language::Python,
    Language::Go,
    Language::JavaScript,
    Language::TypeScript,
    Language::Tsx,
    Language::Java,
    Language::C,
    Language::Cpp,
    Language::Php,
];

/// The numbers of arguments that a function takes, without its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Those without a default value.
    pub required: usize,
    /// None if there is no bound.
    pub most: Option<usize>,
    /// The function has a receiver, such as `self`.
    pub has_receiver: bool,
    /// A keyword is required, so that no call without keywords fits.
    pub needs_keyword: bool,
}

/// A use of a function's name in code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSite {
    /// The bytes of the name.
    pub name: Range<usize>,
    /// The line of the name, counted from 1.
    pub line: usize,
    /// Whether the call fits.
    pub fit: CallFit,
}

/// Whether a call fits the parameters of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallFit {
    /// The number of arguments is one that the function takes.
    Fits,
    /// It is not.
    Misfits,
    /// It cannot be told: a keyword, a spread argument, or no call.
    Unknown,
}

impl Parameters {
    /// Counts the parameters of the function with this name and line. None if there is none, its language is not
    /// known here, or a decorator may have changed what it takes.
    pub fn of_function(tree: &SyntaxTree, source: &str, name: &str, line: usize) -> Option<Self> {
        is_known(tree).then(|| parameters::of_function(tree, source, name, line)).flatten()
    }

    /// Tells whether a call with this number of arguments fits.
    fn takes(&self, count: usize) -> bool {
        !self.needs_keyword && count >= self.required && self.most.is_none_or(|most| count <= most)
    }
}

/// Returns the uses of a function's name in a file, without definitions and imports. `container` is the name of the
/// type around the function.
pub fn call_sites(
    tree: &SyntaxTree,
    source: &str,
    (name, container): (&str, Option<&str>),
    parameters: &Parameters,
) -> Vec<CallSite> {
    if is_known(tree) {
        calls::of_function(tree, source, (name, container), parameters)
    } else {
        Vec::new()
    }
}

fn is_known(tree: &SyntaxTree) -> bool {
    LANGUAGES.contains(&tree.language())
}

#[cfg(test)]
mod tests;
