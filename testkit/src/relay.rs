use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A network between a driver and its broker that a test can cut; a cheap handle, it ends with the last of them.
///
/// It stands on a port of its own on loopback, with threads of its own: no runtime, no clock.
///
/// ```
/// use std::io::{Read, Write};
/// use std::net::{TcpListener, TcpStream};
/// use messaging_testkit::Relay;
///
/// # fn main() -> std::io::Result<()> {
/// let broker = TcpListener::bind("127.0.0.1:0")?;
/// let relay = Relay::to(broker.local_addr()?)?;
/// let mut client = TcpStream::connect(relay.address())?;
/// let (mut served, _) = broker.accept()?;
///
/// client.write_all(b"hello")?;
/// let mut hello = [0; 5];
/// served.read_exact(&mut hello)?;
/// assert_eq!(&hello, b"hello");
///
/// relay.cut();
/// assert_eq!(served.read(&mut hello)?, 0); // the broker's side is closed
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Relay(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    streams: Mutex<Vec<TcpStream>>,
    ended: AtomicBool,
}

impl Relay {
    /// Relays to that address.
    ///
    /// # Errors
    /// The address is none, or there is no port to listen on.
    pub fn to(broker: impl ToSocketAddrs) -> io::Result<Self> {
        let broker = broker.to_socket_addrs()?.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::<Shared>::default();
        let served = Arc::clone(&shared);
        thread::Builder::new().name("relay".into()).spawn(move || {
            for client in listener.incoming() {
                if served.ended.load(Ordering::SeqCst) {
                    return;
                }
                // A client that cannot be served sees a connection that is closed.
                let _ = client.and_then(|client| serve(&served, client, broker));
            }
        })?;
        Ok(Self(Arc::new(Inner { address, shared })))
    }

    /// Where the driver is to connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Cuts every connection there is; new ones are relayed as before.
    pub fn cut(&self) {
        self.0.shared.cut();
    }
}

impl Shared {
    fn cut(&self) {
        let streams = std::mem::take(&mut *self.streams.lock().unwrap_or_else(PoisonError::into_inner));
        for stream in streams {
            // One that is closed already is cut as well.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::SeqCst);
        self.shared.cut();
        // So that the thread that listens sees it.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(shared: &Shared, client: TcpStream, broker: SocketAddr) -> io::Result<()> {
    let server = TcpStream::connect(broker)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let pairs = [(client.try_clone()?, server.try_clone()?), (server.try_clone()?, client.try_clone()?)];
    shared.streams.lock().unwrap_or_else(PoisonError::into_inner).extend([client, server]);
    for (from, to) in pairs {
        thread::Builder::new().name("relay".into()).spawn(move || pump(from, to))?;
    }
    Ok(())
}

/// Copies until one side is closed, then closes both.
fn pump(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
