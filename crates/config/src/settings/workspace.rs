//! `workspace`: root and quotas of workspaces, and the time for which unsaved work is kept.
//!
//! A root that cannot be resolved is an error, unset variables included: falling back to the temporary directory would
//! hide the mistake until it costs work.

use std::ffi::OsStr;
use std::time::Duration;

use carrel_domain::ByteSize;

use crate::diagnostic::Diagnostic;
use crate::environment;
use crate::schema::SettingReader;
use crate::workflow_keys as keys;
use crate::workspace_root::{ResolvedRoot, RootOrigin, default_root, resolve_root};

/// The quota of a workspace when neither the file nor the environment names one.
const DEFAULT_QUOTA: ByteSize = ByteSize::gib(5);

const GIBIBYTE: f64 = 1_073_741_824.0;

/// The section `workspace`: the root directory, the quotas of a new workspace in bytes and in files, and the time for
/// which unsaved work outlives its workspace, zero for none. The default of the first quota comes from
/// `WORKSPACE_DEFAULT_QUOTA_GB`.
#[expect(missing_docs, reason = "the fields are keys of the reference page")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceConfig {
    pub root: ResolvedRoot,
    pub quota: ByteSize,
    pub quota_files: u64,
    pub keep_unsaved: Duration,
}

impl WorkspaceConfig {
    pub(super) fn read(reader: &mut SettingReader<'_>) -> Self {
        Self {
            root: read_root(reader),
            quota: read_quota(reader),
            quota_files: reader.count(&keys::WORKSPACE_FILES).unwrap_or_default(),
            keep_unsaved: reader.time_or_off(&keys::WORKSPACE_KEEP_UNSAVED),
        }
    }
}

fn read_root(reader: &mut SettingReader<'_>) -> ResolvedRoot {
    let default = default_root(reader.directory, reader.environment);
    let Some(value) = reader.text(&keys::WORKSPACE_ROOT) else { return default };
    let root =
        resolve_root(OsStr::new(&value), RootOrigin::File, reader.directory, reader.environment);
    match root {
        Ok(root) => {
            if root.relative {
                let path = root.path.display();
                let message = format!("workspace.root {value:?} is relative and means {path}");
                reader.warn(&keys::WORKSPACE_ROOT, message);
            }
            root
        }
        Err(error) => {
            reader.problem(&keys::WORKSPACE_ROOT, format!("cannot be used: {error}"));
            default
        }
    }
}

fn read_quota(reader: &mut SettingReader<'_>) -> ByteSize {
    if reader.written(&keys::WORKSPACE_QUOTA).is_some() {
        return reader.number(&keys::WORKSPACE_QUOTA).map_or(DEFAULT_QUOTA, gibibytes);
    }
    let name = environment::WORKSPACE_DEFAULT_QUOTA_GB;
    let Some(text) = reader.environment.get(name).map(OsStr::to_string_lossy) else {
        return DEFAULT_QUOTA;
    };
    match text.trim().parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => gibibytes(number),
        _ => {
            let message =
                format!("the variable {name} must be a number greater than 0, found {text:?}");
            let diagnostic = Diagnostic::about(keys::WORKSPACE_QUOTA.path, None, message);
            reader.record_invalid(diagnostic);
            DEFAULT_QUOTA
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is above zero, a fraction of a byte does not matter, and `as` saturates"
)]
fn gibibytes(number: f64) -> ByteSize {
    ByteSize::bytes(((number * GIBIBYTE) as u64).max(1))
}
