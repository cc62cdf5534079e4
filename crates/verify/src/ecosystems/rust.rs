//! Rust: cargo packages and workspaces, nextest, aliases.
//!
//! A workspace root is checked with `--workspace`, a member with `-p`. nextest is used if the
//! workspace has its settings file. The edition matters because rustfmt, called for a single file,
//! does not read the manifest.

use crate::manifest::{Toml, matches};
use crate::paths;
use crate::profile::{
    CargoPackage, Ecosystem, Membership, PackageManager, Profile, ProfileField, ProjectCommand,
    args, words,
};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

const MANIFEST: &str = "Cargo.toml";

/// Edition of a package that names none.
const OLDEST_EDITION: &str = "2015";

/// Edition assumed if the manifest cannot be parsed; most files are valid in it.
const LIKELY_EDITION: &str = "2021";

/// Settings of nextest, relative to the workspace root.
const NEXTEST: &str = ".config/nextest.toml";

pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let manifest = paths::join(directory, MANIFEST);
    if !reader.has(&manifest) {
        return None;
    }
    let mut profile = Profile::new(Ecosystem::Rust, directory, &manifest);
    let text = profile.accept(reader.read(&manifest)).flatten();
    let toml = text.as_deref().and_then(|text| profile.accept(Toml::parse(&manifest, text)));
    profile.set_manager(PackageManager::Cargo, &manifest);
    let owner = toml.as_ref().and_then(|toml| membership(reader, directory, toml, &mut profile));
    let facts = facts(reader, directory, toml.as_ref(), owner.as_deref());
    profile.name.clone_from(&facts.package);
    commands(reader, &manifest, owner.as_deref(), &facts, &mut profile);
    profile.cargo = Some(facts);
    aliases(reader, directory, &mut profile);
    Some(profile)
}

/// Sets the membership of the package and returns the directory of its workspace, if it is a
/// member.
fn membership(
    reader: &ProjectReader<'_>,
    directory: &str,
    toml: &Toml<'_>,
    profile: &mut Profile,
) -> Option<String> {
    if toml.has("workspace") {
        profile.membership = Some(Membership::Root { members: toml.strings("workspace.members") });
        return None;
    }
    let owner = match toml.string("package.workspace") {
        Some(written) => paths::resolve(directory, &written),
        None => paths::upwards(directory).skip(1).find_map(|above| owns(reader, above, directory)),
    };
    profile.membership = owner.clone().map(|of| Membership::Member { of });
    owner
}

/// Returns a parent directory if its workspace lists the package as a member.
fn owns(reader: &ProjectReader<'_>, above: &str, directory: &str) -> Option<String> {
    let manifest = paths::join(above, MANIFEST);
    let text = reader.text(&manifest)?;
    let toml = Toml::parse(&manifest, &text).ok()?;
    if !toml.has("workspace") {
        return None;
    }
    let below = paths::relative(above, directory);
    let named = |key: &str| toml.strings(key).iter().any(|pattern| matches(pattern, &below));
    let excluded = toml.strings("workspace.exclude").iter().any(|left_out| {
        let left_out = left_out.trim_start_matches("./").trim_end_matches('/');
        paths::is_within(&below, left_out)
    });
    let member = named("workspace.members") && !excluded;
    member.then(|| above.to_owned())
}

fn facts(
    reader: &ProjectReader<'_>,
    directory: &str,
    toml: Option<&Toml<'_>>,
    owner: Option<&str>,
) -> CargoPackage {
    let package = toml.and_then(|toml| toml.string("package.name"));
    let library = toml.is_some_and(|toml| toml.has("lib"))
        || reader.has(&paths::join(directory, "src/lib.rs"));
    let edition = toml.map_or_else(
        || LIKELY_EDITION.to_owned(),
        |toml| edition(reader, toml, owner.unwrap_or(directory)),
    );
    CargoPackage { package, edition, library }
}

/// Returns the edition of a package; a virtual workspace has that of its members.
fn edition(reader: &ProjectReader<'_>, toml: &Toml<'_>, workspace: &str) -> String {
    let inherits = toml.has("package.edition.workspace") || !toml.has("package");
    let shared = || inherits.then(|| shared_edition(reader, workspace)).flatten();
    toml.string("package.edition").or_else(shared).unwrap_or_else(|| OLDEST_EDITION.to_owned())
}

/// Returns the edition that members inherit from a workspace.
fn shared_edition(reader: &ProjectReader<'_>, workspace: &str) -> Option<String> {
    let manifest = paths::join(workspace, MANIFEST);
    let text = reader.text(&manifest)?;
    Toml::parse(&manifest, &text).ok()?.string("workspace.package.edition")
}

fn commands(
    reader: &ProjectReader<'_>,
    manifest: &str,
    owner: Option<&str>,
    facts: &CargoPackage,
    profile: &mut Profile,
) {
    let directory = profile.root.clone();
    let is_root = matches!(profile.membership, Some(Membership::Root { .. }));
    let reach: Vec<&str> = match &facts.package {
        _ if is_root => vec!["--workspace"],
        Some(package) => vec!["-p", package],
        None => vec![],
    };
    let cargo = |tool, argv| {
        let argv = [words(argv), args(&reach)].concat();
        ProjectCommand::new(tool, &directory, argv).per_package("rs")
    };
    profile.set_install(&directory, "cargo fetch", manifest);
    let clippy = cargo(ProjectTool::Clippy, "cargo clippy --all-targets");
    profile.set(ProfileField::Lint, clippy, manifest);
    let check = cargo(ProjectTool::CargoCheck, "cargo check --all-targets");
    profile.set(ProfileField::Typecheck, check, manifest);
    let (test, file) = match reader.first(owner.unwrap_or(&directory), NEXTEST) {
        Some(settings) => (cargo(ProjectTool::Nextest, "cargo nextest run"), settings),
        None => (cargo(ProjectTool::CargoTest, "cargo test"), manifest.to_owned()),
    };
    profile.set(ProfileField::Test, test, &file);
    format_commands(manifest, is_root, facts, profile);
}

fn format_commands(manifest: &str, is_root: bool, facts: &CargoPackage, profile: &mut Profile) {
    let directory = profile.root.clone();
    let reach = if is_root { "--all" } else { "" };
    let command = |tail, check| {
        let whole = [words("cargo fmt"), words(reach), words(tail)].concat();
        // Without an edition rustfmt assumes 2015, in which `async` is not a keyword.
        let single = [args(&["rustfmt", "--edition", &facts.edition]), words(check)].concat();
        ProjectCommand::new(ProjectTool::Rustfmt, &directory, whole).per_file(single, "rs")
    };
    profile.set(ProfileField::Format, command("", ""), manifest);
    profile.set(ProfileField::FormatCheck, command("-- --check", "--check"), manifest);
}

/// Adds the aliases of the nearest `.cargo/config.toml` as scripts.
fn aliases(reader: &ProjectReader<'_>, directory: &str, profile: &mut Profile) {
    let Some(file) = reader.nearest(directory, ".cargo/config.toml .cargo/config") else { return };
    let Some(text) = profile.accept(reader.read(&file)).flatten() else { return };
    let Some(toml) = profile.accept(Toml::parse(&file, &text)) else { return };
    for (name, value) in toml.entries("alias") {
        let list = toml.strings(&format!("alias.{name}")).join(" ");
        let text = value.get_ref().as_str().unwrap_or(&list);
        profile.add_script(&name, text, &file, args(&["cargo", &name]));
    }
}
