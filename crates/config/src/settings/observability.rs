//! `observability` and `server`: the terminal dashboard and the HTTP interface of the conductor.

use std::time::Duration;

use crate::reader::Reader;
use crate::schema::keys;

/// Settings of the terminal dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservabilityConfig {
    /// True if a terminal shows the dashboard.
    pub dashboard_enabled: bool,
    /// The interval at which the state is read.
    pub refresh: Duration,
    /// The shortest time between two renderings.
    pub render_interval: Duration,
}

/// The HTTP interface of the conductor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// The port; 0 lets the system choose, `None` turns the interface off.
    pub port: Option<u16>,
    /// The address to listen on.
    pub host: String,
}

impl ObservabilityConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            dashboard_enabled: reader.flag(&keys::DASHBOARD),
            refresh: reader.millis(&keys::REFRESH),
            render_interval: reader.millis(&keys::RENDER_INTERVAL),
        }
    }
}

impl ServerConfig {
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let port = reader.count(&keys::SERVER_PORT);
        Self {
            port: port.and_then(|port| u16::try_from(port).ok()),
            host: reader.text(&keys::SERVER_HOST).unwrap_or_default(),
        }
    }
}
