//! Signals of `carrel run`: the first stops in an orderly way, the second ends the process.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::dashboard;
use crate::error::CliError;
use crate::output;

/// The status of a program that was interrupted.
const INTERRUPTED: i32 = 130;

/// Cancels `stop` at the first signal. At the second one the process exits at once; its agents die with
/// it, because the spawner ends when its socket closes.
pub(super) fn stop_on_signal(
    stop: &CancellationToken,
) -> Result<tokio::task::JoinHandle<()>, CliError> {
    let listen = |kind: SignalKind| {
        signal(kind).map_err(|source| CliError::Start { doing: "waiting for signals", source })
    };
    let mut signals = [
        listen(SignalKind::interrupt())?,
        listen(SignalKind::terminate())?,
        listen(SignalKind::hangup())?,
    ];
    let stop = stop.clone();
    Ok(tokio::spawn(async move {
        any(&mut signals).await;
        stop.cancel();
        // A terminal that takes nothing holds up neither the end nor the second signal.
        tokio::task::spawn_blocking(|| {
            output::note("ending the agents; once more to end at once");
        });
        any(&mut signals).await;
        dashboard::restore();
        std::process::exit(INTERRUPTED);
    }))
}

async fn any([interrupt, terminate, hangup]: &mut [Signal; 3]) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}
