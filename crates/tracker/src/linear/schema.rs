//! The part of Linear's schema that stays within one project.
//!
//! An agent's query may follow a field with subfields only if it is listed here for the type it is on;
//! every other object field could lead to other projects. Scalars are always allowed, except secrets.
//! For example `issue { team { states { nodes { name } } } }` is allowed, and `issue { team { issues } }` is
//! not: it would list the issues of the whole team. A related or parent issue may be in another project, so
//! of such an issue only the identity and the state can be read.

/// Scalars that are credentials.
pub(super) const SECRETS: &[&str] = &["apiKey", "calendarHash", "inviteHash", "secret", "token"];

#[derive(Debug, PartialEq, Eq)]
pub(super) struct SchemaType {
    pub(super) name: &'static str,
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
        let find = |fields: &[(&str, &'static SchemaType)]| {
            fields.iter().find(|(name, _)| *name == field).map(|(_, led)| *led)
        };
        match self {
            Self::At(at) => find(at.one).map(Self::At).or_else(|| find(at.many).map(Self::List)),
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
static PLAIN: SchemaType = SchemaType { name: "an object with scalars only", one: &[], many: &[] };

static TEAM: SchemaType = SchemaType {
    name: "a team",
    one: &[],
    many: &[("states", &PLAIN), ("labels", &PLAIN), ("members", &PLAIN)],
};

/// An issue that may be in another project: only its identity and state.
static RELATED: SchemaType = SchemaType {
    name: "a related issue",
    one: &[("state", &PLAIN), ("assignee", &PLAIN), ("project", &PLAIN)],
    many: &[],
};

static RELATION: SchemaType = SchemaType {
    name: "a relation",
    one: &[("issue", &RELATED), ("relatedIssue", &RELATED)],
    many: &[],
};

static COMMENT: SchemaType = SchemaType {
    name: "a comment",
    one: &[("user", &PLAIN), ("parent", &PLAIN), ("botActor", &PLAIN)],
    many: &[("children", &PLAIN)],
};

pub(super) static ISSUE: SchemaType = SchemaType {
    name: "an issue",
    one: &[
        ("assignee", &PLAIN),
        ("creator", &PLAIN),
        ("cycle", &PLAIN),
        ("delegate", &PLAIN),
        ("parent", &RELATED),
        ("project", &PLAIN),
        ("projectMilestone", &PLAIN),
        ("state", &PLAIN),
        ("team", &TEAM),
    ],
    many: &[
        ("attachments", &PLAIN),
        ("children", &RELATED),
        ("comments", &COMMENT),
        ("history", &PLAIN),
        ("inverseRelations", &RELATION),
        ("labels", &PLAIN),
        ("relations", &RELATION),
        ("subscribers", &PLAIN),
    ],
};

pub(super) static PROJECT: SchemaType = SchemaType {
    name: "the project",
    one: &[("creator", &PLAIN), ("lead", &PLAIN), ("status", &PLAIN)],
    many: &[
        ("issues", &ISSUE),
        ("labels", &PLAIN),
        ("members", &PLAIN),
        ("projectMilestones", &PLAIN),
        ("projectUpdates", &PLAIN),
        ("teams", &TEAM),
    ],
};

/// The root fields of queries.
pub(super) static QUERY: SchemaType = SchemaType {
    name: "a query",
    one: &[("issue", &ISSUE), ("project", &PROJECT), ("viewer", &PLAIN)],
    many: &[],
};

/// The payload of mutations.
pub(super) static PAYLOAD: SchemaType = SchemaType {
    name: "the payload of a mutation",
    one: &[
        ("attachment", &PLAIN),
        ("comment", &COMMENT),
        ("issue", &ISSUE),
        ("issueRelation", &RELATION),
    ],
    many: &[],
};
