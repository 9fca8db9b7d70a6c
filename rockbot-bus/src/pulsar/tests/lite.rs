//! A broker for tests: pulsar-lite, behind a proxy that mends its frames and cuts connections.
//!
//! The client wants a checksum in front of each message that it is sent. The protocol leaves it
//! away at will, and so does pulsar-lite 0.2. The proxy puts it there, and its own port into the
//! answers to look-ups.

use std::net::TcpListener as Port;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rockbot_core::testing::outside_part;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time;

/// Types of commands of the protocol.
const SEND_RECEIPT: u8 = 7;
const MESSAGE: u8 = 9;
const LOOKUP_RESPONSE: u8 = 24;

/// Maximum size of a frame of the protocol, in bytes.
const MAX_FRAME: usize = 8 * 1024 * 1024;

/// A broker of one test. It ends with this value.
pub(crate) struct PulsarLite {
    program: PathBuf,
    folder: TempDir,
    broker: Child,
    state: Arc<ProxyState>,
    accepting: JoinHandle<()>,
    /// The port of the proxy.
    pub(crate) port: u16,
}

struct ProxyState {
    /// The port of the broker.
    broker: u16,
    /// The port of the proxy.
    port: u16,
    /// The number of cuts so far: a connection ends when it changes.
    cuts: watch::Sender<usize>,
    /// `true` if receipts are swallowed and the connection is cut instead.
    cuts_at_receipt: AtomicBool,
    connections: AtomicUsize,
}

impl PulsarLite {
    /// Starts a broker. Without the program, the test is skipped, or fails if nothing may be skipped.
    pub(crate) async fn start() -> Option<Self> {
        let program = outside_part("ROCKBOT_TEST_PULSAR", "`.ci/pulsar` installs a pulsar-lite")?;
        let folder = tempfile::tempdir().expect("a folder for the broker");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port for the proxy");
        let port = listener.local_addr().expect("it is bound").port();
        let broker_port = port_of_length(port.to_string().len());
        let state = Arc::new(ProxyState {
            broker: broker_port,
            port,
            cuts: watch::Sender::new(0),
            cuts_at_receipt: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
        });
        let lite = Self {
            broker: spawn(&program, &folder, broker_port),
            program,
            folder,
            accepting: tokio::spawn(accept(listener, Arc::clone(&state))),
            state,
            port,
        };
        lite.until_ready().await;
        Some(lite)
    }

    /// Stops the broker by force.
    pub(crate) fn stop(&mut self) {
        drop(self.broker.stdin.take());
        let _ = self.broker.wait();
        self.cut();
    }

    /// Stops the broker by force, and starts it again with its data.
    pub(crate) async fn restart(&mut self) {
        self.stop();
        self.broker = spawn(&self.program, &self.folder, self.state.broker);
        self.until_ready().await;
    }

    /// Cuts all connections.
    pub(crate) fn cut(&self) {
        self.state.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Cuts the connection, once, in place of the next receipt of the broker.
    pub(crate) fn cut_at_receipt(&self) {
        self.state.cuts_at_receipt.store(true, Ordering::SeqCst);
    }

    /// Returns `true` while no receipt has been swallowed since [`PulsarLite::cut_at_receipt`].
    pub(crate) fn waits_for_receipt(&self) -> bool {
        self.state.cuts_at_receipt.load(Ordering::SeqCst)
    }

    /// Returns the number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    async fn until_ready(&self) {
        let ready = async {
            while TcpStream::connect(("127.0.0.1", self.state.broker)).await.is_err() {
                time::sleep(Duration::from_millis(50)).await;
            }
        };
        time::timeout(Duration::from_secs(30), ready)
            .await
            .expect("the broker starts");
    }
}

impl Drop for PulsarLite {
    fn drop(&mut self) {
        self.accepting.abort();
        self.stop();
    }
}

