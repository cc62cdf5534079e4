//! The logs of hooks, kept beside the workspaces within a budget.

use std::path::{Path, PathBuf};

use carrel_domain::{ByteSize, WorkspaceKey};
use carrel_exec::LogFile;
use carrel_fsroot::{Root, UsageLimit};

use crate::error::Error;
use crate::hooks::Hook;
use crate::workspaces::RootInner;

/// The most bytes of one workspace's logs. A new log may use half of it.
pub(crate) const LOG_BUDGET: ByteSize = ByteSize::mib(64);

const MAX_LOGS: usize = 20;

/// Creates a log, and deletes the oldest ones beyond the budget. Returns its path as well.
pub(crate) fn create(
    inner: &RootInner,
    key: &WorkspaceKey,
    hook: Hook,
) -> Result<(PathBuf, LogFile), Error> {
    let own = &inner.root.own;
    let failed = || Error::files(format!("could not make a log for {key}"));
    let directory = Path::new("logs").join(key.as_str());
    own.create_directories(&directory, 0o700).map_err(failed())?;
    let logs = own.open_root_strict(&directory).map_err(failed())?;
    trim(&logs).map_err(failed())?;
    // The time comes first, so that names sort by age.
    let now = inner.clock.now().as_millis();
    let file_name = format!("{now}-{:04x}-{}.log", fastrand::u16(..), hook.as_str());
    let file = logs.open_or_create(Path::new(&file_name), 0o600).map_err(failed())?;
    let limit = ByteSize::bytes(LOG_BUDGET.as_u64() / 2);
    let path = own.path().join(&directory).join(file_name);
    Ok((path, LogFile { file: Some(file), limit }))
}

/// Deletes the oldest logs until half of the budget is free.
fn trim(logs: &Root) -> Result<(), carrel_fsroot::Error> {
    let entries = logs.list(Path::new("."))?;
    let mut used = logs.usage(Path::new("."), UsageLimit::NONE)?.bytes;
    let surplus = (entries.len() + 1).saturating_sub(MAX_LOGS);
    for (index, entry) in entries.iter().enumerate() {
        if index >= surplus && used <= LOG_BUDGET.as_u64() / 2 {
            break;
        }
        let name = Path::new(&entry.name);
        let removed = logs.link_metadata(name).and_then(|log| {
            used = used.saturating_sub(log.allocated);
            logs.remove_file(name)
        });
        match removed {
            // Another process may trim at the same time.
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
