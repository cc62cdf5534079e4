//! The choice of projects for a call.

use std::path::Path;
use std::sync::Arc;

use carrel_domain::{Code, Failure};
use carrel_fsroot::FileKind;
use carrel_verify::plan::CommandScope;
use carrel_verify::{CacheStatus, ChoiceError, Profile, ProfileField, choose_projects};

use crate::blocking::blocking;
use crate::files::shown;
use crate::tool_context::ToolContext;
use carrel_audit::AuditEvent;

#[derive(Debug)]
pub(super) struct ProjectChoice {
    pub(super) profiles: Vec<Profile>,
    path: Option<(String, FileKind)>,
    package: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct ProjectQuery {
    pub(super) path: Option<String>,
    pub(super) package: Option<String>,
    pub(super) language: Option<String>,
}

impl ProjectChoice {
    /// Finds the projects: the nearest one of a path, or those of the workspace.
    pub(super) async fn of(context: &ToolContext, query: ProjectQuery) -> Result<Self, Failure> {
        let workspace = Arc::clone(context.workspace());
        let toolbox = Arc::clone(&context.toolbox);
        let (chosen, fresh) = blocking(move || {
            let ProjectQuery { path, package, language } = query;
            let given = path.filter(|path| !path.trim().is_empty());
            let files = workspace.files();
            let (found, freshness, path) = match given.map(|path| workspace.relative(&path)) {
                None => {
                    let (survey, freshness) = toolbox.profiles.detect_all(files)?;
                    (survey.profiles.clone(), freshness, None)
                }
                Some(path) => {
                    let kind = files.metadata(&path)?.kind;
                    let located = files.locate(&path)?;
                    let (detection, freshness) = toolbox.profiles.detect(files, &located)?;
                    let path = (shown_or_top(&located), kind);
                    (detection.profiles.clone(), freshness, Some(path))
                }
            };
            let profiles = choose_among(&found, language.as_deref(), path.is_some())?;
            let chosen = Self { profiles, path, package };
            Ok((chosen, freshness != CacheStatus::Hit))
        })
        .await?;
        if fresh {
            chosen.profiles.iter().for_each(|profile| announce(context, profile));
        }
        Ok(chosen)
    }

    pub(super) async fn all(context: &ToolContext) -> Result<Vec<Profile>, Failure> {
        let workspace = Arc::clone(context.workspace());
        let toolbox = Arc::clone(&context.toolbox);
        let (survey, freshness) =
            blocking(move || Ok(toolbox.profiles.detect_all(workspace.files())?)).await?;
        if freshness != CacheStatus::Hit {
            survey.profiles.iter().for_each(|profile| announce(context, profile));
        }
        Ok(survey.profiles.clone())
    }

    /// Returns the part of a project that its commands are for.
    pub(super) fn scope(&self, profile: &Profile) -> CommandScope<'_> {
        match (&self.package, &self.path) {
            (Some(package), _) => CommandScope::Package(package),
            (None, Some((path, FileKind::Directory))) if *path == profile.root => {
                CommandScope::Project
            }
            (None, Some((path, FileKind::Directory))) => CommandScope::Directory(path),
            (None, Some((path, _))) => CommandScope::File(path),
            (None, None) => CommandScope::Project,
        }
    }
}

fn shown_or_top(path: &Path) -> String {
    let text = shown(path);
    if text.is_empty() { ".".to_owned() } else { text }
}

/// Chooses by language. The nearest project of a path may have several languages in one directory.
fn choose_among(
    found: &[Profile],
    language: Option<&str>,
    near: bool,
) -> Result<Vec<Profile>, Failure> {
    if near && found.is_empty() {
        let message = "no supported project detected at or above the path";
        return Err(Failure::new(Code::ProjectNotDetected, message));
    }
    // Projects of the nearest directory are treated as if it were the top of the workspace.
    let at_top: Vec<Profile>;
    let candidates = if near {
        at_top =
            found.iter().cloned().map(|profile| Profile { root: ".".into(), ..profile }).collect();
        &at_top[..]
    } else {
        found
    };
    let chosen = choose_projects(candidates, language).map_err(|error| {
        let code = match error {
            ChoiceError::NoProject | ChoiceError::OnlyStray { .. } => Code::ProjectNotDetected,
            ChoiceError::Polyglot { .. } | ChoiceError::NotDetected { .. } => {
                Code::LanguageNotChosen
            }
        };
        Failure::new(code, error.to_string())
    })?;
    let is_chosen = |profile: &&Profile| {
        chosen
            .iter()
            .any(|one| one.ecosystem == profile.ecosystem && (near || one.root == profile.root))
    };
    Ok(found.iter().filter(is_chosen).cloned().collect())
}

pub(super) fn announce(context: &ToolContext, profile: &Profile) {
    let line = |field: ProfileField| {
        let command = profile.command(field)?;
        let argv =
            if command.argv.is_empty() { command.file_argv.as_ref()? } else { &command.argv };
        Some(argv.join(" "))
    };
    let event = AuditEvent::WorkspaceProfile {
        workspace: context.workspace().name().to_owned(),
        directory: profile.root.clone(),
        ecosystem: profile.ecosystem.as_str().to_owned(),
        package_manager: profile.package_manager.map(|manager| manager.as_str().to_owned()),
        install_command: line(ProfileField::Install),
        lint_command: line(ProfileField::Lint),
        format_command: line(ProfileField::Format),
        test_command: line(ProfileField::Test),
        typecheck_command: line(ProfileField::Typecheck),
    };
    context.toolbox.events.add(context.session.id(), context.options.interface, event);
}
