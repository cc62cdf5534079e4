//! Somebody at the terminal of a command.

use std::time::Duration;

use carrel_exec::{
    CaptureLimits, CommandSpec, LiveOutput, Outcome, Output, Spawner, Terminal, TerminalSize,
};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Long enough for a machine that is busy with other things.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) const SIZE: TerminalSize = TerminalSize { rows: 30, columns: 100 };

/// Gives a command a terminal.
pub(crate) fn at_terminal(spec: CommandSpec) -> CommandSpec {
    let output = Output::Terminal { size: SIZE, limits: CaptureLimits::default() };
    CommandSpec { output, ..spec }
}

/// Sees what a command prints and types what it reads.
pub(crate) struct Typist {
    pub(crate) terminal: Terminal,
    live: LiveOutput,
    /// What was seen and not yet looked for.
    screen: String,
    waiting: JoinHandle<Outcome>,
}

impl Typist {
    pub(crate) async fn sit_down(spawner: &Spawner, spec: CommandSpec) -> Self {
        let mut running = spawner.spawn(at_terminal(spec)).await.unwrap();
        let (terminal, live) = (running.terminal().unwrap(), running.live());
        let waiting = tokio::spawn(async move { running.wait(&CancellationToken::new()).await });
        Self { terminal, live, screen: String::new(), waiting }
    }

    /// Waits until a text is seen, beyond those that were seen before.
    pub(crate) async fn see(&mut self, text: &str) {
        while !self.screen.contains(text) {
            let piece = tokio::time::timeout(STOP_TIMEOUT, self.live.next()).await;
            let Ok(Some(piece)) = piece else {
                panic!("looked in vain for {text:?} in {:?}", self.screen);
            };
            self.screen.push_str(std::str::from_utf8(&piece.bytes).unwrap());
        }
        let end = self.screen.find(text).unwrap() + text.len();
        self.screen.drain(..end);
    }

    pub(crate) async fn enter(&self, keys: &str) {
        self.terminal.write(keys.as_bytes()).await.unwrap();
    }

    /// Looks away until the command is over.
    pub(crate) async fn leave(self) -> Outcome {
        drop(self.live);
        tokio::time::timeout(STOP_TIMEOUT, self.waiting).await.unwrap().unwrap()
    }
}
