//! `carrel.toml`: the settings of a project, which override detection.
//!
//! ```toml
//! [profile]               # for every project in this directory
//! test = ["make", "check"]
//! format_on_edit = true
//!
//! [profile.rust]          # for one of several; overrides the table above
//! lint = ["cargo", "xtask", "lint"]
//!
//! [edit]
//! limits = "strict"
//! ```
//!
//! Commands apply to the directory of the file. `format_on_edit` and `[edit]` also apply below it,
//! up to the next `carrel.toml`. An invalid key or value is reported as a problem of the profile
//! and skipped; the rest of the file still applies. Commands are argument lists and never run by a
//! shell.

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::manifest::{Toml, TomlValue, texts};
use crate::paths;
use crate::profile::{
    Ecosystem, EditLimits, OptionPassing, Profile, ProfileField, ProfileProblem, ProjectCommand,
};
use crate::project_reader::ProjectReader;
use crate::tool::ProjectTool;

/// Name of the settings file.
pub const SETTINGS_FILE: &str = "carrel.toml";

#[derive(Clone, Debug, Default)]
struct Table {
    commands: Vec<(ProfileField, Vec<String>)>,
    format_on_edit: Option<bool>,
}

#[derive(Debug, Default)]
struct Settings {
    shared: Table,
    each: Vec<(Ecosystem, Table)>,
    limits: Option<EditLimits>,
    problems: Vec<ProfileProblem>,
}

/// Applies the settings of a directory to its projects. A file with commands in a directory without
/// a project creates one with [`Ecosystem::Custom`].
pub(crate) fn apply(reader: &ProjectReader<'_>, directory: &str, profiles: &mut Vec<Profile>) {
    let file = paths::join(directory, SETTINGS_FILE);
    let own = read(reader, &file);
    if profiles.is_empty() {
        match &own {
            Some(settings)
                if !settings.shared.commands.is_empty() || !settings.problems.is_empty() =>
            {
                profiles.push(Profile::new(Ecosystem::Custom, directory, &file));
            }
            Some(_) | None => return,
        }
    }
    for profile in profiles {
        inherit(reader, directory, profile);
        if let Some(settings) = &own {
            settings.apply(&file, profile);
        }
    }
}

/// Applies the inherited settings of the nearest file above.
fn inherit(reader: &ProjectReader<'_>, directory: &str, profile: &mut Profile) {
    let above = paths::parent(directory).and_then(|above| reader.nearest(above, SETTINGS_FILE));
    let Some(file) = above else { return };
    let Some(settings) = read(reader, &file) else { return };
    let inherited = Settings {
        shared: Table { commands: Vec::new(), ..settings.shared },
        each: Vec::new(),
        limits: settings.limits,
        problems: Vec::new(),
    };
    inherited.apply(&file, profile);
}

impl Settings {
    fn apply(&self, file: &str, profile: &mut Profile) {
        let own = profile.ecosystem;
        let each = self.each.iter().filter(|(ecosystem, _)| *ecosystem == own);
        for table in std::iter::once(&self.shared).chain(each.map(|(_, table)| table)) {
            for (fact, argv) in &table.commands {
                let command = explicit(&profile.root, argv, profile.command(*fact));
                profile.set(*fact, command, file);
            }
            if let Some(format_on_edit) = table.format_on_edit {
                profile.format_on_edit = format_on_edit;
                profile.add_evidence(ProfileField::FormatOnEdit, file);
            }
        }
        if let Some(limits) = self.limits {
            profile.edit_limits = limits;
            profile.add_evidence(ProfileField::EditLimits, file);
        }
        profile.problems.extend(self.problems.iter().cloned());
    }
}

/// Creates a command from configured arguments. An argument `$FILES` is replaced by files; a
/// command with it can be limited to files, and covers the project if it is removed.
fn explicit(directory: &str, argv: &[String], detected: Option<&ProjectCommand>) -> ProjectCommand {
    const FILES: &str = "$FILES";
    let tool = ProjectTool::recognise(argv).unwrap_or(ProjectTool::Other);
    let whole: Vec<String> = argv.iter().filter(|word| *word != FILES).cloned().collect();
    let mut command = ProjectCommand::new(tool, directory, whole.clone());
    if tool == ProjectTool::Other {
        command.injection = OptionPassing::Impossible;
    }
    if argv.iter().any(|word| word == FILES) {
        command = command.per_file(whole, "");
    }
    if let Some(same) = detected.filter(|detected| detected.tool == tool) {
        command.extensions.clone_from(&same.extensions);
        command.scope = if command.file_argv.is_some() { command.scope } else { same.scope };
    }
    command
}

