//! Errors of loading a workflow file.

use std::io;
use std::path::PathBuf;

use carrel_domain::{Code, Coded};
use serde_json::{Value, json};

use crate::diagnostic::{Diagnostic, one_line};

/// A diagnostic that makes a workflow file unusable, with its error code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The code, one for each thing that a caller could do differently.
    pub code: Code,
    /// The message, with its setting and position.
    pub diagnostic: Diagnostic,
}

/// A workflow file that cannot be used.
#[expect(missing_docs, reason = "the messages say what each variant and field is")]
#[derive(Debug, thiserror::Error)]
pub enum WorkflowError {
    /// The file does not exist or cannot be read.
    #[error("could not read the workflow file {}", file.display())]
    Unreadable {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The path leads to a directory, a FIFO or another object that is not a regular file.
    #[error("the workflow file {} is not a regular file", file.display())]
    NotAFile { file: PathBuf },
    /// The file could be read, and its content has errors.
    #[error("{}", one_line(file, problems.iter().map(|problem| &problem.diagnostic)))]
    Faulty {
        file: PathBuf,
        /// Every error, in the order of the file; never empty.
        problems: Vec<Problem>,
    },
}

impl WorkflowError {
    /// Returns the errors in the file's content; empty if it could not be read.
    pub fn problems(&self) -> &[Problem] {
        if let Self::Faulty { problems, .. } = self { problems } else { &[] }
    }
}

impl Coded for WorkflowError {
    fn code(&self) -> Code {
        self.problems().first().map_or(Code::WorkflowMissing, |problem| problem.code)
    }

    fn detail(&self) -> Value {
        let problems: Vec<Value> = self.problems().iter().map(describe).collect();
        let mut detail = problems.first().cloned().unwrap_or_else(|| json!({}));
        let (Self::Unreadable { file, .. } | Self::NotAFile { file } | Self::Faulty { file, .. }) =
            self;
        detail["file"] = json!(file.display().to_string());
        if problems.len() > 1 {
            detail["problems"] = Value::Array(problems);
        }
        detail
    }
}

fn describe(problem: &Problem) -> Value {
    let Diagnostic { position, key, message } = &problem.diagnostic;
    let mut value = json!({ "kind": problem.code.kind(), "message": message });
    if let Some(position) = position {
        value["line"] = json!(position.line);
        value["column"] = json!(position.column);
    }
    if let Some(key) = key {
        value["key"] = json!(key);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Position;
    use pretty_assertions::assert_eq;

    fn faulty(count: usize) -> WorkflowError {
        let problem = |line| Problem {
            code: Code::WorkflowInvalid,
            diagnostic: Diagnostic::about(
                "a.b",
                Some(Position { line, column: 3 }),
                "a.b is wrong",
            ),
        };
        WorkflowError::Faulty { file: "W.md".into(), problems: (1..=count).map(problem).collect() }
    }

    #[test]
    fn every_problem_is_listed_with_its_position_up_to_a_limit() {
        assert_eq!(faulty(2).to_string(), "W.md:1:3: a.b is wrong; W.md:2:3: a.b is wrong");
        assert!(faulty(12).to_string().ends_with("W.md:10:3: a.b is wrong (and 2 more)"));
    }

    #[test]
    fn the_detail_names_file_line_column_and_key() {
        let problem = json!({"kind": "invalid_workflow_config", "message": "a.b is wrong", "line": 1, "column": 3, "key": "a.b"});
        let mut expected = problem;
        expected["file"] = json!("W.md");
        assert_eq!(faulty(1).detail(), expected);
        assert_eq!(faulty(3).detail()["problems"].as_array().map(Vec::len), Some(3));
    }
}
