//! Starting a program that a package brought along, and only that one.

use crate::paths;
use crate::profile::PackageManager;

use super::Project;

/// Where package managers link the programs of packages.
const BIN: &str = "node_modules/.bin";

/// With these files there is no `node_modules`: yarn finds packages itself.
const PLUG_AND_PLAY: [&str; 2] = [".pnp.cjs", ".pnp.loader.mjs"];

impl Project<'_> {
    /// Returns the words that start a program: the installed one, or else the package
    /// manager in a form that fails when the program is missing and downloads nothing.
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

    /// Tells whether a program is installed.
    pub(super) fn has_program(&self, name: &str) -> bool {
        self.reader.nearest_program(self.directory, BIN, name).is_some()
    }
}

/// A first word without a slash would be looked up in the search path.
fn dotted(path: String) -> String {
    if path.contains('/') { path } else { format!("./{path}") }
}
