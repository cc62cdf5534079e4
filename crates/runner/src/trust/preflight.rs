//! Decides before a file is written or moved whether the trust check would undo it.
//!
//! A tool that writes files itself asks first, so that a file that would run later does not exist even
//! for a moment, and the caller gets a clear refusal instead of a restoration afterwards. The answer is
//! limited to what follows from the path, the contents and the baseline; [`TrustBaseline::check`] still
//! runs after the tool and finds the rest.
//!
//! A path is resolved twice, as the name itself and as the file that a link of that name leads to,
//! because either may be watched. Then the watch rules are walked down from every directory that is
//! watched (the workspace, references, destinations of links) to find the rule that applies to it.

use std::path::{Path, PathBuf};

use carrel_fsroot::{Error, FileKind, Root};

use super::TrustBaseline;
use super::diff::{Remedy, config_notes, differences};
use super::directory_link::{rebased, resolve};
use super::references::{extended, inside};
use super::renames::follow_renames;
use super::scan::scan;
use super::snapshot::{EntryState, LinkDestination, Snapshot, WatchedEntry};
use super::watch_rules::{Role, WatchRule};
use super::watched_names::makes_bare;

/// The largest file that is read to judge moving it. A larger one is refused where its role is watched.
const MAX_READ: u64 = 1024 * 1024;

impl TrustBaseline {
    /// Returns the reason to refuse writing a file: the role in which it would run later. `bytes` are its
    /// contents; of unknown contents the worst is assumed.
    pub fn denies_write(&self, root: &Root, path: &Path, bytes: Option<&[u8]>) -> Option<String> {
        let target = root.locate(path).ok().filter(|_| path.is_relative());
        let both = [resolve_entry(root, path), target];
        both.iter().flatten().find_map(|path| self.denied_role_at(root, path, bytes))
    }

    /// Returns the reason to refuse moving an entry.
    pub fn denies_move(
        &self,
        root: &Root,
        from: &Path,
        to: &Path,
    ) -> Result<Option<String>, Error> {
        let (Some(from), Some(to)) = (resolve_entry(root, from), resolve_entry(root, to)) else {
            return Ok(None);
        };
        let rule = match self.rule_at(root, &to) {
            None => return Ok(None),
            Some(RuleMatch::NewRepository) => {
                return Ok(Some(Role::GitDirectory.what().to_owned()));
            }
            Some(RuleMatch::Rule(rule)) => rule,
        };
        match root.link_metadata(&from)?.kind {
            FileKind::Directory if !matches!(rule, WatchRule::File(_)) => {
                self.denies_directory_move(root, &from, &to, rule)
            }
            FileKind::Link if rule.role() == Role::Project => {
                self.denies_link_move(root, &from, &to)
            }
            _ if rule.role() == Role::Project => Ok(None),
            FileKind::File => {
                let bytes = root.read_strict(&from, MAX_READ);
                let denied_role = |bytes: Vec<u8>| self.denied_role_at(root, &to, Some(&bytes));
                Ok(bytes.map_or_else(|_| Some(rule.role().what().to_owned()), denied_role))
            }
            _ => Ok(Some(rule.role().what().to_owned())),
        }
    }

    fn denied_role_at(&self, root: &Root, path: &Path, bytes: Option<&[u8]>) -> Option<String> {
        let rule = match self.rule_at(root, path)? {
            RuleMatch::Rule(rule) => rule,
            RuleMatch::NewRepository => return Some(Role::GitDirectory.what().to_owned()),
        };
        let trusted = self.trusted.get(path).and_then(WatchedEntry::bytes);
        if !matches!(rule, WatchRule::File(_) | WatchRule::Tree { .. } | WatchRule::DotGit) {
            // A file where only a directory is watched.
            return None;
        }
        match (rule.role(), bytes) {
            (_, Some(bytes)) if trusted == Some(bytes) => None,
            (Role::Config, Some(bytes)) => config_notes(path, trusted, bytes),
            (watched_role, _) => Some(watched_role.what().to_owned()),
        }
    }

    /// Compares the snapshot as it would be after the move with the baseline.
    fn denies_directory_move(
        &self,
        root: &Root,
        from: &Path,
        to: &Path,
        rule: WatchRule,
    ) -> Result<Option<String>, Error> {
        let seen = scan(root, &self.trusted, &[(from.to_owned(), rule)])?.entries;
        let arrived = rebased(&seen, from, to);
        let stays = |path: &Path| !path.starts_with(from) && !path.starts_with(to);
        let mut after: Snapshot = seen.into_iter().filter(|(path, _)| stays(path)).collect();
        after.extend(arrived);
        let mut trusted = self.trusted.clone();
        let mut tombstones = self.tombstones.clone();
        follow_renames(&mut trusted, &after);
        tombstones.revive(&mut trusted, &after);
        let found = differences(root.path(), &trusted, &after, tombstones.new_repository_policy());
        let undone = found
            .into_iter()
            .find(|found| found.path.starts_with(to) && !matches!(found.remedy, Remedy::Accept(_)));
        Ok(undone.and_then(|found| found.notes.into_iter().next()).map(|(_, what)| what))
    }

