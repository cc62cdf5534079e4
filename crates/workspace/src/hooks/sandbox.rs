//! The seam between hooks and the sandbox.
//!
//! With `hooks.sandbox: true` a hook runs as a command of its workspace does: in a sandbox cell, with
//! the operator's policy. Cells belong to the crate `runner`, which is built on this one, so hooks see
//! them through the trait [`HookSandbox`]. The trait is one call and plain data because nothing else
//! of a runner concerns a hook: the script, its log and its judgement stay here.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use carrel_domain::{Code, Coded, Layout, message_of};
use carrel_exec::{LogFile, Outcome};
use carrel_fsroot::Root;
use tokio_util::sync::CancellationToken;

/// Runs hooks inside the sandbox of their workspace.
///
/// An implementation must not run a hook outside a sandbox: what cannot be confined is an error.
pub trait HookSandbox: fmt::Debug + Send + Sync {
    /// Runs a hook until its last process has ended. Cancelling stops it as its deadline does.
    fn run<'a>(
        &'a self,
        hook: SandboxedHook,
        cancel: &'a CancellationToken,
    ) -> Pin<Box<dyn Future<Output = Result<Outcome, HookSandboxError>> + Send + 'a>>;
}

/// A hook for a sandbox: its script and everything of its workspace that the sandbox needs.
#[derive(Debug)]
pub struct SandboxedHook {
    /// The workspace, opened and checked.
    pub directory: Root,
    /// The root that holds the workspace; commands do not see the rest of it.
    pub root: PathBuf,
    /// The layout of the workspace, which decides about the home of its commands.
    pub layout: Layout,
    /// Shares of the workspace's locks, to be held until the last process of the hook has ended.
    pub held: Vec<OwnedFd>,
    /// The script, for `/bin/sh`.
    pub script: String,
    /// Variables in addition to those of every command.
    pub environment: Vec<(OsString, OsString)>,
    /// The deadline, counted from the start.
    pub timeout: Duration,
    /// The file that receives the whole output.
    pub log: LogFile,
}

/// A hook could not be run in a sandbox.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct HookSandboxError {
    message: String,
    code: Code,
}

impl HookSandboxError {
    /// Keeps the message and the code of an error, with its causes.
    pub fn new(error: &impl Coded) -> Self {
        Self { message: message_of(error), code: error.code() }
    }
}

impl Coded for HookSandboxError {
    fn code(&self) -> Code {
        self.code
    }
}
