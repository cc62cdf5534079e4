//! The part of Linear's schema that stays within one project.
//!
//! An agent's query may follow a field with subfields only if it is listed here for the type it is on;
//! every other object field could lead to other projects. Scalars are always allowed, except secrets.
//! For example `issue { team { states { nodes { name } } } }` is allowed, and `issue { team { issues } }` is
//! not: it would list the issues of the whole team. A related or parent issue may be in another project, so
//! of such an issue only the identity and the state can be read.

use crate::tool::is_listed;

/// Scalars that are credentials.
pub(super) const SECRETS: &[&str] = &["apiKey", "calendarHash", "inviteHash", "secret", "token"];

#[derive(Debug, PartialEq, Eq)]
pub(super) struct SchemaType {
    pub(super) name: &'static str,
    /// Fields with one object of which only scalars are allowed, separated by commas.
    plain: &'static str,
    /// Fields with a connection of such objects.
    plain_lists: &'static str,
    /// Fields with one object, and fields with a connection.
    one: &'static [(&'static str, &'static SchemaType)],
    many: &'static [(&'static str, &'static SchemaType)],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaPosition {
    At(&'static SchemaType),
    /// A connection, with `nodes`, `edges` and `pageInfo`.
    List(&'static SchemaType),
    /// An edge, with its `node`.
    Entry(&'static SchemaType),
}

impl SchemaPosition {
    /// Returns the position below an object field; `None` if the field is not allowed.
    pub(super) fn follow(self, field: &str) -> Option<Self> {
        let find = |plain: &str, fields: &[(&str, &'static SchemaType)]| {
            let led = fields.iter().find(|(name, _)| *name == field).map(|(_, led)| *led);
            led.or_else(|| is_listed(field, plain).then_some(&PLAIN))
        };
        match self {
            Self::At(at) => find(at.plain, at.one)
                .map(Self::At)
                .or_else(|| find(at.plain_lists, at.many).map(Self::List)),
            Self::List(of) => match field {
                "nodes" => Some(Self::At(of)),
                "edges" => Some(Self::Entry(of)),
                "pageInfo" => Some(Self::At(&PLAIN)),
                _ => None,
            },
            Self::Entry(of) => (field == "node").then_some(Self::At(of)),
        }
    }

    pub(super) fn name(self) -> String {
        match self {
            Self::At(at) => at.name.to_owned(),
            Self::List(of) | Self::Entry(of) => format!("a list of {}", of.name),
        }
    }
}

/// An object whose scalars alone are allowed.
static PLAIN: SchemaType = EMPTY;

const EMPTY: SchemaType = SchemaType {
    name: "an object with scalars only",
    plain: "",
    plain_lists: "",
    one: &[],
    many: &[],
};

static TEAM: SchemaType =
    SchemaType { name: "a team", plain_lists: "states, labels, members", ..EMPTY };

/// An issue that may be in another project: only its identity and state.
static RELATED: SchemaType =
    SchemaType { name: "a related issue", plain: "state, assignee, project", ..EMPTY };

static RELATION: SchemaType = SchemaType {
    name: "a relation",
    one: &[("issue", &RELATED), ("relatedIssue", &RELATED)],
    ..EMPTY
};

static COMMENT: SchemaType = SchemaType {
    name: "a comment",
    plain: "user, parent, botActor",
    plain_lists: "children",
    ..EMPTY
};

pub(super) static ISSUE: SchemaType = SchemaType {
    name: "an issue",
    plain: "assignee, creator, cycle, delegate, project, projectMilestone, state",
    plain_lists: "attachments, history, labels, subscribers",
    one: &[("parent", &RELATED), ("team", &TEAM)],
    many: &[
        ("children", &RELATED),
        ("comments", &COMMENT),
        ("inverseRelations", &RELATION),
        ("relations", &RELATION),
    ],
};

pub(super) static PROJECT: SchemaType = SchemaType {
    name: "the project",
    plain: "creator, lead, status",
    plain_lists: "labels, members, projectMilestones, projectUpdates",
    one: &[],
    many: &[("issues", &ISSUE), ("teams", &TEAM)],
};

/// The root fields of queries.
pub(super) static QUERY: SchemaType = SchemaType {
    name: "a query",
    plain: "viewer",
    one: &[("issue", &ISSUE), ("project", &PROJECT)],
    ..EMPTY
};

/// The payload of mutations.
pub(super) static PAYLOAD: SchemaType = SchemaType {
    name: "the payload of a mutation",
    plain: "attachment",
    one: &[("comment", &COMMENT), ("issue", &ISSUE), ("issueRelation", &RELATION)],
    ..EMPTY
};
