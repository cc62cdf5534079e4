//! The trace settings, from the standard variables of OpenTelemetry.
//!
//! These variables are set for many programs at once, so an invalid one is a warning with the value that is
//! used instead, never an error that keeps the program from starting. Values may hold secrets (headers,
//! addresses with passwords) and are not repeated in warnings.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use carrel_client::ServerUrl;
use carrel_config::Environment;
use carrel_config::environment as variable;
use carrel_traces::{Sampler, otlp};
use hyper::Uri;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::key_values;
use crate::serve::settings::word;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

const MAX_TIMEOUT: Duration = Duration::from_mins(5);

const NAME: &str = "carrel";

/// The attribute that tells processes of one service apart.
const INSTANCE: &str = "service.instance.id";

const JSON: &str = "http/json";

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub(crate) endpoint: Uri,
    /// Sent with each request; marked sensitive, so they do not print.
    pub(crate) headers: HeaderMap,
    pub(crate) timeout: Duration,
    /// Attributes of the resource: name, version, instance.
    pub(crate) resource: Vec<(String, String)>,
    pub(crate) sampler: Sampler,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) struct ParsedSettings {
    pub(crate) settings: Option<Settings>,
    pub(crate) warnings: Vec<String>,
}

impl ParsedSettings {
    pub(crate) fn read(environment: &Environment) -> Self {
        let mut reader = Reader { environment, warnings: Vec::new() };
        let settings = reader.settings();
        Self { settings, warnings: reader.warnings }
    }
}

struct Reader<'a> {
    environment: &'a Environment,
    warnings: Vec<String>,
}

