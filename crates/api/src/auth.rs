//! Authentication and authorization.
//!
//! 1. [`PresentedToken`] extracts the token from `Authorization` or from the session cookie.
//! 2. A verifier maps the token to a [`Caller`]: [`Authority`] for tokens that this server signs (HS256),
//!    [`jwks::Provider`] for those of an identity provider (RS256, ES256).
//! 3. The [`Caller`] decides what is allowed: its scopes are kinds of work, its [`Coverage`] is a set of
//!    workspaces.
//!
//! Beside tokens there are [`Tickets`] for the event stream of one task, the [`ConsoleLink`] that starts a
//! browser session, and the [`InternalToken`] between servers and workers. [`RateLimits`] bounds the requests
//! of each workspace.
//!
//! Everything fails closed. A value that two parsers could read differently is rejected, keys that are too
//! old are not used, and errors never repeat what was presented. The reason of a rejection is for the log;
//! the client learns only that the token is invalid.

mod authority;
mod caller;
mod claims;
mod console_link;
mod error;
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

pub use authority::{Authority, Grant, GrantError};
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
    CONSOLE_HEADER, RequestPage, SESSION_COOKIE, SESSION_LIFETIME, Transport, begin_session,
    check_cookie_request, end_session,
};
pub use signing_key::MIN_SECRET_BYTES;
pub use ticket::{TICKET_LIFETIME, Tickets};
