//! PHP: Composer, `PHPUnit`, `PHPStan`, PHP CS Fixer. Programs in `vendor/bin` are preferred to
//! those in `PATH`.

use serde_json::Value;

use crate::manifest::parse_json;
use crate::paths;
use crate::profile::{
    Ecosystem, PackageManager, Profile, ProfileField, ProjectCommand, args, words,
};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

pub(crate) fn detect(reader: &ProjectReader<'_>, directory: &str) -> Option<Profile> {
    let marker = reader.first(directory, "composer.json")?;
    let mut profile = Profile::new(Ecosystem::Php, directory, &marker);
    profile.set_manager(PackageManager::Composer, &marker);
    let settings = profile.accept(reader.document(&marker, parse_json)).unwrap_or_default();
    profile.name = settings["name"].as_str().map(str::to_owned);
    profile.set_install(directory, "composer install", &marker);
    profile.set_deps_dir(paths::join(directory, "vendor"), &marker);
    for (name, script) in settings["scripts"].as_object().into_iter().flatten() {
        let text = script.as_str().unwrap_or_default();
        profile.add_script(name, text, &marker, args(&["composer", "run-script", name]));
    }
    commands(reader, &settings, &marker, &mut profile);
    Some(profile)
}

fn commands(reader: &ProjectReader<'_>, settings: &Value, marker: &str, profile: &mut Profile) {
    let directory = profile.root.clone();
    let named = |files, package: &str| {
        let own = reader.first(&directory, files);
        let needed =
            !settings["require-dev"][package].is_null() || !settings["require"][package].is_null();
        own.or_else(|| needed.then(|| marker.to_owned()))
    };
    let vendor = |tool: ProjectTool, tail| {
        let local = format!("vendor/bin/{}", tool.name());
        let installed = reader.has_program(&paths::join(&directory, &local));
        let program = if installed { local } else { tool.name().to_owned() };
        let argv = [vec![program], words(tail)].concat();
        ProjectCommand::for_files(tool, &directory, argv, "", Ecosystem::Php.extensions())
    };
    let phpunit = "phpunit.xml phpunit.xml.dist phpunit.dist.xml";
    if let Some(file) = named(phpunit, "phpunit/phpunit") {
        profile.set(ProfileField::Test, vendor(ProjectTool::Phpunit, ""), &file);
    }
    let phpstan = "phpstan.neon phpstan.neon.dist phpstan.dist.neon";
    if let Some(file) = named(phpstan, "phpstan/phpstan") {
        let analyse = vendor(ProjectTool::Phpstan, "analyse --no-progress");
        profile.set(ProfileField::Lint, analyse.clone(), &file);
        profile.set(ProfileField::Typecheck, analyse, &file);
    }
    let fixer = ".php-cs-fixer.php .php-cs-fixer.dist.php";
    if let Some(file) = named(fixer, "friendsofphp/php-cs-fixer") {
        profile.set(ProfileField::Format, vendor(ProjectTool::PhpCsFixer, "fix"), &file);
        let check = vendor(ProjectTool::PhpCsFixer, "fix --dry-run");
        profile.set(ProfileField::FormatCheck, check, &file);
    }
}
