//! Definitions, references and implementations.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::time::Instant;

use super::missed_uses::MissedUses;
use super::{Finding, Query, Target};
use crate::definition::ServerDefinition;
use crate::fault::Fault;
use crate::position::TextRange;
use crate::protocol::{self, Lenient};
use crate::server::LanguageServer;

/// Locations of one answer. A name that is used more often is no name to look through.
pub const MAX_LOCATIONS: usize = 20_000;

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// A file of the workspace.
    Inside {
        /// The file, relative to the workspace.
        path: PathBuf,
        /// The part.
        range: TextRange,
    },
    /// A file outside of the workspace, such as one of the standard library. It is not read.
    Outside {
        /// The path, or the URI of a file that is in no file system.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
}

/// Locations in the order of their files, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Locations {
    /// At most [`MAX_LOCATIONS`].
    pub list: Vec<Location>,
    /// The number without that bound.
    pub total: usize,
}

/// The relation of the locations that are asked for to a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Definition,
    References { with_declaration: bool },
    Implementations,
}

/// A query for locations.
#[derive(Clone, Debug)]
pub(crate) struct FindLocations<'q> {
    pub(crate) target: &'q Target,
    pub(crate) relation: Relation,
}

impl Relation {
    const fn method(self) -> &'static str {
        match self {
            Self::Definition => "textDocument/definition",
            Self::References { .. } => "textDocument/references",
            Self::Implementations => "textDocument/implementation",
        }
    }

    const fn capability(self) -> (&'static str, &'static str) {
        match self {
            Self::Definition => ("definitionProvider", "definitions"),
            Self::References { .. } => ("referencesProvider", "references"),
            Self::Implementations => ("implementationProvider", "implementations"),
        }
    }
}

impl Query for FindLocations<'_> {
    type Answer = Locations;

    fn file(&self) -> &Path {
        &self.target.path
    }

    fn concerns_other_files(&self, definition: &ServerDefinition) -> bool {
        match self.relation {
            Relation::Definition => definition.defines_by_index,
            Relation::References { .. } | Relation::Implementations => true,
        }
    }

    async fn ask(
        &self,
        server: &mut LanguageServer,
        until: Instant,
    ) -> Result<Finding<Locations>, Fault> {
        let (capability, what) = self.relation.capability();
        server.require(capability, what)?;
        let mut params = server.position_params(self.target)?;
        if let Relation::References { with_declaration } = self.relation {
            params["context"] = serde_json::json!({ "includeDeclaration": with_declaration });
        }
        let result = server.request(self.relation.method(), &params, until).await?;
        let read = Lenient::read(result, protocol::Location::read);
        let (mut list, unresolved) = server.resolve(read.items).await?;
        let mut doubt = None;
        if let Relation::References { .. } = self.relation {
            let known = list.iter().filter_map(Location::start).collect();
            match server.missed_uses(self.target, &known, until).await? {
                MissedUses::These(missed) if missed.is_empty() => {}
                MissedUses::These(_) if server.documents.is_changed() => {
                    return Err(Fault::Restart(MISSED_USES));
                }
                MissedUses::These(missed) => list.extend(missed),
                MissedUses::TooMany(count) => {
                    doubt = server.documents.is_changed().then(|| doubt_about(count));
                }
            }
        }
        list.sort();
        list.dedup();
        let total = list.len();
        list.truncate(MAX_LOCATIONS);
        let mut found = Finding::without(Locations { list, total }, unresolved + read.malformed);
        found.incomplete = found.incomplete.or(doubt);
        Ok(found)
    }
}

/// The reason for a new server in the place of one that has missed uses.
pub(super) const MISSED_USES: &str = "its search has missed uses of a symbol";

/// Returns the reason for which uses of a common name may be missing.
pub(super) fn doubt_about(count: usize) -> String {
    format!(
        "uses inside of macros may be missing since files have changed, and {count} other places have the name"
    )
}

impl Location {
    /// Returns the file and byte offset of one in the workspace.
    fn start(&self) -> Option<(PathBuf, usize)> {
        match self {
            Self::Inside { path, range } => Some((path.clone(), range.start.offset)),
            Self::Outside { .. } => None,
        }
    }
}

impl LanguageServer {
    /// Converts locations, in their order. Returns how many could not be.
    pub(crate) async fn resolve(
        &self,
        locations: Vec<protocol::Location>,
    ) -> Result<(Vec<Location>, usize), Fault> {
        let total = locations.len();
        let found = locations.into_iter().map(|found| (self.relative(&found.uri), found.range));
        let found: Vec<_> = found.collect();
        let inside = found.iter().filter_map(|(path, _)| path.as_ref().ok().cloned());
        let read = self.read(inside.collect::<BTreeSet<_>>()).await?;
        let texts = read.iter().filter_map(|(path, read)| Some((path, read.text()?)));
        let indexes: BTreeMap<_, _> = texts.map(|(path, text)| (path, self.index(text))).collect();
        let resolved = found.into_iter().filter_map(|(path, range)| match path {
            Ok(path) => {
                let range = indexes.get(&path)?.text_range(range)?;
                Some(Location::Inside { path, range })
            }
            Err(path) => {
                let line = usize::try_from(range.start.line).ok()? + 1;
                Some(Location::Outside { path, line })
            }
        });
        let resolved: Vec<_> = resolved.collect();
        let lost = total - resolved.len();
        Ok((resolved, lost))
    }
}

/// Reads the elements of a list, and counts the ones that were not understood.
pub(super) fn read_list<T: serde::de::DeserializeOwned>(value: Value) -> Lenient<T> {
    Lenient::read(value, |element| serde_json::from_value(element).ok())
}
