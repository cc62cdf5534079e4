//! `/github` of a workspace.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::{DEFAULT_REPOSITORIES, MAX_BRANCH_CHARS, MAX_REPOSITORIES};
use crate::pattern::{BRANCH, CREDENTIAL_NAME, REPOSITORY_URL};

/// A repository to clone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CloneRequest {
    /// The URL: `https`, an allowed host, an owner and a name.
    #[schemars(regex(pattern = REPOSITORY_URL))]
    pub repo_url: String,
    /// The branch; the repository's default if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_BRANCH_CHARS), regex(pattern = BRANCH))]
    pub branch: Option<String>,
    /// The stored credential with a token for the host, if the repository is private.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = CREDENTIAL_NAME))]
    pub credential: Option<String>,
}

/// The query of the list of repositories.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepositoryQuery {
    /// The page, counted from 1.
    #[schemars(range(min = 1, max = u32::MAX), extend("default" = 1))]
    pub page: Option<u32>,
    /// The repositories of a page.
    #[schemars(range(min = 1, max = MAX_REPOSITORIES), extend("default" = DEFAULT_REPOSITORIES))]
    pub per_page: Option<u32>,
    /// The owner of the repositories, if the operator's app is installed for several.
    #[schemars(length(min = 1, max = 100))]
    pub owner: Option<String>,
    /// The stored credential with a token for GitHub.
    #[schemars(regex(pattern = CREDENTIAL_NAME))]
    pub credential: Option<String>,
}

/// A page of the repositories that a workspace can reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RepositoryList {
    /// The repositories.
    pub repos: Vec<Repository>,
    /// The page, counted from 1.
    pub page: u32,
    /// The repositories of a full page; a page with fewer is the last.
    pub per_page: u32,
}

/// A repository on GitHub.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repository {
    /// The name.
    pub name: String,
    /// Owner and name.
    pub full_name: String,
    /// The URL to clone, or the page of the repository if GitHub sent no other.
    pub url: String,
    /// The description.
    pub description: Option<String>,
    /// The branch that is cloned by default.
    pub default_branch: Option<String>,
    /// `true` if only members see it.
    pub private: bool,
    /// The main programming language.
    pub language: Option<String>,
    /// The time of the last change, as GitHub writes it.
    pub updated_at: Option<String>,
}
