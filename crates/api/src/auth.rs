//! Authenticated asks, and what they may do.
//!
//! [`PresentedToken`] finds the token in a request, a [`Verifier`] such as [`Authority`] says which
//! [`Caller`] it stands for, and the caller says what is allowed where. [`Tickets`] open event
//! streams to browsers, [`ConsoleLink`] begins a session of the browser page, [`InternalToken`] guards
//! a worker's own API, and [`RateLimits`] keeps one workspace from taking the time of all.
//!
//! Everything fails closed: a request without credentials is nobody's, and what cannot be read with
//! certainty is not believed. Errors never repeat what was presented.

mod authority;
mod caller;
mod claims;
mod console_link;
mod error;
mod fingerprint;
mod internal_token;
pub mod jwks;
mod jwt;
mod key_file;
mod presented_token;
mod random;
mod rate_limit;
mod session_cookie;
mod signing_key;
mod ticket;

pub use authority::{Authority, Grant, GrantError, Verifier};
pub use caller::{Caller, Coverage};
pub use claims::{CLOCK_SKEW, ExpectedClaims, MAX_SUBJECT_BYTES};
pub use console_link::{ConsoleLink, LINK_LIFETIME};
pub use error::{AuthError, RejectReason, WORKSPACE_HEADER};
pub use internal_token::{INTERNAL_TOKEN_HEADER, InternalToken};
pub use jwt::MAX_TOKEN_BYTES;
pub use key_file::{KEY_FILE, KeyError, ServerSecret};
pub use presented_token::PresentedToken;
pub(crate) use random::random;
pub use rate_limit::{
    BURST, MAX_BUCKETS, REQUESTS_PER_SECOND, RateLimitOptions, RateLimits, RetryAfter,
};
pub use session_cookie::{
    CONSOLE_HEADER, SESSION_COOKIE, SESSION_LIFETIME, Transport, begin_session,
    check_cookie_request, end_session,
};
pub use signing_key::MIN_SECRET_BYTES;
pub use ticket::{TICKET_LIFETIME, Tickets};
