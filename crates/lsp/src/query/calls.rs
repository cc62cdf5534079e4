//! Calls of a function, and calls that it makes.

use std::path::Path;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::locations::{FindLocations, Location, Relation, read_list};
use super::{Finding, Query, Target};
use crate::definition::ServerDefinition;
use crate::fault::Fault;
use crate::position::{Range, TextRange};
use crate::protocol::{self, CallHierarchyItem, Lenient};
use crate::server::LanguageServer;

/// The direction of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallDirection {
    /// Calls of the function, with their callers.
    Incoming,
    /// Calls that the function makes, with their callees.
    Outgoing,
}

/// A caller or callee of a function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// The name of the caller or callee.
    pub name: String,
    /// More about it, such as its signature or package; often empty.
    pub detail: String,
    /// The name in its definition.
    pub location: Location,
    /// The calls: in the caller's file, or in that of the function for a callee. Empty if that file is outside.
    pub sites: Vec<TextRange>,
}

#[derive(Clone, Debug)]
pub(crate) struct FindCalls<'q> {
    pub(crate) target: &'q Target,
    pub(crate) direction: CallDirection,
}

impl Query for FindCalls<'_> {
    type Answer = Vec<Call>;

    fn file(&self) -> &Path {
        &self.target.path
    }

    fn concerns_other_files(&self, _definition: &ServerDefinition) -> bool {
        self.direction == CallDirection::Incoming
    }

    async fn ask(
        &self,
        server: &mut LanguageServer,
        until: Instant,
    ) -> Result<Finding<Vec<Call>>, Fault> {
        server.require("callHierarchyProvider", "callers and callees")?;
        let is_doubtful = server.definition.misses_uses && server.documents.is_changed();
        let doubt = if self.direction == CallDirection::Incoming && is_doubtful {
            // Callers are found by the same search as references, of which missed ones can be told.
            let relation = Relation::References { with_declaration: true };
            FindLocations { target: self.target, relation }.ask(server, until).await?.incomplete
        } else {
            None
        };
        let params = server.position_params(self.target)?;
        let items = server.request("textDocument/prepareCallHierarchy", &params, until).await?;
        let (mut calls, mut lost) = (Vec::new(), 0);
        for item in items.as_array().into_iter().flatten() {
            let found = self.calls_of(server, item, until).await?;
            calls.extend(found.items);
            lost += found.malformed;
        }
        calls.sort();
        calls.dedup();
        let mut found = Finding::without(calls, lost);
        found.incomplete = found.incomplete.or(doubt);
        Ok(found)
    }
}

impl FindCalls<'_> {
    async fn calls_of(
        &self,
        server: &LanguageServer,
        item: &Value,
        until: Instant,
    ) -> Result<Lenient<Call>, Fault> {
        let (method, other) = match self.direction {
            CallDirection::Incoming => ("callHierarchy/incomingCalls", "from"),
            CallDirection::Outgoing => ("callHierarchy/outgoingCalls", "to"),
        };
        let own_uri = item["uri"].as_str().unwrap_or_default().to_owned();
        let result = server.request(method, &json!({ "item": item }), until).await?;
        let raw = Lenient::read(result, |call| {
            let ends: CallHierarchyItem = serde_json::from_value(call[other].clone()).ok()?;
            Some((ends, read_list::<Range>(call["fromRanges"].clone())))
        });
        let (mut calls, mut malformed) = (Vec::new(), raw.malformed);
        for (ends, ranges) in raw.items {
            let sites = match self.direction {
                CallDirection::Incoming => ends.uri.clone(),
                CallDirection::Outgoing => own_uri.clone(),
            };
            let at = |uri: &String, range| protocol::Location { uri: uri.clone(), range };
            let own = at(&ends.uri, ends.selection_range);
            let (location, lost) = server.resolve(vec![own]).await?;
            let sites = ranges.items.iter().map(|range| at(&sites, *range)).collect();
            let (sites, lost_sites) = server.resolve(sites).await?;
            malformed += lost + lost_sites + ranges.malformed;
            let sites = sites.into_iter().filter_map(|site| match site {
                Location::Inside { range, .. } => Some(range),
                Location::Outside { .. } => None,
            });
            let mut sites: Vec<_> = sites.collect();
            // Overloads of one function have the same ones.
            sites.sort();
            sites.dedup();
            let detail = ends.detail.unwrap_or_default();
            let call = |location| Call { name: ends.name, detail, location, sites };
            calls.extend(location.into_iter().next().map(call));
        }
        Ok(Lenient { items: calls, malformed })
    }
}
