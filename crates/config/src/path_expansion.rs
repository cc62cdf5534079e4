//! Expansion of the paths that operators write in settings.
//!
//! A path may begin with `~`, or be the name of one variable. Anything else that
//! a shell would expand is refused, with the form that works: a directory called
//! `$HOME` or `~anna` is never what was meant.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use crate::environment::{self, Environment};

/// A text that is not a usable path; each message says what to write instead.
#[expect(missing_docs, reason = "the messages say what each variant and field is")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("the path is empty; write one such as ~/workspaces, or leave the setting out")]
    Empty,
    /// A NUL byte, which no path can contain.
    #[error("the path contains a NUL byte")]
    Nul,
    /// The value names a variable that is not set.
    #[error("the variable {0} is not set; set it to a path, or write the path itself")]
    Unset(String),
    /// The value names a variable that is set to nothing.
    #[error("the variable {0} is set but empty; set it to a path, or write the path itself")]
    EmptyVariable(String),
    /// A variable inside a path or in braces, which is not expanded.
    #[error("{value:?} is not expanded; {working}")]
    NotExpanded { value: String, working: String },
    #[error("{0:?} names another user's home directory; write the absolute path")]
    OtherHome(String),
    /// `~` without a usable `HOME`.
    #[error("HOME is not set to an absolute path, so ~ has no meaning; write the absolute path")]
    NoHome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExpandedPath {
    pub(crate) path: PathBuf,
    /// The variable whose value is the path.
    pub(crate) variable: Option<String>,
    /// True if the written path was relative to the given directory.
    pub(crate) relative: bool,
}

/// Makes a path absolute, without a look at the file system. A relative one starts at `directory`.
pub(crate) fn expand(
    value: &OsStr,
    directory: &Path,
    environment: &Environment,
) -> Result<ExpandedPath, PathError> {
    let variable = value.to_str().and_then(environment::reference);
    let written = match variable {
        Some(name) => lookup(name, environment)?,
        None => value,
    };
    refuse_unusable(written)?;
    let path = expand_home(Path::new(written), environment)?;
    Ok(ExpandedPath {
        relative: path.is_relative(),
        path: collapse(&directory.join(path)),
        variable: variable.map(str::to_owned),
    })
}

fn lookup<'a>(name: &str, environment: &'a Environment) -> Result<&'a OsStr, PathError> {
    match environment.get(name) {
        None => Err(PathError::Unset(name.to_owned())),
        Some(value) if value.is_empty() => Err(PathError::EmptyVariable(name.to_owned())),
        Some(value) => Ok(value),
    }
}

fn refuse_unusable(written: &OsStr) -> Result<(), PathError> {
    if written.as_bytes().iter().all(u8::is_ascii_whitespace) {
        return Err(PathError::Empty);
    }
    if written.as_bytes().contains(&0) {
        return Err(PathError::Nul);
    }
    let text = written.to_string_lossy();
    match text.split('/').find_map(variable_in) {
        None => Ok(()),
        Some(name) => {
            let working = working_form(&text, name);
            Err(PathError::NotExpanded { value: text.into_owned(), working })
        }
    }
}

/// Returns the variable that a shell would see at the start of a path's component.
fn variable_in(component: &str) -> Option<&str> {
    let after = component.strip_prefix('$')?;
    let name = after.strip_prefix('{').unwrap_or(after);
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(&name[..end])
}

fn working_form(text: &str, name: &str) -> String {
    let below_home = ["$HOME", "${HOME}"].iter().find_map(|home| text.strip_prefix(home));
    match below_home {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("write ~{rest}"),
        _ if name.is_empty() => "write the path itself, or one variable as $NAME".to_owned(),
        _ if text == format!("${{{name}}}") => format!("write ${name}"),
        _ => format!("put the whole path into {name} and write ${name}"),
    }
}

fn expand_home(path: &Path, environment: &Environment) -> Result<PathBuf, PathError> {
    let Some(Component::Normal(first)) = path.components().next() else {
        return Ok(path.to_owned());
    };
    if !first.as_bytes().starts_with(b"~") {
        return Ok(path.to_owned());
    }
    let below = path
        .strip_prefix("~")
        .map_err(|_| PathError::OtherHome(path.to_string_lossy().into_owned()))?;
    let home = environment.home().filter(|home| home.is_absolute()).ok_or(PathError::NoHome)?;
    Ok(home.join(below))
}

/// Removes `.` and `..` lexically, before any link is resolved.
fn collapse(path: &Path) -> PathBuf {
    let mut collapsed = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                collapsed.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                collapsed.push(component);
            }
        }
    }
    collapsed
}
