//! Repositories as they are listed.

use carrel_wire::Repository;
use serde::Deserialize;

/// Which part of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// The part, counted from 1.
    pub number: u32,
    /// How many are in it.
    pub size: u32,
}

/// What a token can list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// What a user can see.
    User,
    /// What an app was given.
    Installation,
}

/// A repository as GitHub tells it.
#[derive(Debug, Deserialize)]
pub(crate) struct GitHubRepository {
    name: String,
    #[serde(default)]
    full_name: Option<String>,
    #[serde(default)]
    clone_url: Option<String>,
    #[serde(default)]
    html_url: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    default_branch: Option<String>,
    #[serde(default)]
    private: bool,
    #[serde(default)]
    language: Option<String>,
    #[serde(default)]
    updated_at: Option<String>,
}

impl From<GitHubRepository> for Repository {
    fn from(told: GitHubRepository) -> Self {
        Self {
            full_name: told.full_name.unwrap_or_else(|| told.name.clone()),
            name: told.name,
            url: told.clone_url.or(told.html_url).unwrap_or_default(),
            description: told.description,
            default_branch: told.default_branch,
            private: told.private,
            language: told.language,
            updated_at: told.updated_at,
        }
    }
}
