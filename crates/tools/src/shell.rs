//! Tools that run commands.
//!
//! Every command is a job with a log, also one that its call waits for: when the output was too long for
//! the reply, `BashOutput` reads any part of it later.

mod bash;
mod command_facts;
mod control_sequences;
mod denial_notes;
mod job_records;
mod job_tools;
mod job_view;
mod launch;
mod process_watcher;
mod shell_run;
mod shell_table;
mod watch_process;

pub(crate) use bash::{NetworkChoice, exit_code, timeout_seconds};
pub use command_facts::{CommandFacts, notes};
pub(crate) use command_facts::{NO_SANDBOX, add_note_lines, add_notes, object};
pub(crate) use control_sequences::strip_control;
pub use denial_notes::NoteReader;
pub(crate) use denial_notes::denials_in_verdict;
pub(crate) use job_records::{JobEnd, JobRecords};
pub use job_view::{JobLogPart, JobPhase, JobView};
pub(crate) use launch::{EndCause, Launch, Shell};
pub(crate) use shell_table::ShellTable;

use crate::registry::Catalogue;

pub(crate) fn register(catalogue: &mut Catalogue) {
    catalogue.add::<bash::Bash>();
    catalogue.add::<job_tools::BashOutput>();
    catalogue.add::<job_tools::KillShell>();
    catalogue.add::<watch_process::WatchProcess>();
    catalogue.add::<watch_process::WatchProcessEvents>();
    catalogue.add::<shell_run::ShellRun>();
}
