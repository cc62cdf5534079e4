//! Repositories as they are listed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// A repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Repository {
    /// Its name.
    pub name: String,
    /// Owner and name.
    pub full_name: String,
    /// What to clone, or where people look at it.
    pub url: String,
    /// What it is.
    pub description: Option<String>,
    /// The branch that is cloned if none is named.
    pub default_branch: Option<String>,
    /// Whether only some may see it.
    pub private: bool,
    /// What most of it is written in.
    pub language: Option<String>,
    /// When it last changed.
    pub updated_at: Option<String>,
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
