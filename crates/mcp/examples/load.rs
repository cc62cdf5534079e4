//! Measures calls of a trivial tool over HTTP: our server beside the SDK's own service in axum, in
//! the same run, since the machine may be busy with other things.
//!
//! `load [SECONDS [CLIENTS]]` prints, for both servers and both kinds of revision, the latency of a
//! single client and the throughput of several. `load at ADDRESS …` measures a server that runs.
#![expect(clippy::print_stdout, reason = "the figures are the output")]

#[path = "load/bare.rs"]
mod bare;
#[path = "load/client.rs"]
mod client;

use std::{
    error::Error,
    net::SocketAddr,
    time::{Duration, Instant},
};

use carrel_mcp::{Authentication, HttpOptions, serve_http};
use tokio::{net::TcpListener, runtime::Builder};
use tokio_util::sync::CancellationToken;

use bare::Trivial;
use client::{LoadClient, Revision};

/// How many clients call at once to measure throughput, unless said otherwise.
const CLIENTS: usize = 8;

/// How long each round takes, unless said otherwise.
const SECONDS: u64 = 1;

/// How many rounds are made.
const ROUNDS: usize = 5;

/// The number of calls of a connection are not counted.
const WARM_UP: usize = 100;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = match arguments.first().map(String::as_str) {
        Some("at") => Some(arguments.drain(..2).nth(1).ok_or("at ADDRESS")?.parse()?),
        _ => None,
    };
    let time = Duration::from_secs(arguments.first().map_or(Ok(SECONDS), |text| text.parse())?);
    let clients = arguments.get(1).map_or(Ok(CLIENTS), |text| text.parse())?;

    // The servers have a runtime of their own, as they would in another process.
    let servers = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let addresses = match given {
        Some(address) => vec![("given", address)],
        None => servers.block_on(start())?,
    };
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(&addresses, time, clients))?;
    servers.shutdown_background();
    Ok(())
}

async fn start() -> Result<Vec<(&'static str, SocketAddr)>, Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let ours = listener.local_addr()?;
    let options = HttpOptions::new(ours, Authentication::Unauthenticated)?;
    tokio::spawn(serve_http(listener, options, |_| Trivial, CancellationToken::new()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let bare = listener.local_addr()?;
    tokio::spawn(bare::serve(listener));
    Ok(vec![("carrel", ours), ("bare SDK", bare)])
}

/// What was measured of one server in one revision.
#[derive(Default)]
struct Figures {
    single: Vec<Duration>,
    rates: Vec<f64>,
    processor: Vec<f64>,
}

impl Figures {
    /// The latency below which that share of the calls of a single client stayed.
    fn latency(&self, percent: usize) -> f64 {
        let index = (self.single.len() * percent / 100).min(self.single.len() - 1);
        self.single[index].as_secs_f64() * 1e6
    }

    /// The rate of the middle round.
    fn rate(&self) -> f64 {
        self.rates[self.rates.len() / 2]
    }

    /// The processor time of a call in the middle round, of client and server together. Other
    /// programs on the machine change it least.
    fn processor(&self) -> f64 {
        self.processor[self.processor.len() / 2]
    }
}

/// Measures all servers in turn, several times, so that a busy moment hits all of them.
async fn measure(
    addresses: &[(&str, SocketAddr)],
    time: Duration,
    clients: usize,
) -> Result<(), Box<dyn Error>> {
    println!("load average before: {}", load_average());
    println!("server     revision      p50 µs   p95 µs   p99 µs    calls/s   CPU µs/call");
    for revision in [Revision::Session, Revision::Stateless] {
        let mut figures: Vec<Figures> = addresses.iter().map(|_| Figures::default()).collect();
        for _ in 0..ROUNDS {
            for ((_, address), figures) in addresses.iter().zip(&mut figures) {
                let single = run(*address, revision, 1, time).await?;
                // The first calls of a connection warm up the caches of both sides.
                figures.single.extend(single.into_iter().skip(WARM_UP));
                let before = processor_time();
                let many = run(*address, revision, clients, time).await?;
                let many = f64::from(u32::try_from(many.len())?);
                figures.processor.push((processor_time() - before) * 1e6 / many);
                figures.rates.push(many / time.as_secs_f64());
            }
        }
        for ((name, _), figures) in addresses.iter().zip(&mut figures) {
            figures.single.sort_unstable();
            figures.rates.sort_unstable_by(f64::total_cmp);
            figures.processor.sort_unstable_by(f64::total_cmp);
            let [p50, p95, p99] = [50, 95, 99].map(|percent| figures.latency(percent));
            let (label, rate, cpu) = (revision.label(), figures.rate(), figures.processor());
            println!(
                "{name:<10} {label:<11} {p50:>8.0} {p95:>8.0} {p99:>8.0} {rate:>10.0} {cpu:>13.1}"
            );
        }
        if let [ours, theirs] = figures.as_slice() {
            let latency = ours.latency(50) / theirs.latency(50);
            let rate = ours.rate() / theirs.rate();
            let cpu = ours.processor() / theirs.processor();
            let label = revision.label();
            println!("ratio      {label:<11} {latency:>8.2} {rate:>28.2} {cpu:>13.2}");
        }
    }
    println!("load average after: {}", load_average());
    Ok(())
}

/// Calls from several clients for a while; returns how long each call took.
async fn run(
    address: SocketAddr,
    revision: Revision,
    clients: usize,
    time: Duration,
) -> Result<Vec<Duration>, Box<dyn Error>> {
    let mut tasks = Vec::new();
    for _ in 0..clients {
        let mut client = LoadClient::connect(address, revision).await?;
        tasks.push(tokio::spawn(async move {
            let begun = Instant::now();
            let mut took = Vec::new();
            while begun.elapsed() < time {
                let call = Instant::now();
                client.call().await.expect("the server answers");
                took.push(call.elapsed());
            }
            client.finish().await.expect("the server lets go");
            took
        }));
    }
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await?);
    }
    Ok(all)
}

fn load_average() -> String {
    read("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// How many seconds of a processor this process has used, in steps of a hundredth.
fn processor_time() -> f64 {
    let text = read("/proc/self/stat");
    let fields: Vec<f64> = text
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|field| field.parse().ok())
        .collect();
    // After the name and the state, the times are the twelfth and thirteenth number, or ten on.
    (fields[10] + fields[11]) / 100.0
}

fn read(path: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "not a file of a workspace")]
    std::fs::read_to_string(path).unwrap_or_default()
}
