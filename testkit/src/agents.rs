//! Agents for tests: scripted ones, and real ones where they are installed.
//!
//! A scripted agent is a shell script that speaks the protocol of its kind; its argument chooses the scenario.
//! Real agents show that the protocol is understood as its authors mean it.

use std::path::{Path, PathBuf};

/// A scripted Codex app server.
pub const CODEX: &str = include_str!("agents/codex.sh");

/// A scripted agent that speaks the Agent Client Protocol.
pub const ACP: &str = include_str!("agents/acp.sh");

/// A scripted plain command.
pub const COMMAND: &str = include_str!("agents/command.sh");

/// Returns the Codex that `scripts/install-test-tools` installs, or the directories that were searched.
pub fn real_codex() -> Result<PathBuf, String> {
    let caches = caches();
    let program = |cache: &PathBuf| find_program(&cache.join("node_modules/@openai"));
    caches.iter().find_map(program).ok_or_else(|| {
        format!("Codex is in none of {caches:?}; scripts/install-test-tools installs it, with npm")
    })
}

/// Returns the ACP agent that `scripts/install-test-tools` installs, or the directories that were searched.
pub fn real_acp() -> Result<PathBuf, String> {
    let caches = caches();
    let program = |cache: &PathBuf| {
        let program = cache.join("node_modules/.bin/codex-acp");
        program.is_file().then_some(program)
    };
    caches.iter().find_map(program).ok_or_else(|| {
        format!(
            "codex-acp is in none of {caches:?}; scripts/install-test-tools installs it, with npm"
        )
    })
}

#[expect(clippy::disallowed_methods, reason = "a test looks for what it is to be run with")]
fn caches() -> Vec<PathBuf> {
    let named = std::env::var_os("CARREL_CLIENTS_CACHE").map(PathBuf::from);
    let built = target_directory().map(|target| target.join("clients"));
    named.into_iter().chain(built).collect()
}

/// Finds the native program, which npm installs beside a script that starts it.
#[expect(clippy::disallowed_methods, reason = "a test looks for what it is to be run with")]
fn find_program(packages: &Path) -> Option<PathBuf> {
    let inside = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
        entries.map(|entry| entry.path()).collect()
    };
    let vendors = inside(packages).into_iter().map(|package| package.join("vendor"));
    let programs =
        vendors.flat_map(|vendor| inside(&vendor)).map(|system| system.join("bin/codex"));
    programs.into_iter().find(|program| program.is_file())
}

/// Returns cargo's target directory, two levels above the `deps` of this test.
fn target_directory() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let profile = program.ancestors().find(|path| path.ends_with("deps"))?.parent()?;
    profile.parent().map(Path::to_owned)
}
