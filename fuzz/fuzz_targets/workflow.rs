//! No bytes make the workflow parser panic, hang or take up memory without bound.
#![no_main]

use std::path::Path;

use carrel_config::{Environment, ValidationScope, Workflow};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let environment = Environment::from_pairs([("HOME", "/home/fuzz"), ("ROOT", "/srv/root")]);
    for scope in [ValidationScope::Everything, ValidationScope::WorkspaceAndHooks] {
        match Workflow::parse(bytes, Path::new("/fuzz/WORKFLOW.md"), &environment, scope) {
            Ok(workflow) => assert!(workflow.config.workspace.root.path.is_absolute()),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
