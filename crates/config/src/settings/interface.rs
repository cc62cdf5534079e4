//! `observability` and `server`: how the conductor is watched.

use std::time::Duration;

use crate::reader::Reader;
use crate::schema::keys;

/// What the terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservabilityConfig {
    /// Whether a terminal shows the dashboard.
    pub dashboard_enabled: bool,
    /// The time between two looks at the state.
    pub refresh: Duration,
    /// The shortest time between two drawings.
    pub render_interval: Duration,
}

/// The HTTP interface of the conductor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerConfig {
    /// The port, where there is an interface; zero lets the system choose.
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
