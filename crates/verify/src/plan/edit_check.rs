//! Plans of compiler checks after an edit.
//!
//! The commands are the type checks of the profile, narrowed to the package of the file, with three differences: they
//! never use a network, the build directory of cargo is their own, so that neither an agent's build nor a check on request
//! waits for them, and that directory stays with the workspace, so that the next check is incremental.

use crate::paths;
use crate::plan::{CommandScope, Invocation, plan_check};
use crate::profile::{Ecosystem, Profile, ProfileField};
use crate::tool::ProjectTool;

/// Placeholder in variables for a directory of caches that stays with the workspace.
pub const KEPT_CACHE: &str = "{kept}";

/// The directory of libraries and programs, without tests and examples.
const SOURCES: &str = "src/";

/// The directory of build output of these checks, with the placeholder.
pub const EDIT_CHECK_OUTPUT: &str = "{kept}/edit-check";

/// Variables of the check. cargo has a build directory of its own, without code for debuggers, which would only take
/// time; Go has its usual cache in the home, which any number of its commands can use at once.
const VARIABLES: [(&str, &str); 4] = [
    ("CARGO_TARGET_DIR", "{kept}/edit-check/cargo"),
    ("CARGO_PROFILE_DEV_DEBUG", "0"),
    ("GOCACHE", "{kept}/../go-build"),
    ("GOPROXY", "off"),
];

/// Plans the check of the package of a Rust or Go file; `None` for other files, and for projects whose type check is
/// another command.
pub fn plan_edit_check(profile: &Profile, path: &str) -> Option<Invocation> {
    let command = profile.command(ProfileField::Typecheck)?;
    let expected = match (profile.ecosystem, paths::extension(path)) {
        (Ecosystem::Rust, "rs") => ProjectTool::CargoCheck,
        (Ecosystem::Go, "go") => ProjectTool::GoVet,
        _ => return None,
    };
    if command.tool != expected {
        return None;
    }
    let package = profile.cargo.as_ref().and_then(|cargo| cargo.package.as_deref());
    let scope = package.map_or(CommandScope::File(path), CommandScope::Package);
    let mut invocation = plan_check(profile, ProfileField::Typecheck, scope).ok()?;
    if expected == ProjectTool::CargoCheck {
        // Tests, benches and examples need dependencies of their own, which may take minutes to compile.
        if paths::relative(&profile.root, path).starts_with(SOURCES) {
            invocation.argv.retain(|word| word != "--all-targets");
        }
        invocation.argv.push("--offline".to_owned());
    }
    invocation.environment.retain(|(name, _)| VARIABLES.iter().all(|(own, _)| own != name));
    let own = VARIABLES.map(|(name, value)| (name.to_owned(), value.to_owned()));
    invocation.environment.extend(own);
    Some(invocation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{CargoPackage, ProjectCommand, words};

    fn profile(ecosystem: Ecosystem, tool: ProjectTool, argv: &str) -> Profile {
        let mut profile = Profile::new(ecosystem, ".", "manifest");
        let command = ProjectCommand::new(tool, ".", words(argv)).per_package("");
        profile.set(ProfileField::Typecheck, command, "manifest");
        profile
    }

    #[test]
    fn a_file_is_checked_with_its_package_and_changes_nothing() {
        let argv = "cargo check --all-targets --workspace";
        let mut rust = profile(Ecosystem::Rust, ProjectTool::CargoCheck, argv);
        let (package, edition) = (Some("probe".to_owned()), "2024".to_owned());
        rust.cargo = Some(CargoPackage { package, edition, library: true });
        let planned = plan_edit_check(&rust, "src/lib.rs").unwrap();
        let line = planned.argv.join(" ");
        for part in ["cargo check ", "-p probe", "--message-format=json", "--locked", "--offline"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(!line.contains("--workspace") && !line.contains("--all-targets"), "{line}");
        let tests = plan_edit_check(&rust, "tests/all.rs").unwrap();
        assert!(tests.argv.contains(&"--all-targets".to_owned()), "{tests:?}");
        let own = ("CARGO_TARGET_DIR".to_owned(), "{kept}/edit-check/cargo".to_owned());
        assert_eq!(planned.environment.iter().filter(|(name, _)| *name == own.0).count(), 1);
        assert!(planned.environment.contains(&own), "{:?}", planned.environment);
        assert_eq!(planned.access, crate::plan::TreeAccess::ReadOnly);

        let go = profile(Ecosystem::Go, ProjectTool::GoVet, "go vet ./...");
        let planned = plan_edit_check(&go, "a/a.go").unwrap();
        assert_eq!(planned.argv.join(" "), "go vet ./a");
        assert_eq!(planned.access, crate::plan::TreeAccess::ReadOnly);
    }

    #[test]
    fn other_files_and_other_commands_are_not_checked() {
        let rust = profile(Ecosystem::Rust, ProjectTool::CargoCheck, "cargo check");
        assert_eq!(plan_edit_check(&rust, "README.md"), None);
        let other = profile(Ecosystem::Rust, ProjectTool::Other, "./check");
        assert_eq!(plan_edit_check(&other, "src/lib.rs"), None);
        let node = profile(Ecosystem::Node, ProjectTool::Tsc, "tsc");
        assert_eq!(plan_edit_check(&node, "a.ts"), None);
    }
}
