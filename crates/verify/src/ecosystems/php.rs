//! PHP: Composer, `PHPUnit`, `PHPStan`, PHP CS Fixer. Programs in `vendor/bin` are preferred to
//! those in `PATH`.

use serde_json::Value;

use crate::manifest::parse_json;
use crate::paths;
use crate::profile::{
    Ecosystem, PackageManager, Profile, ProfileField, ProjectCommand, ProjectScript, args,
};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

const EXTENSIONS: &[&str] = &["php"];

pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let marker = reader.first(directory, &["composer.json"])?;
    let mut profile = Profile::new(Ecosystem::Php, directory, &marker);
    profile.set_manager(PackageManager::Composer, &marker);
    let text = reader.read(&marker).map(Option::unwrap_or_default);
    let settings = text.and_then(|text| parse_json(&marker, &text)).unwrap_or_else(|problem| {
        profile.problems.push(problem);
        Value::Null
    });
    profile.name = settings["name"].as_str().map(str::to_owned);
    let install = ProjectCommand::new(ProjectTool::Installer, directory, &["composer", "install"]);
    profile.set(ProfileField::Install, install, &marker);
    profile.set_deps_dir(paths::join(directory, "vendor"), &marker);
    for (name, script) in settings["scripts"].as_object().into_iter().flatten() {
        let text = script.as_str().unwrap_or_default().to_owned();
        let argv = args(&["composer", "run-script", name]);
        profile.scripts.push(ProjectScript {
            name: name.clone(),
            text,
            file: marker.clone(),
            argv,
        });
    }
    commands(reader, &settings, &marker, &mut profile);
    Some(profile)
}

fn commands(reader: &ProjectReader<'_>, settings: &Value, marker: &str, profile: &mut Profile) {
    let directory = profile.root.clone();
    let named = |files: &[&str], package: &str| {
        let own = reader.first(&directory, files);
        let needed =
            !settings["require-dev"][package].is_null() || !settings["require"][package].is_null();
        own.or_else(|| needed.then(|| marker.to_owned()))
    };
    let vendor = |tool: ProjectTool, tail: &[&str]| {
        let local = format!("vendor/bin/{}", tool.name());
        let installed = reader.has_program(&paths::join(&directory, &local));
        let program = if installed { local } else { tool.name().to_owned() };
        let single = [vec![program], args(tail)].concat();
        ProjectCommand::from_args(tool, &directory, single.clone()).per_file(single, EXTENSIONS)
    };
    if let Some(file) =
        named(&["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"], "phpunit/phpunit")
    {
        profile.set(ProfileField::Test, vendor(ProjectTool::Phpunit, &[]), &file);
    }
    if let Some(file) =
        named(&["phpstan.neon", "phpstan.neon.dist", "phpstan.dist.neon"], "phpstan/phpstan")
    {
        let analyse = vendor(ProjectTool::Phpstan, &["analyse", "--no-progress"]);
        profile.set(ProfileField::Lint, analyse.clone(), &file);
        profile.set(ProfileField::Typecheck, analyse, &file);
    }
    if let Some(file) =
        named(&[".php-cs-fixer.php", ".php-cs-fixer.dist.php"], "friendsofphp/php-cs-fixer")
    {
        profile.set(ProfileField::Format, vendor(ProjectTool::PhpCsFixer, &["fix"]), &file);
        profile.set(
            ProfileField::FormatCheck,
            vendor(ProjectTool::PhpCsFixer, &["fix", "--dry-run"]),
            &file,
        );
    }
}
