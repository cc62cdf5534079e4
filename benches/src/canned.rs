//! The least a server can do: the same bytes for every request, from a thread for each connection.

use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::Fault;
use crate::wire::Connection;

/// Serves so many connections with one reply; its threads end with their connections.
pub(crate) fn serve(reply: &[u8], connections: usize) -> Result<SocketAddr, Fault> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let reply = reply.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(connections).flatten() {
            let reply = reply.clone();
            std::thread::spawn(move || answer(stream, &reply));
        }
    });
    Ok(address)
}

fn answer(stream: TcpStream, reply: &[u8]) -> Result<(), Fault> {
    let mut connection = Connection::over(stream)?;
    while connection.receive()? {
        connection.send(reply)?;
    }
    Ok(())
}
