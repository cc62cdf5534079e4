//! Whether a question stays within the project.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::issue_fields::is_id;
use super::schema::{PAYLOAD, QUERY, SECRETS, SchemaPosition};
use crate::graphql::document::{Field, GraphqlDocument, Kind, Selection};
use crate::tool::ToolRefusal;

/// Fields that fragments may lead to; a question with more is refused before it is understood.
const MAX_FIELDS: usize = 2_000;

/// A change that an agent may make: what it is called, and which of its arguments say what it changes.
struct Change {
    name: &'static str,
    targets: &'static [(&'static str, Target)],
    /// The fields that `input` may have; any if there are none here.
    input: &'static [&'static str],
}

/// What an argument names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Issue,
    /// An issue, if it is given.
    MaybeIssue,
    Comment,
    MaybeComment,
    Project,
    /// The project, if it is given.
    MaybeProject,
    /// Nothing: it may not be given.
    Never,
}

/// Changes that an agent may make.
const CHANGES: &[Change] = &[
    Change {
        name: "issueUpdate",
        targets: &[
            ("id", Target::Issue),
            ("input.parentId", Target::MaybeIssue),
            ("input.projectId", Target::MaybeProject),
            ("input.teamId", Target::Never),
        ],
        input: &[],
    },
    Change {
        name: "issueCreate",
        targets: &[("input.projectId", Target::Project), ("input.parentId", Target::MaybeIssue)],
        input: &[],
    },
    Change { name: "issueAddLabel", targets: &[("id", Target::Issue)], input: &[] },
    Change { name: "issueRemoveLabel", targets: &[("id", Target::Issue)], input: &[] },
    Change {
        name: "issueRelationCreate",
        targets: &[("input.issueId", Target::Issue), ("input.relatedIssueId", Target::Issue)],
        input: &["id", "issueId", "relatedIssueId", "type"],
    },
    Change {
        name: "commentCreate",
        targets: &[("input.issueId", Target::Issue), ("input.parentId", Target::MaybeComment)],
        input: &["id", "issueId", "parentId", "body", "quotedText", "doNotSubscribeToIssue"],
    },
    Change {
        name: "commentUpdate",
        targets: &[("id", Target::Comment)],
        input: &["body", "quotedText"],
    },
    Change { name: "commentDelete", targets: &[("id", Target::Comment)], input: &[] },
    Change { name: "attachmentCreate", targets: &[("input.issueId", Target::Issue)], input: &[] },
    Change { name: "attachmentLinkURL", targets: &[("issueId", Target::Issue)], input: &[] },
    Change { name: "attachmentLinkGitHubPR", targets: &[("issueId", Target::Issue)], input: &[] },
    Change {
        name: "attachmentLinkGitHubIssue",
        targets: &[("issueId", Target::Issue)],
        input: &[],
    },
];

/// What a question names, and what therefore has to be of the project.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ReferencedIds {
    pub(super) issues: BTreeSet<String>,
    pub(super) comments: BTreeSet<String>,
    pub(super) projects: BTreeSet<String>,
}

/// Judges a question as far as that is possible without asking, and returns what it names.
pub(super) fn judge(
    document: &GraphqlDocument,
    variables: &Map<String, Value>,
) -> Result<ReferencedIds, ToolRefusal> {
    let mut judge = Judge { document, variables, named: ReferencedIds::default(), fields: 0 };
    for field in judge.fields_of(&document.operation.selections)? {
        match document.operation.kind {
            Kind::Query => judge.question(field)?,
            Kind::Mutation => judge.change(field)?,
        }
    }
    Ok(judge.named)
}

struct Judge<'a> {
    document: &'a GraphqlDocument,
    variables: &'a Map<String, Value>,
    named: ReferencedIds,
    fields: usize,
}

impl<'a> Judge<'a> {
    fn question(&mut self, field: &'a Field) -> Result<(), ToolRefusal> {
        let target = match field.name.as_str() {
            "issue" => Some(Target::Issue),
            "project" => Some(Target::Project),
            "viewer" => None,
            "__typename" if field.selections.is_empty() => return Ok(()),
            _ => return Err(leads_away(SchemaPosition::At(&QUERY), field)),
        };
        if let Some(target) = target {
            let id = self.argument(field, "id");
            self.name(target, "id", &id)?;
        }
        self.follow(SchemaPosition::At(&QUERY), field)
    }

