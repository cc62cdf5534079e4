//! The fixture server on its own: `conformance_server stdio` or `conformance_server http ADDRESS plain|streamed`.
//!
//! Over HTTP the first line of output is the address, so that a script may ask for port 0.
#![expect(clippy::print_stdout, reason = "the script that starts it reads the address")]

#[path = "../tests/fixture/mod.rs"]
mod fixture;

use std::{error::Error, io};

use carrel_mcp::{Authentication, HandlerScope, HttpOptions, ReplyFormat, serve_http, serve_stdio};
use tokio::{net::TcpListener, runtime::Runtime, signal::unix};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use fixture::{Fixture, FixtureState};

fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::from_default_env())
        .with_writer(io::stderr)
        .init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = Runtime::new()?;
    let outcome = runtime.block_on(serve(&words));
    // Standard input may be read by a thread that cannot be woken.
    runtime.shutdown_background();
    outcome
}

async fn serve(words: &[&str]) -> Result<(), Box<dyn Error>> {
    let cancel = CancellationToken::new();
    let mut terminate = unix::signal(unix::SignalKind::terminate())?;
    let stop = cancel.clone();
    tokio::spawn(async move {
        terminate.recv().await;
        stop.cancel();
    });
    let state = FixtureState::new();
    match words {
        ["stdio"] => Ok(serve_stdio(Fixture::new(&state), cancel).await?),
        ["http", address, replies @ ("plain" | "streamed")] => {
            let listener = TcpListener::bind(address).await?;
            let address = listener.local_addr()?;
            let replies =
                if *replies == "plain" { ReplyFormat::Json } else { ReplyFormat::EventStream };
            let mut options = HttpOptions::new(address, Authentication::Unauthenticated)?;
            options.reply_format = replies;
            println!("{address}");
            let make = move |_: HandlerScope| Fixture::new(&state);
            Ok(serve_http(listener, options, make, cancel).await?)
        }
        _ => Err("usage: conformance_server stdio | http ADDRESS plain|streamed".into()),
    }
}
