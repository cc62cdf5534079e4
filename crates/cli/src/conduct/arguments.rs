//! The command line of `carrel run` and `carrel check` as types.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::BoundaryArguments;

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
    /// Answer over HTTP on this port, whatever the workflow file says; 0 lets the system choose
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Write the log to DIR/log/carrel.log as well
    #[arg(long, value_name = "DIR")]
    pub(crate) logs_root: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) boundary: BoundaryArguments,
}
