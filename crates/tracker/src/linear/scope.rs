//! The check that an agent's GraphQL request stays within the project.
//!
//! The check has two parts. This one walks the parsed document without requests: every object field must
//! be in the allowed schema (`schema.rs`), every mutation in [`MUTATIONS`], and every id that the request
//! names is collected. The second part (`agent_tool.rs`) asks Linear whether the collected ids belong to
//! the project, before the request is sent.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::issue_fields::is_id;
use super::schema::{PAYLOAD, QUERY, SECRETS, SchemaPosition};
use crate::error::Result;
use crate::graphql::document::{Field, GraphqlDocument, Kind, Selection};
use crate::tool::{ToolRefusal, is_listed};

/// Fields of a request, fragments expanded. Nested fragments could multiply them without this bound.
const MAX_FIELDS: usize = 2_000;

/// A mutation that agents may use, and the arguments that name its targets.
struct Mutation {
    name: &'static str,
    /// The paths of arguments; a question mark marks an optional one.
    targets: &'static [(&'static str, Target)],
    /// The allowed members of `input`, separated by commas; empty for all.
    input: &'static str,
}

#[derive(Clone, Copy)]
enum Target {
    Issue,
    Comment,
    Project,
    Never,
}

const fn mutation(
    name: &'static str,
    targets: &'static [(&'static str, Target)],
    input: &'static str,
) -> Mutation {
    Mutation { name, targets, input }
}

/// The mutations that agents may use.
const MUTATIONS: &[Mutation] = &[
    mutation(
        "issueUpdate",
        &[
            ("id", Target::Issue),
            ("input.parentId?", Target::Issue),
            ("input.projectId?", Target::Project),
            ("input.teamId?", Target::Never),
        ],
        "",
    ),
    mutation(
        "issueCreate",
        &[("input.projectId", Target::Project), ("input.parentId?", Target::Issue)],
        "",
    ),
    mutation("issueAddLabel", &[("id", Target::Issue)], ""),
    mutation("issueRemoveLabel", &[("id", Target::Issue)], ""),
    mutation(
        "issueRelationCreate",
        &[("input.issueId", Target::Issue), ("input.relatedIssueId", Target::Issue)],
        "id, issueId, relatedIssueId, type",
    ),
    mutation(
        "commentCreate",
        &[("input.issueId", Target::Issue), ("input.parentId?", Target::Comment)],
        "id, issueId, parentId, body, quotedText, doNotSubscribeToIssue",
    ),
    mutation("commentUpdate", &[("id", Target::Comment)], "body, quotedText"),
    mutation("commentDelete", &[("id", Target::Comment)], ""),
    mutation("attachmentCreate", &[("input.issueId", Target::Issue)], ""),
    mutation("attachmentLinkURL", &[("issueId", Target::Issue)], ""),
    mutation("attachmentLinkGitHubPR", &[("issueId", Target::Issue)], ""),
    mutation("attachmentLinkGitHubIssue", &[("issueId", Target::Issue)], ""),
];

/// The ids that a request names, which have to belong to the project.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ReferencedIds {
    pub(super) issues: BTreeSet<String>,
    pub(super) comments: BTreeSet<String>,
    pub(super) projects: BTreeSet<String>,
}

/// Checks a request as far as that is possible without Linear, and returns the ids that it names.
pub(super) fn check(
    document: &GraphqlDocument,
    variables: &Map<String, Value>,
) -> Result<ReferencedIds, ToolRefusal> {
    let mut checker = Checker { document, variables, named: ReferencedIds::default(), fields: 0 };
    for field in checker.fields_of(&document.operation.selections)? {
        match document.operation.kind {
            Kind::Query => checker.check_query(field)?,
            Kind::Mutation => checker.check_mutation(field)?,
        }
    }
    Ok(checker.named)
}

struct Checker<'a> {
    document: &'a GraphqlDocument,
    variables: &'a Map<String, Value>,
    named: ReferencedIds,
    fields: usize,
}

impl<'a> Checker<'a> {
    fn check_query(&mut self, field: &'a Field) -> Result<(), ToolRefusal> {
        let target = match field.name.as_str() {
            "issue" => Some(Target::Issue),
            "project" => Some(Target::Project),
            "viewer" => None,
            "__typename" if field.selections.is_empty() => return Ok(()),
            _ => return Err(leaves_project(SchemaPosition::At(&QUERY), field)),
        };
        if let Some(target) = target {
            let id = self.argument(field, "id");
            self.reference(target, "id", &id)?;
        }
        self.check_field(SchemaPosition::At(&QUERY), field)
    }

