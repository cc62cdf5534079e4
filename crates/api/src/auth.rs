//! Who asks, and what they may do.
//!
//! [`Presented`] finds the token in a request, a [`Verifier`] such as [`Authority`] says which
//! [`Caller`] it stands for, and the caller says what is allowed where. [`Tickets`] open event
//! streams to browsers, [`ConsoleLink`] begins a session of the browser page, [`InternalToken`] guards
//! a worker's own API, and [`RateLimits`] keeps one workspace from taking the time of all.
//!
//! Everything fails closed: a request without credentials is nobody's, and what cannot be read with
//! certainty is not believed. Errors never repeat what was presented.

mod authority;
mod caller;
mod claims;
mod compact;
mod console;
mod cookie;
mod error;
mod fingerprint;
mod internal;
pub mod jwks;
mod key;
mod key_file;
mod presented;
mod random;
mod rate;
mod scope;
mod ticket;

pub use authority::{Authority, Grant, GrantError, Verifier};
pub use caller::{Caller, Coverage};
pub use claims::{CLOCK_SKEW, MAX_SUBJECT_BYTES, Pins};
pub use compact::MAX_TOKEN_BYTES;
pub use console::{ConsoleLink, LINK_LIFETIME};
pub use cookie::{
    CONSOLE_HEADER, SESSION_COOKIE, SESSION_LIFETIME, Transport, begin_session,
    check_cookie_request, end_session,
};
pub use error::{AuthError, Reason, WORKSPACE_HEADER};
pub use internal::{INTERNAL_TOKEN_HEADER, InternalToken};
pub use key::MIN_SECRET_BYTES;
pub use key_file::{KEY_FILE, KeyError, ServerSecret};
pub use presented::Presented;
pub(crate) use random::{hex, random};
pub use rate::{BURST, MAX_BUCKETS, REQUESTS_PER_SECOND, RateLimits, RateOptions, RetryAfter};
pub use scope::{InvalidScopes, Scope, Scopes};
pub use ticket::{TICKET_LIFETIME, Tickets};