fn spawn(program: &Path, folder: &TempDir, port: u16) -> Child {
    let config = folder.path().join("pulsar-lite.toml");
    let data = folder.path().join("data");
    let text = format!("addr = \"127.0.0.1:{port}\"\ndb_path = {data:?}\n[metrics]\nenabled = false\n");
    std::fs::write(&config, text).expect("the configuration can be written");
    let log = std::fs::File::create(folder.path().join("log")).expect("the log can be written");
    // The shell ends the broker when its input ends, also when the test is killed.
    let script = r#""$0" --config "$1" </dev/null & cat >/dev/null; kill -9 $!; wait"#;
    Command::new("sh")
        .args(["-c", script])
        .args([program, &config])
        .stdin(Stdio::piped())
        .stdout(log.try_clone().expect("the log can be shared"))
        .stderr(log)
        .spawn()
        .expect("pulsar-lite starts")
}

/// Returns a free port of so many digits, since one takes the place of the other in the answers
/// to look-ups.
fn port_of_length(digits: usize) -> u16 {
    for _ in 0..1000 {
        let bound = Port::bind("127.0.0.1:0").expect("a port is free");
        let port = bound.local_addr().expect("it is bound").port();
        if port.to_string().len() == digits {
            return port;
        }
    }
    panic!("a port of {digits} digits is free")
}

async fn accept(listener: TcpListener, state: Arc<ProxyState>) {
    while let Ok((client, _)) = listener.accept().await {
        state.connections.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(carry(client, Arc::clone(&state)));
    }
}

async fn carry(client: TcpStream, state: Arc<ProxyState>) {
    let mut cuts = state.cuts.subscribe();
    let Ok(broker) = TcpStream::connect(("127.0.0.1", state.broker)).await else {
        return;
    };
    for stream in [&client, &broker] {
        stream.set_nodelay(true).expect("a connection takes the option");
    }
    let (mut from_client, to_client) = client.into_split();
    let (from_broker, mut to_broker) = broker.into_split();
    tokio::select! {
        _ = cuts.changed() => {}
        _ = tokio::io::copy(&mut from_client, &mut to_broker) => {}
        () = mend(from_broker, to_client, &state) => {}
    }
}

/// Copies frames until an end.
async fn mend(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, state: &ProxyState) {
    loop {
        let Ok(size) = from.read_u32().await else { return };
        let size = usize::try_from(size).expect("32 bits");
        assert!((4..=MAX_FRAME).contains(&size), "a frame has {size} bytes");
        let mut frame = vec![0; size];
        if from.read_exact(&mut frame).await.is_err() {
            return;
        }
        // The command begins with its type: field 1, a number.
        let kind = if frame.get(4) == Some(&8) { frame[5] } else { 0 };
        if kind == SEND_RECEIPT && state.cuts_at_receipt.swap(false, Ordering::SeqCst) {
            return;
        }
        let frame = match kind {
            MESSAGE => with_checksum(frame),
            LOOKUP_RESPONSE => with_port(frame, state),
            _ => frame,
        };
        let size = u32::try_from(frame.len()).expect("frames are small").to_be_bytes();
        if to.write_all(&[&size, &*frame].concat()).await.is_err() {
            return;
        }
    }
}

/// Returns the frame with the magic number and the checksum between its command and the metadata
/// of the message.
fn with_checksum(frame: Vec<u8>) -> Vec<u8> {
    const MAGIC: [u8; 2] = [0x0e, 0x01];
    let command = u32::from_be_bytes(frame[..4].try_into().expect("four bytes"));
    let (head, payload) = frame.split_at(4 + usize::try_from(command).expect("32 bits"));
    if payload.starts_with(&MAGIC) {
        return frame;
    }
    [head, &MAGIC, &crc32c(payload).to_be_bytes(), payload].concat()
}

/// Returns the frame with the proxy's port in place of the broker's.
fn with_port(mut frame: Vec<u8>, state: &ProxyState) -> Vec<u8> {
    let from = format!(":{}", state.broker);
    let to = format!(":{}", state.port);
    let places: Vec<_> = frame
        .windows(from.len())
        .enumerate()
        .filter(|(_, window)| *window == from.as_bytes())
        .map(|(at, _)| at)
        .collect();
    for at in places {
        frame[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    frame
}

/// Returns the CRC-32C (Castagnoli) of `bytes`.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    };
    !bytes.iter().fold(u32::MAX, step)
}

#[test]
fn the_checksum_is_castagnolis() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
}
