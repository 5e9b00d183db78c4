//! A TCP relay in front of the broker, which can cut, stall and refuse.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Pass,
    Stall,
    Refuse,
}

pub struct Relay {
    pub url: String,
    mode: Arc<watch::Sender<Mode>>,
    cut: Arc<watch::Sender<u32>>,
}

impl Relay {
    pub async fn new(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (start, rest) = url.rsplit_once('@').expect("a user");
        let (address, path) =
            rest.split_once('/').map_or((rest, String::new()), |(host, path)| (host, format!("/{path}")));
        let port = listener.local_addr().expect("an address").port();
        let relay = Self {
            url: format!("{start}@127.0.0.1:{port}{path}"),
            mode: Arc::new(watch::Sender::new(Mode::Pass)),
            cut: Arc::new(watch::Sender::new(0)),
        };
        let (mode, cut, target) = (Arc::clone(&relay.mode), Arc::clone(&relay.cut), address.to_owned());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *mode.borrow() == Mode::Refuse {
                    continue;
                }
                let Ok(server) = TcpStream::connect(&target).await else { continue };
                let (client_in, client_out) = client.into_split();
                let (server_in, server_out) = server.into_split();
                tokio::spawn(pass(client_in, server_out, mode.subscribe(), cut.subscribe()));
                tokio::spawn(pass(server_in, client_out, mode.subscribe(), cut.subscribe()));
            }
        });
        relay
    }

    /// Ends every connection.
    pub fn cut(&self) {
        self.cut.send_modify(|cuts| *cuts += 1);
    }

    /// Ends every connection, and lets none through until it [passes](Self::pass) again.
    pub fn refuse(&self) {
        self.mode.send_replace(Mode::Refuse);
        self.cut();
    }

    /// Keeps every connection, and lets no byte through.
    pub fn stall(&self) {
        self.mode.send_replace(Mode::Stall);
    }

    pub fn pass(&self) {
        self.mode.send_replace(Mode::Pass);
    }
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut mode: watch::Receiver<Mode>,
    mut cut: watch::Receiver<u32>,
) {
    let copy = async {
        let mut bytes = vec![0; 64 * 1024];
        loop {
            let read = from.read(&mut bytes).await.unwrap_or(0);
            if mode.wait_for(|mode| *mode != Mode::Stall).await.is_err() || read == 0 {
                return;
            }
            if to.write_all(&bytes[..read]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = copy => (),
        _ = cut.changed() => (),
    }
    let _ = tokio::time::timeout(Duration::from_secs(1), to.shutdown()).await;
}
