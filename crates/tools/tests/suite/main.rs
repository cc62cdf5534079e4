//! Tests of the tools through the registry, as every interface calls them.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests build the state that agents and people leave behind, and fail by panicking"
)]

/// What learns that files were put back.
mod after_restore;
/// The source and the completeness of answers, and reasons for which no server answered.
mod answer_facts;
/// Snapshots before commands, tasks and turns.
mod automatic_snapshots;
/// Symbols: outlines, reading by name, definitions, references, search and maps.
mod code;
/// Search and rewrites by structure.
mod code_patterns;
/// Replies without content: words, in every tool.
mod empty_answers;
/// Reading, writing, editing, patching, moving, deleting.
mod files;
/// Git: operations, what a repository configures, remotes.
mod git;
/// Language servers and the callers for whom none is started.
mod helper_programs;
/// Answers from an index that does not have all files.
mod incomplete_index;
/// What counts as having read a file, and what a refusal shows.
mod reading_first;
/// Language servers on real projects, compared with the text.
mod real_projects;
/// Renames, by a language server of the tests.
mod renames;
/// Diagrams that real and fake renderers draw.
mod render;
/// The size of replies: limits, and the way to the rest.
mod reply_limit;
/// Finding files and text.
mod search;
/// Answers of language servers.
mod semantics;
/// What a running language server tells about an edit.
mod server_feedback;
/// What the service gets of its six tools.
mod service;
/// Sessions and their owners: commands, hashes of files, roots.
mod sessions;
/// Commands: foreground, background, watched.
mod shell;
/// Changes of files by symbol.
mod snapshots;
/// Random use of the tools for code, for as long as it is asked for.
mod soak;
mod symbol_edits;
/// What most tests begin with.
mod test_environment;
/// Groups of tools: each tool in one, and the operator's choice.
mod tool_groups;
/// Tests, linters and formatters of real projects.
mod undo;
mod verify;
/// Which workspace a call is about.
mod workspaces;
