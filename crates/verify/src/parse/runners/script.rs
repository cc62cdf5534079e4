//! Runners that nothing is known about. The exit status decides.

use crate::parse::context::Context;
use crate::parse::report::{Counts, Failure};
use crate::parse::test::Parsed;
use crate::parse::text;

/// A script counts as one test: whether it ran any is not to be seen from outside.
pub(super) fn read(context: &Context<'_>) -> Parsed {
    let Some(status) = context.exit() else { return Parsed::default() };
    if status == 0 {
        return Parsed { counts: Counts { passed: 1, ..Counts::default() }, ..Parsed::default() };
    }
    let failure = Failure {
        name: context.invocation.argv.join(" "),
        file: None,
        line: None,
        message: text::tail(context).unwrap_or_else(|| format!("exit status {status}")),
        diff: None,
        rerun: None,
    };
    let counts = Counts { failed: 1, ..Counts::default() };
    Parsed { counts, failures: vec![failure], ..Parsed::default() }
}
