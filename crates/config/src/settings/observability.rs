//! `observability` and `server`: the terminal dashboard and the HTTP interface of the conductor.

use std::time::Duration;

use crate::schema::SettingReader;
use crate::workflow_keys as keys;

/// The section `observability`: the dashboard in the terminal, the interval at which it reads the state, and the
/// shortest time between two renderings.
#[expect(missing_docs, reason = "the fields are keys of the reference page")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservabilityConfig {
    pub dashboard_enabled: bool,
    pub refresh: Duration,
    pub render_interval: Duration,
}

/// The section `server`: the HTTP interface of the conductor. Without a port there is none; port 0 lets the system
/// choose one.
#[expect(missing_docs, reason = "the fields are keys of the reference page")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    pub port: Option<u16>,
    pub host: String,
}

impl ObservabilityConfig {
    pub(super) fn read(reader: &mut SettingReader<'_>) -> Self {
        Self {
            dashboard_enabled: reader.flag(&keys::DASHBOARD),
            refresh: reader.millis(&keys::REFRESH),
            render_interval: reader.millis(&keys::RENDER_INTERVAL),
        }
    }
}

impl ServerConfig {
    pub(super) fn read(reader: &mut SettingReader<'_>) -> Self {
        let port = reader.count(&keys::SERVER_PORT);
        Self {
            port: port.and_then(|port| u16::try_from(port).ok()),
            host: reader.text(&keys::SERVER_HOST).unwrap_or_default(),
        }
    }
}
