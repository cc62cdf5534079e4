//! The fields and states of each kind of tracker.
//!
//! The table is the one source for reading `tracker.provider`, for the variables that are withheld from agents, for
//! masking, and for the reference page, so a new tracker's secret cannot be forgotten in one of them.

use super::tracker::TrackerKind;
use crate::environment as variable;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ProviderField {
    pub(crate) name: &'static str,
    pub(crate) secret: bool,
    pub(crate) required: bool,
    /// The environment variable that is read if the file has no value.
    pub(crate) variable: Option<&'static str>,
    pub(crate) default: Option<&'static str>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum StateRule {
    /// Any states; these are the defaults.
    Free { active: &'static [&'static str], terminal: &'static [&'static str] },
    /// Any states, and the file must list them.
    Named,
    /// Exactly these two, and the file must list them.
    Fixed { active: &'static str, terminal: &'static str },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TrackerProfile {
    pub(crate) kind: TrackerKind,
    pub(crate) fields: &'static [ProviderField],
    pub(crate) states: StateRule,
    /// True if fields may also be written directly below `tracker`.
    pub(crate) flat: bool,
}

const USUAL_STATES: StateRule = StateRule::Free {
    active: &["Todo", "In Progress"],
    terminal: &["Closed", "Cancelled", "Canceled", "Duplicate", "Done"],
};

const fn setting(name: &'static str) -> ProviderField {
    ProviderField { name, secret: false, required: false, variable: None, default: None }
}

impl ProviderField {
    const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    const fn secret(mut self) -> Self {
        self.secret = true;
        self.required()
    }

    const fn variable(mut self, name: &'static str) -> Self {
        self.variable = Some(name);
        self
    }

    const fn default(mut self, value: &'static str) -> Self {
        self.default = Some(value);
        self
    }
}

pub(crate) const PROFILES: &[TrackerProfile] = &[
    TrackerProfile {
        kind: TrackerKind::Linear,
        fields: &[
            setting("api_key").secret().variable(variable::LINEAR_API_KEY),
            setting("project_slug").required(),
            setting("assignee").variable(variable::LINEAR_ASSIGNEE),
            setting("endpoint").default("https://api.linear.app/graphql"),
        ],
        states: USUAL_STATES,
        flat: true,
    },
    TrackerProfile {
        kind: TrackerKind::Github,
        fields: &[
            setting("token").secret().variable(variable::GITHUB_TOKEN),
            setting("repo").required().variable(variable::GITHUB_REPO),
            setting("api_url").default("https://api.github.com"),
        ],
        states: StateRule::Fixed { active: "open", terminal: "closed" },
        flat: false,
    },
    TrackerProfile {
        kind: TrackerKind::Gitlab,
        fields: &[
            setting("api_key").secret().variable(variable::GITLAB_PAT),
            setting("project_path").required().variable(variable::GITLAB_PROJECT_PATH),
            setting("api_url").default("https://gitlab.com/api/v4"),
        ],
        states: StateRule::Fixed { active: "opened", terminal: "closed" },
        flat: false,
    },
    TrackerProfile {
        kind: TrackerKind::Jira,
        fields: &[
            setting("api_token").secret().variable(variable::JIRA_API_TOKEN),
            setting("base_url").required().variable(variable::JIRA_BASE_URL),
            setting("email").required().variable(variable::JIRA_EMAIL),
            setting("project_key").required(),
        ],
        states: StateRule::Named,
        flat: false,
    },
    TrackerProfile {
        kind: TrackerKind::Asana,
        fields: &[
            setting("api_key").secret().variable(variable::ASANA_PAT),
            setting("project_gid").required(),
            setting("endpoint").default("https://app.asana.com/api/1.0"),
        ],
        states: StateRule::Named,
        flat: false,
    },
    TrackerProfile { kind: TrackerKind::Local, fields: &[], states: USUAL_STATES, flat: false },
];

pub(crate) fn of(kind: TrackerKind) -> &'static TrackerProfile {
    PROFILES.iter().find(|profile| profile.kind == kind).expect("every tracker has a profile")
}

pub(crate) fn secret_fields() -> impl Iterator<Item = &'static ProviderField> {
    PROFILES.iter().flat_map(|profile| profile.fields).filter(|field| field.secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tracker_has_a_profile() {
        for name in TrackerKind::NAMES {
            let kind = TrackerKind::parse(name).unwrap();
            assert_eq!(of(kind).kind, kind);
        }
    }
}
