//! What the service promises about who may do what.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]
#![expect(clippy::disallowed_methods, reason = "the tests lay out their own files")]

/// The API as a document.
mod documents;
/// Tokens made by hand, with the means of an attacker or of another program.
mod forge;
/// Tokens that must not be believed, and those that must.
mod hostile_tokens;
/// Tokens of a provider that publishes its keys.
mod jwks;
/// Where the secret comes from, and who else may have seen it.
mod key_files;
/// What holds for any text at all.
mod properties;
/// What the authority writes it reads, and from the link to the session.
mod round_trips;
