//! Job ids and owners.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// The id of a job, such as `job_7`. Never reused in its registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "String")]
pub struct JobId(pub(super) u64);

impl JobId {
    const PREFIX: &str = "job_";
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Self::PREFIX, self.0)
    }
}

impl From<JobId> for String {
    fn from(id: JobId) -> Self {
        id.to_string()
    }
}

impl FromStr for JobId {
    type Err = InvalidJobId;

    fn from_str(text: &str) -> Result<Self, InvalidJobId> {
        let number = text.strip_prefix(Self::PREFIX).and_then(|number| number.parse().ok());
        let id = number.map(Self);
        // One job has one spelling: no sign, no leading zero.
        id.filter(|id| id.to_string() == text).ok_or_else(|| InvalidJobId { text: text.to_owned() })
    }
}

/// A text is not a job id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a job: {text:?}; it looks like job_7")]
pub struct InvalidJobId {
    /// The text.
    pub text: String,
}

/// The owner of a job, such as a workspace or a session. The registry only compares it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Owner(String);

impl Owner {
    /// Returns the owner of a name.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        assert_eq!("job_7".parse(), Ok(JobId(7)));
        assert_eq!(JobId(7).to_string(), "job_7");
        for text in ["", "7", "job_", "job_07", "job_+7", "job_-1", "job_7 ", "JOB_7"] {
            assert_eq!(text.parse::<JobId>(), Err(InvalidJobId { text: text.to_owned() }));
        }
    }
}
