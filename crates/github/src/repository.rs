//! Repositories in the replies of GitHub, and pages of them.
//!
//! Composio passes on only a part of GitHub's fields, so that all but the name are optional when they are
//! read. The URL is the one to clone, or the page of the repository if there is no other.

use carrel_wire::Repository;
use serde::Deserialize;

/// A page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// The number of the page, counted from 1.
    pub number: u32,
    /// Entries of a full page, at most 100.
    pub size: u32,
}

/// The list that a token can request; GitHub has a route for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// All repositories of the user that the token belongs to.
    User,
    /// The repositories of an app installation.
    Installation,
}

/// A repository in the JSON of GitHub, of which Composio passes on a part.
#[derive(Debug, Deserialize)]
pub(crate) struct GitHubRepository {
    name: String,
    full_name: Option<String>,
    clone_url: Option<String>,
    html_url: Option<String>,
    description: Option<String>,
    default_branch: Option<String>,
    #[serde(default)]
    private: bool,
    language: Option<String>,
    updated_at: Option<String>,
}

impl From<GitHubRepository> for Repository {
    fn from(repository: GitHubRepository) -> Self {
        Self {
            full_name: repository.full_name.unwrap_or_else(|| repository.name.clone()),
            name: repository.name,
            url: repository.clone_url.or(repository.html_url).unwrap_or_default(),
            description: repository.description,
            default_branch: repository.default_branch,
            private: repository.private,
            language: repository.language,
            updated_at: repository.updated_at,
        }
    }
}
