use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// A network between a driver and its broker that a test can cut and stall; a cheap handle, it ends with the last of them.
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
/// relay.stall();
/// client.write_all(b"later")?;
/// served.set_nonblocking(true)?;
/// assert!(served.read(&mut hello).is_err()); // nothing has come
/// served.set_nonblocking(false)?;
/// relay.pass();
/// served.read_exact(&mut hello)?;
/// assert_eq!(&hello, b"later");
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
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    mode: Mode,
    streams: Vec<TcpStream>,
    refused: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Mode {
    #[default]
    Pass,
    Stall,
    Refuse,
    End,
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
                match served.admit() {
                    Mode::End => return,
                    Mode::Refuse => drop(client),
                    // A client that cannot be served sees a connection that is closed.
                    Mode::Pass | Mode::Stall => drop(client.and_then(|client| serve(&served, client, broker))),
                }
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
        self.0.shared.lock().cut();
    }

    /// Keeps every connection, and lets no byte through, until it [passes](Self::pass) again.
    pub fn stall(&self) {
        self.0.shared.enter(Mode::Stall);
    }

    /// Cuts every connection there is, and closes each new one at once, until it [passes](Self::pass) again.
    pub fn refuse(&self) {
        self.0.shared.enter(Mode::Refuse);
        self.cut();
    }

    /// Lets everything through, as at first; what was stalled goes on.
    pub fn pass(&self) {
        self.0.shared.enter(Mode::Pass);
    }

    /// How many connections were refused so far.
    #[must_use]
    pub fn refused(&self) -> usize {
        self.0.shared.lock().refused
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, mode: Mode) {
        self.lock().mode = mode;
        self.changed.notify_all();
    }

    /// What is to become of a new connection.
    fn admit(&self) -> Mode {
        let mut state = self.lock();
        state.refused += usize::from(state.mode == Mode::Refuse);
        state.mode
    }

    fn wait_while_stalled(&self) {
        let stalled = self.changed.wait_while(self.lock(), |state| state.mode == Mode::Stall);
        drop(stalled.unwrap_or_else(PoisonError::into_inner));
    }
}

impl State {
    fn cut(&mut self) {
        for stream in self.streams.drain(..) {
            // One that is closed already is cut as well.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.enter(Mode::End);
        self.shared.lock().cut();
        // So that the thread that listens sees it.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(shared: &Arc<Shared>, client: TcpStream, broker: SocketAddr) -> io::Result<()> {
    let server = TcpStream::connect(broker)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let pairs = [(client.try_clone()?, server.try_clone()?), (server.try_clone()?, client.try_clone()?)];
    shared.lock().streams.extend([client, server]);
    for (from, to) in pairs {
        let shared = Arc::clone(shared);
        thread::Builder::new().name("relay".into()).spawn(move || pump(&shared, from, to))?;
    }
    Ok(())
}

/// Copies until one side is closed, then closes both.
fn pump(shared: &Shared, mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        shared.wait_while_stalled();
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
