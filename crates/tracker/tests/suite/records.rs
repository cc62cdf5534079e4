//! What a fake serves, and the tracker that reads it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use carrel_client::HttpClient;
use carrel_config::{Provider as Settings, TrackerConfig, TrackerKind};
use carrel_domain::Secret;
use carrel_tracker::{IssueId, Tracker, TrackerError, from_config};
use serde_json::{Value, json};

use crate::fake::{Asked, Fake, Reply};

/// What no message may repeat.
pub(crate) const SECRET: &str = "s3cret-of-the-tracker";

/// How one provider writes its records, and answers.
pub(crate) trait Provider: Send + Sync + 'static {
    const KIND: TrackerKind;
    /// A state that is worked on, and one that is finished.
    const STATES: (&'static str, &'static str);
    /// Whether its lists carry versions.
    const VERSIONED: bool = false;

    fn settings(address: &str) -> Vec<(&'static str, String)>;
    fn secret_name() -> &'static str;
    /// The nth issue, in the first of the states.
    fn record(number: usize) -> Value;
    fn id(number: usize) -> String;
    fn identifier(number: usize) -> String;
    fn set_state(record: &mut Value, state: &str);
    fn take_title(record: &mut Value);
    /// Puts nonsense into everything that an issue can be without.
    fn spoil(record: &mut Value);
    /// Moves a record into another project, if the provider's lists could show it.
    fn move_away(record: &mut Value);
    fn answer(records_served: &TrackerRecords, asked: &Asked) -> Reply;
}

/// What a fake serves.
#[derive(Debug, Default)]
pub(crate) struct TrackerRecords {
    pub(crate) records: Vec<Value>,
    /// The most that is given at once, whatever is asked for.
    pub(crate) cap: Option<usize>,
    /// Whether pages say that there is more, but not where.
    pub(crate) hide_cursor: bool,
    /// Whether pages lead back to themselves.
    pub(crate) repeat_cursor: bool,
}

impl TrackerRecords {
    /// Returns a part of a list, and where the rest begins.
    pub(crate) fn part<'a>(
        &self,
        found: &[&'a Value],
        from: usize,
        size: usize,
    ) -> (Vec<&'a Value>, Option<usize>) {
        let size = size.min(self.cap.unwrap_or(usize::MAX)).max(1);
        let part: Vec<_> = found.iter().skip(from).take(size).copied().collect();
        let next = from + part.len();
        (part, (next < found.len()).then_some(if self.repeat_cursor { size } else { next }))
    }
}

/// A tracker, the server that it reads, and what that serves.
pub(crate) struct Stage {
    pub(crate) fake: Fake,
    pub(crate) tracker: Arc<dyn Tracker>,
    records_served: Arc<Mutex<TrackerRecords>>,
}

impl Stage {
    pub(crate) fn records_served(&self) -> MutexGuard<'_, TrackerRecords> {
        self.records_served.lock().unwrap()
    }
}

/// Sets up a tracker with this many issues.
pub(crate) async fn stage<P: Provider>(issues: usize) -> Stage {
    stage_with::<P>(issues, &[]).await
}

/// Sets up a tracker with this many issues and other settings.
pub(crate) async fn stage_with<P: Provider>(issues: usize, changed: &[(&str, &str)]) -> Stage {
    let records_served = TrackerRecords {
        records: (1..=issues).map(P::record).collect(),
        ..TrackerRecords::default()
    };
    let records_served = Arc::new(Mutex::new(records_served));
    let served = Arc::clone(&records_served);
    let fake = Fake::start(move |asked| P::answer(&served.lock().unwrap(), asked)).await;
    let mut config = config::<P>(&fake.address);
    for (name, value) in changed {
        config.provider.settings.insert((*name).to_owned(), json!(value));
    }
    let tracker = open(&config).unwrap();
    Stage { fake, tracker, records_served }
}

pub(crate) fn config<P: Provider>(address: &str) -> TrackerConfig {
    let text = |(name, value): (&str, String)| (name.to_owned(), Value::String(value));
    let settings: BTreeMap<String, Value> = P::settings(address).into_iter().map(text).collect();
    let secrets = BTreeMap::from([(P::secret_name().to_owned(), Secret::new(SECRET))]);
    TrackerConfig {
        kind: P::KIND,
        provider: Settings { settings, secrets },
        required_labels: Vec::new(),
        active_states: vec![P::STATES.0.to_owned()],
        terminal_states: vec![P::STATES.1.to_owned()],
    }
}

pub(crate) fn open(config: &TrackerConfig) -> Result<Arc<dyn Tracker>, TrackerError> {
    from_config(config, &HttpClient::new(), None)
}

pub(crate) fn ids<P: Provider>(numbers: impl IntoIterator<Item = usize>) -> Vec<IssueId> {
    numbers.into_iter().map(|number| IssueId(P::id(number))).collect()
}

/// The version of a body, as HTTP writes it.
pub(crate) fn version(body: &str) -> String {
    let sum =
        body.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    format!("W/\"{sum:x}\"")
}

/// Answers a list with its version, or that it has not changed.
pub(crate) fn versioned(asked: &Asked, body: &Value) -> Reply {
    let version = version(&body.to_string());
    if asked.headers.get("if-none-match") == Some(&version) {
        return Reply::status(304, &Value::Null).with("etag", version);
    }
    Reply::json(body).with("etag", version)
}