    fn check_mutation(&mut self, field: &'a Field) -> Result<(), ToolRefusal> {
        let Some(mutation) = MUTATIONS.iter().find(|mutation| mutation.name == field.name) else {
            let known: Vec<&str> = MUTATIONS.iter().map(|mutation| mutation.name).collect();
            let (name, known) = (&field.name, known.join(", "));
            let message = format!("`{name}` is not allowed for agents; allowed are {known}");
            return ToolRefusal::scope(message);
        };
        for (name, target) in mutation.targets {
            let path = name.trim_end_matches('?');
            let value = self.argument(field, path);
            if path == *name || !value.is_null() {
                self.reference(*target, path, &value)?;
            }
        }
        let input = self.argument(field, "input");
        let mut given = input.as_object().into_iter().flat_map(Map::keys);
        let is_other = |name: &&String| !is_listed(name, mutation.input);
        if let (false, Some(name)) = (mutation.input.is_empty(), given.find(is_other)) {
            let message = format!("`input.{name}` of `{}` is not allowed for agents", field.name);
            return ToolRefusal::scope(message);
        }
        self.check_subfields(SchemaPosition::At(&PAYLOAD), field)
    }

    /// Returns the value of an argument or of its member, such as `id` or `input.issueId`.
    fn argument(&self, field: &Field, path: &str) -> Value {
        let mut parts = path.split('.');
        let first = parts.next().unwrap_or_default();
        let given = field.arguments.iter().find(|(name, _)| name == first);
        let mut value = given.map(|(_, value)| value.resolve(self.variables)).unwrap_or_default();
        for part in parts {
            value = value.get_mut(part).map(Value::take).unwrap_or_default();
        }
        value
    }

    /// Records an id for the second part of the check.
    fn reference(&mut self, target: Target, path: &str, value: &Value) -> Result<(), ToolRefusal> {
        let refused = |rule: &str| ToolRefusal::scope(format!("`{path}` {rule}"));
        let Some(id) = value.as_str() else { return refused("is missing or not a string") };
        let set = match target {
            Target::Issue => &mut self.named.issues,
            Target::Comment if is_id(id) => &mut self.named.comments,
            Target::Comment => return refused("is not an id"),
            Target::Project => &mut self.named.projects,
            Target::Never => return refused("is not allowed for agents"),
        };
        set.insert(id.to_owned());
        Ok(())
    }

    fn check_field(&mut self, from: SchemaPosition, field: &'a Field) -> Result<(), ToolRefusal> {
        if SECRETS.contains(&field.name.as_str()) {
            return ToolRefusal::scope(format!("`{}` is not allowed for agents", field.name));
        }
        if field.selections.is_empty() {
            return Ok(());
        }
        let path = from.follow(&field.name).ok_or_else(|| leaves_project(from, field))?;
        self.check_subfields(path, field)
    }

    fn check_subfields(
        &mut self,
        path: SchemaPosition,
        field: &'a Field,
    ) -> Result<(), ToolRefusal> {
        for inner in self.fields_of(&field.selections)? {
            self.check_field(path, inner)?;
        }
        Ok(())
    }

    fn fields_of(&mut self, selections: &'a [Selection]) -> Result<Vec<&'a Field>, ToolRefusal> {
        let mut fields = Vec::new();
        let mut open: Vec<(&'a [Selection], usize)> = vec![(selections, 0)];
        while let Some((selections, depth)) = open.pop() {
            if depth > self.document.fragments.len() + 32 {
                return ToolRefusal::arguments("a fragment contains itself");
            }
            for selection in selections {
                self.fields += 1;
                if self.fields > MAX_FIELDS {
                    return ToolRefusal::arguments(format!("it has more than {MAX_FIELDS} fields"));
                }
                match selection {
                    Selection::Field(field) => fields.push(field),
                    Selection::Inline { selections, .. } => open.push((selections, depth + 1)),
                    Selection::Spread { name, .. } => open.push((self.fragment(name)?, depth + 1)),
                }
            }
        }
        Ok(fields)
    }

    fn fragment(&self, name: &str) -> Result<&'a [Selection], ToolRefusal> {
        let mut found = self.document.fragments.iter().filter(|fragment| fragment.name == name);
        match (found.next(), found.next()) {
            (Some(fragment), None) => Ok(&fragment.selections),
            _ => ToolRefusal::arguments(format!("there is not one fragment {name:?}")),
        }
    }
}

fn leaves_project(from: SchemaPosition, field: &Field) -> ToolRefusal {
    let message = format!("`{}` of {} may lead out of the project", field.name, from.name());
    ToolRefusal::Scope(message)
}