/// Reads a settings file; `None` if there is none.
fn read(reader: &ProjectReader<'_>, file: &str) -> Option<Settings> {
    let text = reader.read(file).transpose()?;
    let settings = text.and_then(|text| {
        let toml = Toml::parse(file, &text)?;
        Ok(Reader { toml: &toml, settings: Settings::default() }.read())
    });
    let broken = |problem| Settings { problems: vec![problem], ..Settings::default() };
    Some(settings.unwrap_or_else(broken))
}

struct Reader<'a, 'b> {
    toml: &'a Toml<'b>,
    settings: Settings,
}

impl<'b> Reader<'_, 'b> {
    fn read(mut self) -> Settings {
        for (name, value) in self.toml.table() {
            match (name.get_ref().as_ref(), value.get_ref()) {
                ("profile", DeValue::Table(table)) => self.profile(table),
                ("edit", DeValue::Table(table)) => self.edit(table),
                ("profile" | "edit", _) => self.report(value, "must be a table"),
                (other, _) => {
                    self.report(
                        name,
                        format!("unknown table `{other}`; expected `profile` or `edit`"),
                    );
                }
            }
        }
        self.settings.problems.sort();
        self.settings
    }

    fn profile(&mut self, table: &DeTable<'b>) {
        let mut shared = Table::default();
        for (name, value) in table {
            let ecosystem = Ecosystem::named(name.get_ref()).next();
            if let (Some(ecosystem), DeValue::Table(inner)) = (ecosystem, value.get_ref()) {
                let mut each = Table::default();
                for (name, value) in inner {
                    self.entry(&mut each, name, value);
                }
                self.settings.each.push((ecosystem, each));
            } else {
                self.entry(&mut shared, name, value);
            }
        }
        self.settings.shared = shared;
    }

    fn entry(&mut self, table: &mut Table, name: &Spanned<DeString<'b>>, value: &TomlValue<'b>) {
        let key = name.get_ref().as_ref();
        if let Some(fact) = ProfileField::COMMANDS.into_iter().find(|fact| fact.as_str() == key) {
            let example = "[\"make\", \"check\"]";
            match argv(value.get_ref()) {
                Some(argv) => table.commands.push((fact, argv)),
                None => self
                    .report(value, format!("`{key}` must be a list of strings such as {example}")),
            }
        } else if key == ProfileField::FormatOnEdit.as_str() {
            match value.get_ref().as_bool() {
                Some(on) => table.format_on_edit = Some(on),
                None => self.report(value, "`format_on_edit` must be true or false"),
            }
        } else {
            let known = ProfileField::COMMANDS.map(ProfileField::as_str).join(", ");
            let expected = format!("expected one of {known}, format_on_edit");
            self.report(name, format!("unknown key `{key}` in [profile]; {expected}"));
        }
    }

    fn edit(&mut self, table: &DeTable<'b>) {
        for (name, value) in table {
            match (name.get_ref().as_ref(), value.get_ref().as_str()) {
                ("limits", Some("strict")) => self.settings.limits = Some(EditLimits::Strict),
                ("limits", Some("standard")) => self.settings.limits = Some(EditLimits::Standard),
                ("limits", _) => self.report(value, "`limits` must be \"standard\" or \"strict\""),
                (other, _) => {
                    self.report(
                        name,
                        format!("unknown key `{other}` in [edit]; expected `limits`"),
                    );
                }
            }
        }
    }

    /// Records a problem at the line of a key or value.
    fn report<T>(&mut self, at: &Spanned<T>, message: impl Into<String>) {
        self.settings.problems.push(self.toml.problem(at.span().start, message));
    }
}

/// Returns a list of at least one string and nothing else.
fn argv(value: &DeValue<'_>) -> Option<Vec<String>> {
    let array = value.as_array()?;
    let words = texts(value);
    let complete = words.len() == array.iter().count() && !words.is_empty();
    complete.then_some(words)
}
