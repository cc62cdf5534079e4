//! Who asks, and what they may do.
//!
//! A [`Verifier`] such as [`Authority`] says which [`Caller`] a token stands for, and the caller says
//! what is allowed where.
//!
//! Everything fails closed: a request without credentials is nobody's, and what cannot be read with
//! certainty is not believed. Errors never repeat what was presented.

mod authority;
mod caller;
mod claims;
mod compact;
mod error;
mod key;
mod key_file;
mod random;
mod scope;

pub use authority::{Authority, Grant, GrantError, Verifier};
pub use caller::{Caller, Coverage};
pub use claims::{CLOCK_SKEW, MAX_SUBJECT_BYTES, Pins};
pub use compact::MAX_TOKEN_BYTES;
pub use error::{AuthError, Reason, WORKSPACE_HEADER};
pub use key::MIN_SECRET_BYTES;
pub use key_file::{KEY_FILE, KeyError};
pub use scope::{InvalidScopes, Scope, Scopes};
