//! Terminals of commands in cells, in both tiers.

use carrel_domain::Tier;
use carrel_exec::{CommandSpec, ExitStatus};
use carrel_sandbox::DeniedCall;
use pretty_assertions::assert_eq;
use tokio_util::sync::CancellationToken;

use crate::cells::{BOTH, TestWorkspace, printed, shell};
use crate::support::spawner;
use crate::typist::{Typist, at_terminal};

fn python(script: &str) -> CommandSpec {
    let argv = ["python3", "-c", script].map(Into::into).to_vec();
    CommandSpec { argv, ..shell("") }
}

#[tokio::test]
async fn a_command_in_a_cell_can_have_a_terminal() {
    let script = "trap 'exit 3' INT; test -t 0 && test -t 1 && test -t 2 && stty size
        read line; echo \"<$line>\" > /dev/tty; while :; do sleep 0.02; done";
    for tier in BOTH {
        let (test_workspace, spawner) = (TestWorkspace::new(tier), spawner());
        let cell = test_workspace.cell(&spawner, tier).await;
        let mut typist = Typist::sit_down(&cell, shell(script)).await;
        typist.see("30 100\r\n").await;
        typist.enter("hello\n").await;
        typist.see("<hello>").await;
        typist.enter("\x03").await;
        let outcome = typist.leave().await;
        assert_eq!(outcome.end, ExitStatus::Exited(3), "{tier}");
    }
}

#[tokio::test]
async fn a_command_in_a_full_cell_sees_the_terminals_of_its_cell_only() {
    let (test_workspace, spawner, cancel) =
        (TestWorkspace::new(Tier::Full), spawner(), CancellationToken::new());
    let cell = test_workspace.cell(&spawner, Tier::Full).await;
    let list = || shell("ls -m /dev/pts");
    assert_eq!(printed(&cell.run(list(), &cancel).await.unwrap()), "ptmx\n");
    let mut host = Typist::sit_down(&spawner, crate::support::shell("echo $$; read line")).await;
    host.see("\r\n").await;
    let script = "tty; ls -m /dev/pts; echo open > $(tty); read line";
    let mut other = Typist::sit_down(&cell, shell(script)).await;
    other.see("/dev/pts/0\r\n0, ptmx\r\nopen\r\n").await;
    let elsewhere = TestWorkspace::new(Tier::Full);
    let elsewhere = elsewhere.cell(&spawner, Tier::Full).await;
    assert_eq!(printed(&elsewhere.run(list(), &cancel).await.unwrap()), "ptmx\n");
    // A program that makes terminals itself, as `script` does, makes them here as well.
    let more = "import os, pty\nfar = pty.openpty()[1]\nprint(os.ttyname(0), os.ttyname(far))";
    let more = cell.run(at_terminal(python(more)), &cancel).await.unwrap();
    assert_eq!(printed(&more), "/dev/pts/1 /dev/pts/2\r\n");
    for typist in [host, other] {
        typist.enter("\n").await;
        assert!(typist.leave().await.succeeded());
    }
}

#[tokio::test]
async fn a_command_in_a_landlock_cell_reaches_no_terminal_by_its_name() {
    let (test_workspace, spawner) = (TestWorkspace::new(Tier::Landlock), spawner());
    let cell = test_workspace.cell(&spawner, Tier::Landlock).await;
    let mut other = Typist::sit_down(&cell, shell("tty > name; echo ready; read line")).await;
    other.see("ready").await;
    let script = "
import os
name = open('name').read().strip()
assert os.path.exists(name)
for path in [name, os.ttyname(0), '/dev/ptmx']:
    try:
        os.open(path, os.O_RDWR | os.O_NOCTTY)
        print('opened', path)
    except PermissionError:
        pass
";
    let outcome = cell.run(at_terminal(python(script)), &CancellationToken::new()).await.unwrap();
    assert_eq!((printed(&outcome).as_str(), outcome.end), ("", ExitStatus::Exited(0)));
    other.enter("\n").await;
    assert!(other.leave().await.succeeded());
}

#[tokio::test]
async fn a_command_in_a_cell_cannot_type_into_its_terminal() {
    let script = "
import fcntl, termios
try:
    fcntl.ioctl(0, termios.TIOCSTI, b'x')
except PermissionError:
    print('refused')
";
    for tier in BOTH {
        let (test_workspace, spawner) = (TestWorkspace::new(tier), spawner());
        let cell = test_workspace.cell(&spawner, tier).await;
        let spec = at_terminal(python(script));
        let outcome = cell.run(spec, &CancellationToken::new()).await.unwrap();
        assert_eq!(printed(&outcome), "refused\r\n", "{tier}");
        let is_it = |refused: &DeniedCall| refused.detail.as_deref() == Some("TIOCSTI");
        assert!(outcome.refused.iter().any(is_it), "{tier}: {:?}", outcome.refused);
    }
}
