//! GraphQL queries for Linear.

/// A page of issues. Further labels and relations are requested with [`REMAINING`].
pub(super) const ISSUES: &str = "\
query CarrelIssues($filter: IssueFilter!, $first: Int!, $after: String) {
  issues(filter: $filter, first: $first, after: $after) {
    nodes {
      id identifier title description priority branchName url createdAt updatedAt
      state { name }
      assignee { id }
      labels(first: 25) { nodes { name } pageInfo { hasNextPage } }
      inverseRelations(first: 15) {
        nodes { type issue { id identifier state { name } } }
        pageInfo { hasNextPage }
      }
    }
    pageInfo { hasNextPage endCursor }
  }
}";

/// All labels and relations of an issue that has many.
pub(super) const REMAINING: &str = "\
query CarrelRest($id: String!) {
  issue(id: $id) {
    labels(first: 250) { nodes { name } pageInfo { hasNextPage } }
    inverseRelations(first: 250) {
      nodes { type issue { id identifier state { name } } }
      pageInfo { hasNextPage }
    }
  }
}";

/// The owner of the API key.
pub(super) const VIEWER: &str = "query CarrelViewer { viewer { id } }";

/// The id of the project with a slug.
pub(super) const PROJECT: &str = "\
query CarrelProject($slug: String!) {
  projects(filter: { slugId: { eq: $slug } }, first: 1) { nodes { id } }
}";

/// Returns the query for the ids of issues or comments that match a filter.
pub(super) fn matching_ids(what: &str, kind: &str) -> String {
    format!(
        "query CarrelHere($filter: {kind}!, $first: Int!) {{ {what}(filter: $filter, first: $first) {{ nodes {{ id }} }} }}"
    )
}
