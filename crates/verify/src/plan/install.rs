//! Plans of installations, and their need for a network.

use crate::paths;
use crate::plan::{CommandScope, Invocation, PlanError, plan_check};
use crate::profile::{Profile, ProfileField, has_word, words};
use crate::tool::strip_launcher;

/// Programs that download packages. Others, such as `./configure`, `cmake` and `meson`, prepare a build from files
/// that are there.
const DOWNLOADERS: &str = "npm pnpm yarn bun pip pip3 uv poetry pipenv pdm conda cargo go mvn mvnw \
    gradle gradlew deno bundle composer dotnet mix zig swift dart flutter sbt opam cabal stack bazel \
    bazelisk";

/// The command line of pip outside of an environment. pyenv recognises `pip` and ` -m pip `, and afterwards writes to
/// the directory of its shims, which fails in a sandbox.
const PIP: &str = "python3 -mpip";

/// Variables that keep package managers from looking for newer versions of themselves and from advertising.
const VARIABLES: [(&str, &str); 3] = [
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("npm_config_update_notifier", "false"),
    ("npm_config_fund", "false"),
];

/// Plans the installation of a project's dependencies.
pub fn plan_install(profile: &Profile) -> Result<Invocation, PlanError> {
    let mut invocation = plan_check(profile, ProfileField::Install, CommandScope::Project)?;
    if invocation.argv.first().is_some_and(|program| program == "pip") {
        invocation.argv.splice(..1, words(PIP));
    }
    let added = VARIABLES.map(|(name, value)| (name.to_owned(), value.to_owned()));
    invocation.environment.extend(added);
    Ok(invocation)
}

/// Returns true if an installation cannot be expected to succeed without a network: its program downloads packages.
pub fn needs_network(invocation: &Invocation) -> bool {
    let words: Vec<&str> = invocation.argv.iter().map(String::as_str).collect();
    let program = strip_launcher(&words).first().copied().unwrap_or_default();
    has_word(DOWNLOADERS, paths::name(program)) || words.starts_with(&["python3", "-mpip"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Ecosystem;

    #[test]
    fn package_managers_need_a_network_and_configure_scripts_do_not() {
        let cases = [
            ("npm install", true),
            ("pip install -r requirements.txt", true),
            (".venv/bin/pip install -e .", true),
            ("python -m pip install -r requirements.txt", true),
            ("./gradlew dependencies", true),
            ("cargo fetch", true),
            ("./configure", false),
            ("meson setup build", false),
            ("./scripts/bootstrap", false),
        ];
        for (line, expected) in cases {
            let mut profile = Profile::new(Ecosystem::Custom, ".", "carrel.toml");
            profile.set_install(".", line, "carrel.toml");
            let planned = plan_install(&profile).unwrap();
            assert_eq!(needs_network(&planned), expected, "{line}");
        }
    }
}