impl Reader<'_> {
    fn settings(&mut self) -> Option<Settings> {
        if self.is_switched_off() {
            return None;
        }
        let (endpoint, server) = self.endpoint()?;
        if !self.speaks_json() {
            return None;
        }
        let settings = Settings {
            endpoint,
            headers: self.headers(),
            timeout: self.timeout(),
            resource: self.resource(),
            sampler: self.sampler(),
        };
        if server.is_cleartext_remote() && !settings.headers.is_empty() {
            let warning =
                "traces and the headers for them leave this machine unprotected; use https://";
            self.warnings.push(warning.to_owned());
        }
        Some(settings)
    }

    fn word(&self, name: &str) -> Option<String> {
        word(self.environment, name)
    }

    /// Returns the first of these variables that says something.
    fn first(&self, names: [&'static str; 2]) -> Option<(&'static str, String)> {
        names.into_iter().find_map(|name| Some((name, self.word(name)?)))
    }

    fn warn(&mut self, name: &str, problem: impl fmt::Display, instead: &str) {
        self.warnings.push(format!("{name}: {problem}; {instead}"));
    }

    fn is_switched_off(&mut self) -> bool {
        let disabled = self.word(variable::OTEL_SDK_DISABLED);
        let exporter = self.word(variable::OTEL_TRACES_EXPORTER).unwrap_or_default();
        match exporter.as_str() {
            _ if disabled.is_some_and(|word| word.eq_ignore_ascii_case("true")) => true,
            "" | "otlp" => false,
            "none" => true,
            _ => {
                let problem = format!("{exporter:?} is not known here");
                let instead = "no traces are sent; otlp and none are known";
                self.warn(variable::OTEL_TRACES_EXPORTER, problem, instead);
                true
            }
        }
    }

    fn endpoint(&mut self) -> Option<(Uri, ServerUrl)> {
        let names =
            [variable::OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, variable::OTEL_EXPORTER_OTLP_ENDPOINT];
        let (name, text) = self.first(names)?;
        let read =
            text.parse::<ServerUrl>().map_err(|error| error.to_string()).and_then(|server| {
                // The one for spans alone is taken as it is.
                let address =
                    if name == names[0] { text } else { format!("{server}{}", otlp::PATH) };
                let address = address.parse().map_err(|_| "not an address".to_owned())?;
                Ok((address, server))
            });
        // An address may hold a password, so that it is not repeated.
        read.map_err(|problem| self.warn(name, problem, "no traces are sent")).ok()
    }

    fn speaks_json(&mut self) -> bool {
        let names =
            [variable::OTEL_EXPORTER_OTLP_TRACES_PROTOCOL, variable::OTEL_EXPORTER_OTLP_PROTOCOL];
        let Some((name, protocol)) = self.first(names) else { return true };
        let problem = format!("{protocol:?} is not spoken here");
        match protocol.as_str() {
            JSON => true,
            // Collectors take both at the same address.
            "http/protobuf" => {
                self.warn(name, problem, "traces are sent as http/json, to the same address");
                true
            }
            _ => {
                let instead = "no traces are sent; set http/json, and the address of a collector's HTTP port, \
                               4318 as a rule";
                self.warn(name, problem, instead);
                false
            }
        }
    }

    fn headers(&mut self) -> HeaderMap {
        let names =
            [variable::OTEL_EXPORTER_OTLP_TRACES_HEADERS, variable::OTEL_EXPORTER_OTLP_HEADERS];
        let Some((name, text)) = self.first(names) else { return HeaderMap::new() };
        key_values::read(&text).and_then(headers).unwrap_or_else(|problem| {
            self.warn(name, problem, "traces are sent without any of these headers");
            HeaderMap::new()
        })
    }

    fn timeout(&mut self) -> Duration {
        let names =
            [variable::OTEL_EXPORTER_OTLP_TRACES_TIMEOUT, variable::OTEL_EXPORTER_OTLP_TIMEOUT];
        let Some((name, text)) = self.first(names) else { return DEFAULT_TIMEOUT };
        let read = text.parse().map(Duration::from_millis);
        let allowed = Duration::from_millis(1)..=MAX_TIMEOUT;
        read.ok().filter(|timeout| allowed.contains(timeout)).unwrap_or_else(|| {
            let usual = DEFAULT_TIMEOUT.as_millis();
            let most = MAX_TIMEOUT.as_millis();
            let problem = format!("{text:?} is not a number of milliseconds from 1 to {most}");
            self.warn(name, problem, &format!("{usual} are taken"));
            DEFAULT_TIMEOUT
        })
    }

    fn resource(&mut self) -> Vec<(String, String)> {
        let name = variable::OTEL_RESOURCE_ATTRIBUTES;
        let read = key_values::read(&self.word(name).unwrap_or_default());
        let read = read.unwrap_or_else(|problem| {
            self.warn(name, problem, "none of these attributes is sent");
            Vec::new()
        });
        let mut resource = BTreeMap::from([
            ("service.name".to_owned(), NAME.to_owned()),
            ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            (INSTANCE.to_owned(), new_instance()),
        ]);
        resource.extend(read);
        if let Some(name) = self.word(variable::OTEL_SERVICE_NAME) {
            resource.insert("service.name".to_owned(), name);
        }
        resource.into_iter().collect()
    }

    fn sampler(&mut self) -> Sampler {
        let name = variable::OTEL_TRACES_SAMPLER;
        let Some(sampler) = self.word(name) else { return Sampler::default() };
        let argument = self.word(variable::OTEL_TRACES_SAMPLER_ARG);
        Sampler::named(&sampler, argument.as_deref()).unwrap_or_else(|error| {
            self.warn(name, error, "parentbased_always_on is taken");
            Sampler::default()
        })
    }
}

fn new_instance() -> String {
    let mut bytes = [0; 16];
    // Without random bytes processes cannot be told apart, and nothing else is wrong.
    let _ = getrandom::fill(&mut bytes);
    format!("{:032x}", u128::from_le_bytes(bytes))
}

