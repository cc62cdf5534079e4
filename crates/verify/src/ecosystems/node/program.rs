//! Command lines of programs that a package installed.

use crate::paths;
use crate::profile::PackageManager;

use super::Project;

const BIN: &str = "node_modules/.bin";

/// Files of yarn's Plug'n'Play mode, which has no `node_modules`.
const PLUG_AND_PLAY: [&str; 2] = [".pnp.cjs", ".pnp.loader.mjs"];

impl Project<'_> {
    /// Returns the command line of a program: its installed path, or else the package manager in a
    /// form that fails if the program is missing instead of downloading it.
    pub(super) fn program(&self, name: &str) -> Vec<String> {
        if let Some(path) = self.reader.nearest_program(self.directory, BIN, name) {
            return vec![dotted(paths::relative(self.directory, &path))];
        }
        let plug_and_play = self.reader.nearest(self.directory, &PLUG_AND_PLAY).is_some();
        let starter: &[&str] = match self.manager.kind {
            _ if plug_and_play => &["yarn", "run"],
            PackageManager::Pnpm => &["pnpm", "exec"],
            PackageManager::Yarn => &["yarn", "run"],
            PackageManager::Bun => &["bunx", "--no-install"],
            _ => &["npx", "--no-install", "--offline"],
        };
        starter.iter().map(|&word| word.to_owned()).chain([name.to_owned()]).collect()
    }

    pub(super) fn has_program(&self, name: &str) -> bool {
        self.reader.nearest_program(self.directory, BIN, name).is_some()
    }
}

/// Adds `./` to a bare name, which would be looked up in `PATH`.
fn dotted(path: String) -> String {
    if path.contains('/') { path } else { format!("./{path}") }
}
