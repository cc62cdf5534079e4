//! What Linear is asked.

/// Issues of a page. Labels and relations beyond these numbers are asked for with [`REST`].
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
pub(super) const REST: &str = "\
query CarrelRest($id: String!) {
  issue(id: $id) {
    labels(first: 250) { nodes { name } pageInfo { hasNextPage } }
    inverseRelations(first: 250) {
      nodes { type issue { id identifier state { name } } }
      pageInfo { hasNextPage }
    }
  }
}";

/// Whose secret it is.
pub(super) const VIEWER: &str = "query CarrelViewer { viewer { id } }";