fn headers(pairs: Vec<(String, String)>) -> Result<HeaderMap, String> {
    let headers = pairs.into_iter().enumerate().map(|(index, (name, value))| {
        let problem = || format!("entry {} is no header", index + 1);
        let name = HeaderName::try_from(name).map_err(|_| problem())?;
        let mut value = HeaderValue::try_from(value).map_err(|_| problem())?;
        value.set_sensitive(true);
        Ok((name, value))
    });
    headers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");

    fn parse(pairs: &[(&str, &str)]) -> ParsedSettings {
        ParsedSettings::read(&Environment::from_pairs(pairs.iter().copied()))
    }

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        let parsed = parse(&[&[ENDPOINT], pairs].concat());
        assert_eq!(parsed.warnings, Vec::<String>::new());
        parsed.settings.unwrap()
    }

    #[test]
    fn nothing_is_sent_unless_it_is_asked_for() {
        let named = ("OTEL_SERVICE_NAME", "x");
        for pairs in [
            &[][..],
            &[named],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
            &[ENDPOINT, ("OTEL_SDK_DISABLED", "true")],
            &[ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")],
            &[ENDPOINT, ("OTEL_TRACES_EXPORTER", "none")],
        ] {
            assert_eq!(parse(pairs), ParsedSettings::default(), "{pairs:?}");
        }
        assert!(parse(&[ENDPOINT, ("OTEL_SDK_DISABLED", "false")]).settings.is_some());
        assert!(parse(&[ENDPOINT, ("OTEL_TRACES_EXPORTER", "otlp")]).settings.is_some());
    }

    #[test]
    fn spans_go_to_the_path_of_a_collector_or_to_an_address_as_it_is() {
        let both = |all: &str, own: &str| {
            let names = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
            parse(&[(names[0], all), (names[1], own)]).settings.unwrap().endpoint.to_string()
        };
        for (all, own, endpoint) in [
            ("http://c:4318", "", "http://c:4318/v1/traces"),
            ("https://c/otlp/", "", "https://c/otlp/v1/traces"),
            ("http://c:4318", "https://d/in", "https://d/in"),
            ("ftp://ignored", "http://d", "http://d/"),
        ] {
            assert_eq!(both(all, own), endpoint);
        }
    }

    #[test]
    fn what_is_set_for_spans_alone_counts_more() {
        let found = settings(&[
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1"),
            ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "2500"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret-1"),
            ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "Authorization=Bearer%20secret-2,x=1"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json"),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
            ("OTEL_SERVICE_NAME", "mine"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,team=a%20b"),
        ]);
        assert_eq!(found.timeout, Duration::from_millis(2500));
        assert_eq!(found.headers["authorization"], "Bearer secret-2");
        assert_eq!(found.headers.len(), 2);
        assert_eq!(found.sampler, Sampler::named("traceidratio", Some("0.25")).unwrap());
        let resource = found.resource.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let resource: Vec<_> = resource.filter(|(key, _)| *key != INSTANCE).collect();
        let version = ("service.version", env!("CARGO_PKG_VERSION"));
        assert_eq!(resource, [("service.name", "mine"), version, ("team", "a b")]);
        assert!(!format!("{found:?}").contains("secret"), "{found:?}");
        let usual = settings(&[]).resource;
        assert!(usual.contains(&("service.name".to_owned(), "carrel".to_owned())), "{usual:?}");
    }

    #[test]
    fn what_makes_no_sense_is_said_and_stops_nothing() {
        let secret = "hunter2";
        // Whether spans are sent all the same, and what is said.
        for (name, value, sends, said) in [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", false, "begins with neither"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://u:hunter2@c", false, "names a user"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c\n/", false, "is not a URL"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", false, "set http/json"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf", true, "sent as http/json"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "hunter2", true, "entry 1 is not of the form"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a b=hunter2", true, "entry 1 is no header"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=hunter2%0d%0ax: y", true, "entry 1"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "0", true, "from 1 to 300000"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "99999999999999999999", true, "10000 are taken"),
            ("OTEL_TRACES_SAMPLER", "jaeger_remote", true, "known are always_on"),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.name", true, "entry 1"),
            ("OTEL_TRACES_EXPORTER", "zipkin", false, "otlp and none"),
        ] {
            let found = parse(&[ENDPOINT, (name, value)]);
            assert_eq!(found.settings.is_some(), sends, "{name}={value}");
            let [warning] = &found.warnings[..] else {
                panic!("{name}={value}: {:?}", found.warnings)
            };
            assert!(warning.starts_with(name) && warning.contains(said), "{warning}");
            assert!(!warning.contains(secret) && !warning.contains(char::is_control), "{warning}");
        }
        let open = parse(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.example:4318"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=hunter2"),
        ]);
        assert!(open.settings.is_some() && open.warnings[0].contains("https://"), "{open:?}");
    }
}
