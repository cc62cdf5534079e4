//! Analysis of package.json scripts.
//!
//! A script is a line for `sh`. Only the subset that needs no shell is understood: words, quotes
//! without expansions, variables in front, launchers such as `npx`, and `&&` between commands.
//! Everything else is opaque and run as it is, so a misread script can never change what is
//! executed.

use crate::tool::{ProjectTool, strip_launcher};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScriptShape {
    Single(ScriptCommand),
    /// Several commands; options appended to the script reach the last one, whose tool is known.
    EndsWith(ScriptCommand),
    Opaque,
}

/// A command with the environment variables in front of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ScriptCommand {
    pub(super) tool: ProjectTool,
    pub(super) environment: Vec<(String, String)>,
    pub(super) arguments: Vec<String>,
}

/// Launchers of scripts beside those of [`strip_launcher`].
const LAUNCHERS: [&str; 3] = ["yarn", "cross-env", "env"];

pub(super) fn read(text: &str) -> ScriptShape {
    let segments: Vec<&str> = text.split("&&").collect();
    let last = segments.last().copied().unwrap_or_default();
    match (read_line(last), segments.len()) {
        (Some(line), 1) => ScriptShape::Single(line),
        (Some(line), _) => ScriptShape::EndsWith(line),
        (None, _) => ScriptShape::Opaque,
    }
}

/// Returns the script that a command runs by name: `npm run x`, `yarn x`.
pub(super) fn named_script(text: &str) -> Option<&str> {
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        ["npm" | "pnpm" | "yarn" | "bun", "run", name] | ["pnpm" | "yarn", name] => Some(name),
        _ => None,
    }
}

/// Returns true for the script that `npm init` writes if there are no tests.
pub(super) fn is_placeholder(text: &str) -> bool {
    text.contains("no test specified")
}

fn read_line(text: &str) -> Option<ScriptCommand> {
    let words = split(text)?;
    let mut rest = words.as_slice();
    let mut environment = Vec::new();
    loop {
        let plain: Vec<&str> = rest.iter().map(String::as_str).collect();
        if let Some((name, value)) = rest.first().and_then(|word| assignment(word)) {
            environment.push((name, value));
            rest = &rest[1..];
        } else {
            let left = strip_launcher(&plain).len();
            let own = usize::from(plain.first().is_some_and(|word| LAUNCHERS.contains(word)));
            let skipped = (rest.len() - left).max(own);
            if skipped == 0 {
                break;
            }
            rest = &rest[skipped..];
        }
    }
    let tool = ProjectTool::recognise(rest)?;
    Some(ScriptCommand { tool, environment, arguments: rest[1..].to_vec() })
}

fn assignment(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

/// Splits a line into words; `None` if it needs a shell.
fn split(text: &str) -> Option<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            // A shell expands these within double quotes.
            (Some('"'), '$' | '`' | '\\') => return None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '\\' | '#' | '~') => {
                return None;
            }
            (Some(_) | None, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(tool: ProjectTool, environment: &[(&str, &str)], arguments: &[&str]) -> ScriptShape {
        ScriptShape::Single(ScriptCommand {
            tool,
            environment: environment.iter().map(|(n, v)| ((*n).into(), (*v).into())).collect(),
            arguments: arguments.iter().map(|&a| a.into()).collect(),
        })
    }

    #[test]
    fn a_single_command_is_taken_apart() {
        assert_eq!(read("jest --ci 'a b'"), single(ProjectTool::Jest, &[], &["--ci", "a b"]));
        assert_eq!(
            read("cross-env NODE_ENV=test npx vitest"),
            single(ProjectTool::Vitest, &[("NODE_ENV", "test")], &[])
        );
        assert_eq!(
            read("NODE_OPTIONS=--experimental-vm-modules jest"),
            single(ProjectTool::Jest, &[("NODE_OPTIONS", "--experimental-vm-modules")], &[])
        );
        assert_eq!(read("npx --yes jest -b"), single(ProjectTool::Jest, &[], &["-b"]));
        assert_eq!(read("node --test"), single(ProjectTool::NodeTest, &[], &["--test"]));
    }

    #[test]
    fn only_the_last_of_several_commands_can_be_given_options() {
        let ScriptShape::EndsWith(line) = read("tsc -b && vitest run") else { panic!() };
        assert_eq!(line.tool, ProjectTool::Vitest);
        assert_eq!(read("vitest run && echo done"), ScriptShape::Opaque);
    }

    #[test]
    fn a_script_that_needs_a_shell_is_opaque() {
        for text in ["jest | tee log", "jest $(files)", "jest \"$X\"", "jest; true", "./run.sh", ""]
        {
            assert_eq!(read(text), ScriptShape::Opaque, "{text}");
        }
        // A quoted glob is expanded by the tool.
        assert_eq!(
            read("mocha 'test/**/*.js'"),
            single(ProjectTool::Mocha, &[], &["test/**/*.js"])
        );
    }
}
