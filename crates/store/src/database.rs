//! Statements that both databases execute alike.
//!
//! An operation that is a fixed row of statements is written once, for any [`Database`] (`records`,
//! `journal`). SQLite executes them in one transaction: on one snapshot if they read, as one operation of
//! the writer thread if they write. PostgreSQL executes one after the other on a session of the pool and
//! repeats all of them after an outage, so that such an operation has to be repeatable statement by
//! statement. Operations that decide between statements, or that move tasks through the queue, are
//! written for each database.

use std::fmt::Debug;

use carrel_domain::Timestamp;

use crate::error::StoreError;
use crate::tenure::{Tenure, TenureOutcome};
use crate::value::{FromRow, Row, Value};

/// A statement in the SQL that both databases understand, with the parameters `$1`, `$2`, ….
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) text: &'static str,
    pub(crate) values: Vec<Value>,
    /// The error of all statements together if this one returns no row.
    required: Option<String>,
}

impl Statement {
    pub(crate) fn new(text: &'static str, values: Vec<Value>) -> Self {
        Self { text, values, required: None }
    }

    pub(crate) fn required(self, error: String) -> Self {
        Self { required: Some(error), ..self }
    }

    /// Fails if the statement has to return a row and did not.
    pub(crate) fn check(&self, rows: &[Row]) -> Result<(), StoreError> {
        match &self.required {
            Some(error) if rows.is_empty() => Err(StoreError::Failed(error.clone().into())),
            _ => Ok(()),
        }
    }
}

/// The rows of each statement.
type Results = Result<Vec<Vec<Row>>, StoreError>;

pub(crate) trait Database: Debug + Send + Sync + 'static {
    fn read(&self, statements: Vec<Statement>) -> impl Future<Output = Results> + Send;

    fn write(&self, statements: Vec<Statement>) -> impl Future<Output = Results> + Send;

    /// Writes in one transaction that fails unless the tenure is the latest of its scope.
    fn write_fenced(
        &self,
        tenure: &Tenure,
        statements: Vec<Statement>,
    ) -> impl Future<Output = Results> + Send;

    fn acquire_tenure(
        &self,
        scope: &str,
        holder: &str,
        now: Timestamp,
    ) -> impl Future<Output = Result<TenureOutcome, StoreError>> + Send;

    fn all<T: FromRow>(
        &self,
        text: &'static str,
        values: Vec<Value>,
    ) -> impl Future<Output = Result<Vec<T>, StoreError>> + Send {
        async move { last(self.read(vec![Statement::new(text, values)]).await?) }
    }

    fn first<T: FromRow>(
        &self,
        text: &'static str,
        values: Vec<Value>,
    ) -> impl Future<Output = Result<Option<T>, StoreError>> + Send {
        async move { Ok(self.all(text, values).await?.into_iter().next()) }
    }

    /// Writes with one statement, and returns the number of rows that it returns.
    fn execute(
        &self,
        text: &'static str,
        values: Vec<Value>,
    ) -> impl Future<Output = Result<usize, StoreError>> + Send {
        async move {
            let rows = self.write(vec![Statement::new(text, values)]).await?;
            Ok(rows.iter().map(Vec::len).sum())
        }
    }
}

/// Reads the rows of the last statement.
pub(crate) fn last<T: FromRow>(mut results: Vec<Vec<Row>>) -> Result<Vec<T>, StoreError> {
    read(results.pop().unwrap_or_default())
}

pub(crate) fn read<T: FromRow>(rows: Vec<Row>) -> Result<Vec<T>, StoreError> {
    rows.into_iter().map(|mut row| row.take()).collect()
}
