//! Formatters as writers: one at a time, and never beside an edit.
//!
//! A formatter reads a file, works, and writes it back. An edit in between would be acknowledged and lost. The
//! write lock of the workspace is held from before the formatter starts until its last process has ended, also
//! if the call is given up before: the work is a task of its own, whose command has a time limit.

use std::future::Future;

use carrel_domain::{Code, Failure};

use crate::blocking::hold;
use crate::files::WorkspaceFiles;
use crate::tool_context::ToolContext;

/// Does work that writes files by a command, while other writers of the workspace wait.
pub(super) async fn as_writer<T, W>(
    context: &ToolContext,
    work: impl FnOnce(ToolContext) -> W + Send + 'static,
) -> Result<T, Failure>
where
    T: Send + 'static,
    W: Future<Output = Result<T, Failure>> + Send,
{
    let context = context.clone();
    let files = WorkspaceFiles::of(&context);
    let task = carrel_exec::spawn_task(async move {
        let turn = hold(move |point| {
            let _writing = files.writing()?;
            point.wait();
            Ok(())
        });
        let turn = turn.await?;
        let done = work(context).await;
        drop(turn);
        done
    });
    match task.await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err(Failure::new(Code::Cancelled, "the server stops")),
    }
}
