//! The promises of agents of every kind, held against scripted ones in a real sandbox.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests build what an operator has, look at what an agent leaves, and fail by panicking"
)]

/// What is particular to the Agent Client Protocol.
mod acp;
/// What is particular to the Codex app server.
mod codex;
/// What is particular to plain commands.
mod command_agent;
/// What every kind of agent promises.
mod conformance;
/// How agents are started and ended.
mod launch;
/// A real agent for the Agent Client Protocol, with a model that follows a script.
mod real_acp;
/// The Codex app server as it is installed, with a model that follows a script.
mod real_codex;
/// A root with a workspace, and sessions in it.
mod test_environment;
/// Tools over a relay, several at once.
mod tool_relay;
