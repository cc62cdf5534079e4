//! Second runs that find the test at fault when a process ended before its results.
//!
//! With several tests at once, the output of a crashed process does not tell which of them was
//! running. A second run of the same part, with the same filters and one test at a time, does.

use crate::plan::select::cargo_part;
use crate::plan::{Invocation, Selector};
use crate::profile::words;
use crate::tool::ProjectTool;

/// Plans a run of a part of an earlier run, one test at a time and with each test announced before
/// it runs; `None` if the runner cannot do so. The part is the selector of a failure without the
/// name of a test.
pub fn plan_one_at_a_time(invocation: &Invocation, part: &Selector) -> Option<Invocation> {
    let argv = &invocation.argv;
    let argv = match invocation.tool {
        ProjectTool::CargoTest => cargo_part(argv, part, "--test-threads=1"),
        // Verbosity adds up, and a project may have set a negative one.
        ProjectTool::Pytest => [argv.clone(), words("-vvvv")].concat(),
        ProjectTool::GoTest => {
            let package = part.package.clone()?;
            let at = argv.iter().position(|word| word == "test").map_or(argv.len(), |at| at + 1);
            let all = argv.iter().any(|word| word.ends_with("..."));
            let rest = argv[at..].iter().filter(|word| !word.ends_with("...")).cloned();
            let package = all.then_some(package);
            argv[..at]
                .iter()
                .cloned()
                .chain(words("-parallel=1"))
                .chain(rest)
                .chain(package)
                .collect()
        }
        _ => return None,
    };
    Some(Invocation { argv, ..invocation.clone() })
}