    /// Resolves a link as from its new path, and checks what is watched behind it.
    fn denies_link_move(
        &self,
        root: &Root,
        from: &Path,
        to: &Path,
    ) -> Result<Option<String>, Error> {
        let target = root.read_link(from)?;
        let behind = match resolve(root, to, &target) {
            LinkDestination::Dangling | LinkDestination::System => return Ok(None),
            LinkDestination::Outside(_) => return Ok(Some("link out of the workspace".to_owned())),
            LinkDestination::Inside(behind) => behind,
        };
        if self.trusted.contains_key(&behind) {
            return Ok(None);
        }
        let project = WatchRule::Project { bare: false };
        let seen = scan(root, &self.trusted, &[(behind.clone(), project)])?.entries;
        let holds_something =
            seen.iter().any(|(path, entry)| path.starts_with(&behind) && !entry.is_directory());
        Ok(holds_something.then(|| "link to what would run later".to_owned()))
    }

    /// Returns the rule that would apply to an entry, if it would be watched.
    fn rule_at(&self, root: &Root, path: &Path) -> Option<RuleMatch> {
        let behind_links = self.trusted.iter().filter_map(|(path, entry)| match &entry.state {
            EntryState::DirectoryLink { destination: LinkDestination::Inside(behind), .. } => {
                Some((behind.clone(), entry.rule))
            }
            EntryState::DirectoryLink { destination: LinkDestination::Dangling, target } => {
                let above = path.parent().unwrap_or(Path::new(""));
                inside(root.path(), above, target).map(|behind| (behind, entry.rule))
            }
            _ => None,
        });
        let top = (PathBuf::new(), WatchRule::WorkspaceRoot { bare: false });
        let starts = [top].into_iter().chain(self.references.iter().cloned()).chain(behind_links);
        let found = starts.filter_map(|(start, rule)| self.walk(root, &start, rule, path));
        // The most specific rule applies: every directory at the top is a project directory.
        found.min_by_key(
            |found| matches!(found, RuleMatch::Rule(rule) if rule.role() == Role::Project),
        )
    }

    /// Walks the rules from a watched directory down to an entry; `None` if they end before it.
    fn walk(&self, root: &Root, start: &Path, rule: WatchRule, path: &Path) -> Option<RuleMatch> {
        let rest = path.strip_prefix(start).ok()?;
        let mut at = start.to_owned();
        let mut rule = rule;
        for name in rest {
            let known = self.trusted.get(&at).map(|known| known.rule);
            rule = match (rule, known.filter(|known| known.role() == Role::Project)) {
                // `Repositories` watches all that `Project` does, and more.
                (WatchRule::Repositories { .. }, Some(WatchRule::Project { bare })) => {
                    WatchRule::Repositories { bare }
                }
                (rule, Some(known)) if rule.role() == Role::Project => known,
                (rule, _) => rule,
            };
            if rule.role() == Role::Project && makes_bare(root, &at, name) {
                return Some(RuleMatch::NewRepository);
            }
            let project = WatchRule::Project { bare: false };
            let as_project =
                || project.child_if_watched(name).filter(|_| rule.is_also_project(&at));
            rule = rule.child_if_watched(name).or_else(as_project)?;
            at.push(name);
        }
        Some(RuleMatch::Rule(rule))
    }
}

#[derive(Clone, Copy, Debug)]
enum RuleMatch {
    Rule(WatchRule),
    /// None yet: with this entry, git would take its directory for a bare repository.
    NewRepository,
}

/// Resolves the links on the way to an entry that need not exist and is not followed itself; `None` for a
/// path that cannot be written.
fn resolve_entry(root: &Root, path: &Path) -> Option<PathBuf> {
    if path.is_absolute() {
        return None;
    }
    if let (Some(above), Some(name)) = (path.parent(), path.file_name())
        && let Ok(above) = root.locate(&Path::new(".").join(above))
    {
        return Some(above.join(name));
    }
    let mut found = PathBuf::new();
    let mut names = path.components().peekable();
    // From the top down, because most of a long new path does not exist.
    while let Some(name) = names.next() {
        let next = found.join(name);
        let is_last = names.peek().is_none();
        match root.locate(&next) {
            Ok(there) if !is_last => found = there,
            Err(error) if !is_last && !error.is_not_found() => return None,
            _ => return extended(found, [name].into_iter().chain(names)),
        }
    }
    None
}
