//! Secret values, which no output may show, and variables that hooks and agents may not see.
//!
//! Both lists are derived from one source: the server's own variables, the prefixes for secrets and git
//! tokens, and the secret fields of tracker profiles. A value is a secret by the variable or the setting
//! that holds it, never by its look. A URL with a password and a header with a token count twice: as the
//! whole value and as the part that would be shown alone.

use carrel_domain::Secret;

use crate::environment::{self as variable, Environment};
use crate::settings::tracker_profile;
use crate::value_tree::Map;

/// The shortest value that is masked. Masking `1` or `true` would blank out half of every output.
pub const MIN_SECRET_BYTES: usize = 6;

/// Variables that configure the server, hold no secret and are of no use to hooks and agents.
const SERVER_VARIABLES: &[&str] = &[
    variable::CARREL_POLICY,
    variable::WORKER_INTERNAL_URL,
    variable::WORKER_BIND_HOST,
    variable::WORKER_HEALTH_PORT,
    variable::WORKER_CONCURRENCY,
    variable::WORKSPACE_VOLUME_PATH,
    variable::WORKSPACE_DEFAULT_QUOTA_GB,
];

/// Variables of the server whose values are secret.
const SECRET_VARIABLES: &[&str] = &[
    variable::CARREL_MCP_TOKEN,
    variable::CARREL_TOKEN_SECRET,
    variable::CARREL_WEBHOOK_SECRET,
    variable::DATABASE_URL,
    variable::REDIS_URL,
    variable::WORKER_INTERNAL_TOKEN,
    variable::OTEL_EXPORTER_OTLP_HEADERS,
    variable::OTEL_EXPORTER_OTLP_TRACES_HEADERS,
];

/// Returns the variables that are withheld from hooks and agents by their full name.
pub fn withheld_variables() -> impl Iterator<Item = &'static str> {
    let trackers = tracker_profile::secret_fields().filter_map(|field| field.variable);
    SERVER_VARIABLES.iter().chain(SECRET_VARIABLES).copied().chain(trackers)
}

/// Returns whether a variable is withheld from hooks and agents, by its name or its prefix.
pub(crate) fn is_withheld(name: &str) -> bool {
    SERVER_VARIABLES.contains(&name) || holds_secret(name)
}

fn holds_secret(name: &str) -> bool {
    SECRET_VARIABLES.contains(&name)
        || name.starts_with(variable::SECRET_PREFIX)
        || name.starts_with(variable::GIT_TOKEN_PREFIX)
        || tracker_profile::secret_fields().any(|field| field.variable == Some(name))
}

/// Returns the secrets of the environment and of the front matter, each once.
pub(crate) fn known(map: &Map, environment: &Environment) -> Vec<Secret> {
    let mut unique: Vec<&str> = Vec::new();
    let values = from_environment(environment).chain(from_file(map, environment));
    for value in values.map(str::trim).filter(|value| value.len() >= MIN_SECRET_BYTES) {
        if !unique.contains(&value) {
            unique.push(value);
        }
    }
    unique.into_iter().map(Secret::new).collect()
}

fn from_environment(environment: &Environment) -> impl Iterator<Item = &str> {
    let values = environment.iter().filter_map(|(name, value)| {
        let name = name.to_str().filter(|name| holds_secret(name))?;
        Some((name, value.to_str()?))
    });
    values.flat_map(|(name, value)| {
        let headers =
            value.split(',').filter(|_| name.ends_with("_HEADERS")).filter_map(header_token);
        [Some(value), url_password(value)].into_iter().flatten().chain(headers)
    })
}

/// Returns the token in a header such as `authorization=Bearer%20token`.
fn header_token(header: &str) -> Option<&str> {
    let (_, value) = header.split_once('=')?;
    value.rsplit("%20").next()?.rsplit(' ').next()
}

fn from_file<'a>(map: &'a Map, environment: &'a Environment) -> impl Iterator<Item = &'a str> {
    written_in_file(map).filter_map(|text| match variable::reference(text.trim()) {
        Some(name) => environment.get_str(name),
        None => Some(text),
    })
}

/// Returns the values of secret fields as the file writes them: the secrets themselves, or `$NAME`.
pub(crate) fn written_in_file(map: &Map) -> impl Iterator<Item = &str> {
    let names = tracker_profile::secret_fields().map(|field| field.name);
    let paths =
        names.flat_map(|name| [format!("tracker.provider.{name}"), format!("tracker.{name}")]);
    paths.filter_map(|path| map.find(&path)?.as_text())
}

/// Returns the password inside a URL such as `redis://user:password@host`.
fn url_password(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split('/').next()?;
    let (user, _) = authority.rsplit_once('@')?;
    user.split_once(':').map(|(_, password)| password)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Position;
    use crate::value_tree::Value;
    use crate::yaml::parse;

    fn exposed(secrets: &[Secret]) -> Vec<&str> {
        secrets.iter().map(Secret::expose).collect()
    }

    #[test]
    fn secrets_come_from_the_file_its_variables_and_the_server() {
        let environment = Environment::from_pairs([
            ("MY_KEY", "from-my-key"),
            ("GITHUB_TOKEN", "ghp_abcdef"),
            ("ASANA_PAT", "short"),
            ("REDIS_URL", "redis://u:p%40ssword@host:6379/0"),
            ("CARREL_SECRET_X", "sealed-value"),
            ("CARREL_TOKEN_SECRET", "signing-key"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=Bearer%20of-the-collector,b=key-of-it"),
            ("LINEAR_ASSIGNEE", "not-a-secret"),
            ("PATH", "/usr/bin:/bin"),
        ]);
        let text = "tracker: {api_key: ' literal-key ', provider: {api_key: $MY_KEY, token: 7}}";
        let Value::Map(map) = parse(text, Position::START).unwrap().value else {
            panic!("a map was written")
        };
        assert_eq!(
            exposed(&known(&map, &environment)),
            [
                "sealed-value",
                "signing-key",
                "ghp_abcdef",
                "a=Bearer%20of-the-collector,b=key-of-it",
                "of-the-collector",
                "key-of-it",
                "redis://u:p%40ssword@host:6379/0",
                "p%40ssword",
                "from-my-key",
                "literal-key",
            ]
        );
        assert_eq!(known(&Map::default(), &environment).len(), 8);
    }

    #[test]
    fn variables_of_trackers_and_the_server_are_withheld() {
        for name in [
            "LINEAR_API_KEY",
            "DATABASE_URL",
            "WORKER_BIND_HOST",
            "CARREL_SECRET_A",
            "CARREL_MCP_TOKEN",
            "CARREL_TOKEN_SECRET",
            "CARREL_GIT_TOKEN_GITHUB_COM",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
        ] {
            assert!(is_withheld(name), "{name}");
        }
        for name in ["PATH", "LINEAR_ASSIGNEE", "CARREL_LOG", "OTEL_SERVICE_NAME"] {
            assert!(!is_withheld(name), "{name}");
        }
    }
}
