//! What of Linear's schema leads nowhere but to the project.
//!
//! A field that has fields of its own is let through only where it stands here. One that has none is a
//! single value and leads nowhere, unless it is a secret itself.

/// Single values that open doors.
pub(super) const SECRETS: &[&str] = &["apiKey", "calendarHash", "inviteHash", "secret", "token"];

/// Something that has fields.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SchemaType {
    pub(super) name: &'static str,
    /// Fields that lead to one thing, and those that lead to a list of things.
    one: &'static [(&'static str, &'static SchemaType)],
    many: &'static [(&'static str, &'static SchemaType)],
}

/// What a field leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchemaPosition {
    At(&'static SchemaType),
    /// A list, with `nodes`, `edges` and `pageInfo`.
    List(&'static SchemaType),
    /// An entry of a list, with its `node`.
    Entry(&'static SchemaType),
}

impl SchemaPosition {
    /// Returns where a field with fields of its own leads; nothing if it is not let through.
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

/// Whatever has no fields but single values.
static PLAIN: SchemaType =
    SchemaType { name: "what is shown as single values", one: &[], many: &[] };

static TEAM: SchemaType = SchemaType {
    name: "a team",
    one: &[],
    many: &[("states", &PLAIN), ("labels", &PLAIN), ("members", &PLAIN)],
};

/// An issue that need not be of the project: what it is called and where it stands.
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

/// What can be asked for.
pub(super) static QUERY: SchemaType = SchemaType {
    name: "a query",
    one: &[("issue", &ISSUE), ("project", &PROJECT), ("viewer", &PLAIN)],
    many: &[],
};

/// What comes of every change.
pub(super) static PAYLOAD: SchemaType = SchemaType {
    name: "what came of a change",
    one: &[
        ("attachment", &PLAIN),
        ("comment", &COMMENT),
        ("issue", &ISSUE),
        ("issueRelation", &RELATION),
    ],
    many: &[],
};