    fn change(&mut self, field: &'a Field) -> Result<(), ToolRefusal> {
        let Some(change) = CHANGES.iter().find(|change| change.name == field.name) else {
            let known: Vec<&str> = CHANGES.iter().map(|change| change.name).collect();
            let message =
                format!("`{}` is not for agents; there are {}", field.name, known.join(", "));
            return Err(ToolRefusal::scope(message));
        };
        for (place, target) in change.targets {
            let value = self.argument(field, place);
            self.name(*target, place, &value)?;
        }
        let input = self.argument(field, "input");
        let given = input.as_object().into_iter().flat_map(Map::keys);
        let other =
            given.filter(|name| !change.input.is_empty() && !change.input.contains(&name.as_str()));
        if let Some(name) = other.into_iter().next() {
            let message = format!("`input.{name}` of `{}` is not for agents", field.name);
            return Err(ToolRefusal::scope(message));
        }
        self.descend(SchemaPosition::At(&PAYLOAD), field)
    }

    /// Returns what an argument says, such as `id` or `input.issueId`.
    fn argument(&self, field: &Field, place: &str) -> Value {
        let mut parts = place.split('.');
        let first = parts.next().unwrap_or_default();
        let given = field.arguments.iter().find(|(name, _)| name == first);
        let mut value = given.map(|(_, value)| value.resolve(self.variables)).unwrap_or_default();
        for part in parts {
            value = value.get_mut(part).map(Value::take).unwrap_or_default();
        }
        value
    }

    /// Writes down what is named, to be looked up.
    fn name(&mut self, target: Target, place: &str, value: &Value) -> Result<(), ToolRefusal> {
        let optional =
            matches!(target, Target::MaybeIssue | Target::MaybeComment | Target::MaybeProject);
        if value.is_null() && (optional || target == Target::Never) {
            return Ok(());
        }
        let refused = |rule: &str| Err(ToolRefusal::scope(format!("`{place}` {rule}")));
        let Some(id) = value.as_str() else { return refused("is missing, or is no text") };
        let set = match target {
            Target::Issue | Target::MaybeIssue => &mut self.named.issues,
            Target::Comment | Target::MaybeComment if is_id(id) => &mut self.named.comments,
            Target::Comment | Target::MaybeComment => return refused("is no id"),
            Target::Project | Target::MaybeProject => &mut self.named.projects,
            Target::Never => return refused("is not for agents"),
        };
        set.insert(id.to_owned());
        Ok(())
    }

    fn follow(&mut self, from: SchemaPosition, field: &'a Field) -> Result<(), ToolRefusal> {
        if SECRETS.contains(&field.name.as_str()) {
            return Err(ToolRefusal::scope(format!("`{}` is not for agents", field.name)));
        }
        if field.selections.is_empty() {
            return Ok(());
        }
        let place = from.follow(&field.name).ok_or_else(|| leads_away(from, field))?;
        self.descend(place, field)
    }

    fn descend(&mut self, place: SchemaPosition, field: &'a Field) -> Result<(), ToolRefusal> {
        for inner in self.fields_of(&field.selections)? {
            self.follow(place, inner)?;
        }
        Ok(())
    }

    /// Returns the fields that are selected, those of fragments included.
    fn fields_of(&mut self, selections: &'a [Selection]) -> Result<Vec<&'a Field>, ToolRefusal> {
        let mut fields = Vec::new();
        let mut open: Vec<(&'a [Selection], usize)> = vec![(selections, 0)];
        while let Some((selections, depth)) = open.pop() {
            if depth > self.document.fragments.len() + 32 {
                return Err(ToolRefusal::arguments("a fragment contains itself"));
            }
            for selection in selections {
                self.fields += 1;
                if self.fields > MAX_FIELDS {
                    return Err(ToolRefusal::arguments(format!(
                        "it has more than {MAX_FIELDS} fields"
                    )));
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
            _ => Err(ToolRefusal::arguments(format!("there is not one fragment {name:?}"))),
        }
    }
}

fn leads_away(from: SchemaPosition, field: &Field) -> ToolRefusal {
    let message = format!("`{}` of {} may lead out of the project", field.name, from.name());
    ToolRefusal::scope(message)
}
