//! Regular expressions of the schemas.
//!
//! They are ECMA-262 patterns for clients and generators. The server parses the same fields with code of its
//! own, which decides.

/// Text without control characters.
pub const NO_CONTROL: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";

/// A path inside the workspace: not absolute, no NUL byte; empty for the workspace itself.
pub const RELATIVE_PATH: &str = r"^([^\u0000/][^\u0000]*)?$";

/// A command line: not blank, no NUL byte.
pub const COMMAND_LINE: &str = r"^[^\u0000]*[^\s\u0000][^\u0000]*$";

/// Text without a NUL byte.
pub const NO_NUL: &str = r"^[^\u0000]*$";

/// The name of a branch; blank for the default one.
pub const BRANCH: &str =
    r"^( *|(?!.*\.\.)(?!.*//)(?!.*\.lock$)[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9_-])?)$";

/// The name of a repository in `repos/`.
pub const REPOSITORY_NAME: &str = r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$";

/// The URL of a repository on one of the operator's hosts.
///
/// The hosts are a setting, so that the schema holds [`HOSTS_PLACEHOLDER`]; the server replaces it when it
/// renders its document.
pub const REPOSITORY_URL: &str = r"^https://{hosts}(/[A-Za-z0-9_][A-Za-z0-9._-]{0,90}){2,8}$";

/// The text of [`REPOSITORY_URL`] that stands for the allowed hosts.
pub const HOSTS_PLACEHOLDER: &str = "{hosts}";

/// The name of a credential.
pub const CREDENTIAL_NAME: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";
