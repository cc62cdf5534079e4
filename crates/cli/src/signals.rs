//! The signals that ask a command to end.

use futures_util::future::select_all;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::error::{CliError, Result};
use crate::output;
use crate::run::dashboard;

/// The status of a program that was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Cancels a token at the first signal, so that a command ends in an orderly way.
pub(crate) fn cancel_on_signal(cancel: &CancellationToken) -> Result<JoinHandle<()>> {
    let mut signals = Signals::listen(&[SignalKind::quit()])?;
    let cancel = cancel.clone();
    Ok(carrel_exec::spawn_task(async move {
        signals.next().await;
        cancel.cancel();
    }))
}

/// Cancels `stop` at the first signal. At the second one the process exits at once; its agents die with
/// it, because the spawner ends when its socket closes.
pub(crate) fn stop_on_signal(stop: &CancellationToken) -> Result<JoinHandle<()>> {
    let mut signals = Signals::listen(&[])?;
    let stop = stop.clone();
    Ok(carrel_exec::spawn_task(async move {
        signals.next().await;
        stop.cancel();
        // A terminal that takes nothing holds up neither the end nor the second signal.
        tokio::task::spawn_blocking(|| {
            output::note("ending the agents; once more to end at once");
        });
        signals.next().await;
        dashboard::restore();
        std::process::exit(INTERRUPTED.into());
    }))
}

struct Signals(Vec<Signal>);

impl Signals {
    /// Listens for the usual signals and some `more`.
    fn listen(more: &[SignalKind]) -> Result<Self> {
        let usual = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let signals = usual.iter().chain(more).map(|kind| signal(*kind)).collect::<Result<_, _>>();
        Ok(Self(signals.map_err(CliError::start("waiting for signals"))?))
    }

    async fn next(&mut self) {
        select_all(self.0.iter_mut().map(|signal| Box::pin(signal.recv()))).await;
    }
}
