//! The command line of `carrel run` and `carrel check` as types.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::arguments::SandboxArguments;

#[derive(Args, Debug)]
pub(crate) struct RunArguments {
    /// The workflow file; `WORKFLOW.md` if none is given
    #[arg(value_name = "WORKFLOW.md")]
    pub(crate) workflow: Option<PathBuf>,
    /// The directory with everything that is kept; made if it is missing
    #[arg(long, value_name = "DIR", default_value = "data")]
    pub(crate) data: PathBuf,
    /// Look at the tracker once, give every agent one turn, and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Serve the API on this port; 0 takes a free one. Beats `server.port` of the workflow file
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Write the log to DIR/log/carrel.log as well; to that of the data directory if a terminal shows
    /// the dashboard
    #[arg(long, value_name = "DIR")]
    pub(crate) logs_root: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sandbox: SandboxArguments,
}

impl RunArguments {
    /// Returns the directory for a log file: the named one, or that of the data where the terminal
    /// shows the dashboard.
    pub(crate) fn log_directory(&self, dashboard: bool) -> Option<&Path> {
        let beside = (dashboard && !self.once).then_some(self.data.as_path());
        self.logs_root.as_deref().or(beside)
    }
}
