//! `.gitignore` rules for directories during the search for projects.

use std::rc::Rc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::paths;
use crate::project_reader::ProjectReader;

/// The rules of a directory and its parents, the nearest last.
#[derive(Clone, Debug, Default)]
pub(crate) struct GitignoreRules {
    rules: Vec<Rc<(String, Gitignore)>>,
}

impl GitignoreRules {
    /// Returns these rules with those of a directory added.
    pub(crate) fn within(&self, reader: &ProjectReader<'_>, directory: &str) -> Self {
        let mut all = self.clone();
        let Some(text) = reader.text(&paths::join(directory, ".gitignore")) else { return all };
        // The builder gets lines, never a path that it would open itself.
        let mut builder = GitignoreBuilder::new("");
        for line in text.lines() {
            // An invalid pattern matches nothing, as in git.
            let _ = builder.add_line(None, line);
        }
        if let Ok(rules) = builder.build() {
            all.rules.push(Rc::new((directory.to_owned(), rules)));
        }
        all
    }

    /// Returns true if a directory is ignored; the nearest matching rule decides.
    pub(crate) fn covers(&self, path: &str) -> bool {
        for rule in self.rules.iter().rev() {
            let (directory, rules) = rule.as_ref();
            match rules.matched(paths::relative(directory, path), true) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}
