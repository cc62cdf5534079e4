//! The service as its clients meet it: a real `carrel serve` with an empty data directory, and `curl`.

/// Who may do what where.
mod auth;
/// The client crate.
mod client;
/// Several processes on PostgreSQL and Redis, started and killed.
mod cluster;
/// Credentials of a workspace.
mod credentials;
/// Files of any size that are sent whole or in part.
mod downloads;
/// Files, commands, git and tools of a workspace.
mod files;
/// Forks over REST.
mod forks;
/// Repositories on GitHub, which is on loopback here.
mod github;
/// What the hostile cases of the reference want, by their numbers.
mod hostile;
/// Under which names it answers, and to which pages.
mod hosts;
/// Tokens of a provider that publishes its keys.
mod jwks;
/// `kill -9` at random moments while tasks run.
mod kill;
/// What endless work costs.
mod limits;
/// The tools for agents.
mod mcp;
/// The network as a cap.
mod network;
/// What an operator sees: audit, figures, room.
mod observed;
/// Servers and workers that share a database: placement, requests passed on, things that go away.
mod scaled;
/// Snapshots over REST.
mod snapshots;
/// SSH keys of credentials: used and never read.
mod ssh_keys;
/// From the start of a server to its end.
mod starting;
/// Reading events.
mod streams;
/// `carrel task`, and the client below it.
mod task;
/// Submitting, listing, cancelling.
mod tasks;
/// The server, and `curl` as its client.
mod test_environment;
/// Every tool with every set of token scopes.
mod tool_scopes;
/// What a collector of traces is sent.
mod traces;
/// Tries in the background, and after a restart.
mod tries;
/// Files that arrive in parts.
mod uploads;
/// The event of every refusal, on every route.
mod violations;
/// The endpoint of a worker.
mod worker_api;
