//! A TCP proxy in front of the broker whose connections a test cuts, so that the shared broker
//! keeps running.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The class and method of a `basic.ack`, which is how the broker confirms.
const ACK: [u8; 4] = [0, 60, 0, 80];

/// The class and method of a `connection.tune`, in which the broker proposes limits.
const TUNE: [u8; 4] = [0, 10, 0, 30];

/// A proxy on a free port of this machine.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    state: Arc<ProxyState>,
    task: JoinHandle<()>,
}

struct ProxyState {
    broker: (String, u16),
    /// The number of cuts so far: a connection ends when it changes.
    cuts: watch::Sender<usize>,
    refuses: AtomicBool,
    /// `true` if confirms are swallowed and the connection is cut instead.
    cuts_at_confirm: AtomicBool,
    /// The maximum size of a frame that the broker seems to propose; 0 for its own.
    max_frame: AtomicU32,
    connections: AtomicUsize,
    /// `true` while nothing is carried in either direction.
    stalls: watch::Sender<bool>,
}

impl Proxy {
    /// Starts a proxy to the broker at this address.
    pub(crate) async fn start(host: &str, port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let state = Arc::new(ProxyState {
            broker: (host.to_owned(), port),
            cuts: watch::Sender::new(0),
            refuses: AtomicBool::new(false),
            cuts_at_confirm: AtomicBool::new(false),
            max_frame: AtomicU32::new(0),
            connections: AtomicUsize::new(0),
            stalls: watch::Sender::new(false),
        });
        Self {
            port: listener.local_addr().unwrap().port(),
            task: tokio::spawn(accept(listener, Arc::clone(&state))),
            state,
        }
    }

    /// Cuts all connections.
    pub(crate) fn cut(&self) {
        self.state.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Refuses or accepts connections from now on.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.state.refuses.store(refuses, Ordering::SeqCst);
    }

    /// Stops or resumes to carry bytes. Connections stay open and further ones are accepted.
    pub(crate) fn stall(&self, stalls: bool) {
        self.state.stalls.send_replace(stalls);
    }

    /// Cuts the connection, once, in place of the next confirm of the broker.
    pub(crate) fn cut_at_confirm(&self) {
        self.state.cuts_at_confirm.store(true, Ordering::SeqCst);
    }

    /// Proposes a maximum size of frames, in bytes, to further connections.
    pub(crate) fn propose_max_frame(&self, bytes: u32) {
        self.state.max_frame.store(bytes, Ordering::SeqCst);
    }

    /// Returns `true` while no confirm has been swallowed since [`Proxy::cut_at_confirm`].
    pub(crate) fn waits_for_confirm(&self) -> bool {
        self.state.cuts_at_confirm.load(Ordering::SeqCst)
    }

    /// Returns the number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<ProxyState>) {
    while let Ok((client, _)) = listener.accept().await {
        if state.refuses.load(Ordering::SeqCst) {
            continue;
        }
        state.connections.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(carry(client, Arc::clone(&state)));
    }
}

async fn carry(client: TcpStream, state: Arc<ProxyState>) {
    let mut cuts = state.cuts.subscribe();
    let Ok(broker) = TcpStream::connect(state.broker.clone()).await else {
        return;
    };
    let (from_client, to_client) = client.into_split();
    let (from_broker, to_broker) = broker.into_split();
    tokio::select! {
        _ = cuts.changed() => {}
        () = copy(from_client, to_broker, &state, false) => {}
        () = copy(from_broker, to_client, &state, true) => {}
    }
}

/// Copies bytes until an end. From the broker, ends in place of a confirm if the test asked for it.
async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, state: &ProxyState, is_from_broker: bool) {
    let mut stalls = state.stalls.subscribe();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(read @ 1..) = from.read(&mut buffer).await else {
            return;
        };
        let has_confirm = is_from_broker && buffer[..read].windows(ACK.len()).any(|bytes| bytes == ACK);
        if has_confirm && state.cuts_at_confirm.swap(false, Ordering::SeqCst) {
            return;
        }
        let max_frame = state.max_frame.load(Ordering::SeqCst);
        if is_from_broker && max_frame > 0 {
            propose(max_frame, &mut buffer[..read]);
        }
        if stalls.wait_for(|stalls| !stalls).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// Writes a maximum size of frames into the broker's proposal, if that is among the bytes.
fn propose(max_frame: u32, bytes: &mut [u8]) {
    if let Some(tune) = bytes.windows(TUNE.len()).position(|bytes| bytes == TUNE) {
        // After the maximum number of channels.
        let at = tune + TUNE.len() + 2;
        bytes[at..at + 4].copy_from_slice(&max_frame.to_be_bytes());
    }
}
