//! Who asks, and what they may do.
//!
//! A [`Caller`] says what is allowed where.
//!
//! Everything fails closed: a request without credentials is nobody's, and what cannot be read with
//! certainty is not believed. Errors never repeat what was presented.

mod caller;
mod error;
mod scope;

pub use caller::{Caller, Coverage};
pub use error::{AuthError, Reason, WORKSPACE_HEADER};
pub use scope::{InvalidScopes, Scope, Scopes};
