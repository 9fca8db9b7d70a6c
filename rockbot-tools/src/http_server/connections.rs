//! The connections of clients, and the requests in them.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use rockbot_core::BoxError;
use rockbot_core::context::CancellationToken;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_util::task::TaskTracker;

use super::Places;

/// Usual maximum number of connections. A further connection takes the place of an earlier one.
pub const MAX_CONNECTIONS: usize = 256;

/// Maximum time for the headers of a request, from the end of the request before. It is longer than
/// proxies and clients keep idle connections (60 to 90 s), so that they close a connection first: a
/// request that meets the server's end of its connection fails. A client that sends headers slowly
/// keeps no place from another client.
const HEADERS: Duration = Duration::from_secs(100);

/// Maximum time in which a client takes none of the bytes that are written to it. A client that
/// reads nothing holds its connection and a buffer, and nothing else waits for it.
const STALLED: Duration = Duration::from_secs(30);

/// Time for running answers to end once the server stops. It is shorter than the time that the host
/// gives the server.
const DRAIN: Duration = Duration::from_secs(4);

/// The pause after a connection that could not be accepted: most likely there are too many open
/// files.
const PAUSE: Duration = Duration::from_millis(100);

/// An answer to a client, whose body may be a stream.
pub type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// The places of connections, each with the token that ends it.
type ConnectionPlaces = Mutex<Places<u64, CancellationToken>>;

/// The place of one connection. Dropping it frees the place.
struct Connection {
    places: Arc<ConnectionPlaces>,
    number: u64,
    peer: IpAddr,
}

impl Connection {
    fn begin_use(self: &Arc<Self>) -> ConnectionUse {
        lock(&self.places).begin_use(&self.number);
        ConnectionUse(self.clone())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        lock(&self.places).free(&self.number);
    }
}

/// The use of a connection by a request. Dropping it ends the use.
struct ConnectionUse(Arc<Connection>);

impl Drop for ConnectionUse {
    fn drop(&mut self) {
        lock(&self.0.places).end_use(&self.0.number);
    }
}

fn lock(places: &ConnectionPlaces) -> MutexGuard<'_, Places<u64, CancellationToken>> {
    // Each change is one step, so a poisoned map is consistent.
    places.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens `address`, and returns the listener with the address that was opened: port 0 opens a free
/// one.
///
/// # Errors
///
/// Returns an error that names the address if it cannot be opened.
pub async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), BoxError> {
    let refused = |error| format!("cannot listen at {address}: {error}");
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Serves at most `max_connections` over HTTP/1: `answer` gets each request with the client's
/// address. When `stop` is cancelled, accepts no connection and no request any more, and returns once
/// the running answers have ended, within 4 s. Dropping the future ends all connections at once.
///
/// Once all connections are taken, the client with the most connections gives one up, an unused
/// connection first. A connection whose client takes no byte of its answer for 30 s is ended.
pub async fn serve<F, B>(
    listener: TcpListener,
    max_connections: usize,
    stop: CancellationToken,
    answer: impl Fn(Request<Incoming>, IpAddr) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let tasks = TaskTracker::new();
    let end = CancellationToken::new();
    let _ended = end.clone().drop_guard();
    let places = Arc::new(Mutex::new(Places::new(max_connections)));
    let accepting = async {
        for number in 0_u64.. {
            match listener.accept().await {
                Ok((stream, address)) => {
                    let end = end.child_token();
                    let connection = Connection {
                        places: places.clone(),
                        number,
                        peer: address.ip(),
                    };
                    let gone = lock(&places).take(number, address.ip(), end.clone());
                    gone.into_iter().for_each(|(_, end)| end.cancel());
                    let ends = Ends {
                        stop: stop.clone(),
                        end,
                    };
                    tasks.spawn(connected(stream, connection, ends, answer.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be accepted; trying again");
                    sleep(PAUSE).await;
                }
            }
        }
    };
    stop.run_until_cancelled(accepting).await;
    drop(listener);
    tasks.close();
    if timeout(DRAIN, tasks.wait()).await.is_err() {
        end.cancel();
        tasks.wait().await;
    }
}

/// The ends of a connection: after the running answer, and at once.
struct Ends {
    stop: CancellationToken,
    end: CancellationToken,
}

async fn connected<F, B>(
    stream: TcpStream,
    connection: Connection,
    ends: Ends,
    answer: impl Fn(Request<Incoming>, IpAddr) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let connection = Arc::new(connection);
    let service = service_fn(move |request| {
        let used = connection.begin_use();
        let answering = answer(request, used.0.peer);
        async move {
            // The connection is in use until the client has read the answer.
            let answer = answering
                .await
                .map(|body| body.map_frame(move |frame| (frame, &used).0));
            Ok::<_, Infallible>(answer)
        }
    });
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(HEADERS);
    // Else a small event waits for the acknowledgement of the one before: 40 ms on Linux. A socket
    // without the option works all the same.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(STALLED));
    let mut connection = pin!(protocol.serve_connection(TokioIo::new(Box::pin(stream)), service));
    let Ends { stop, end } = ends;
    // An error of a connection concerns its client, who sees the connection end.
    let ended = tokio::select! {
        _ = connection.as_mut() => true,
        () = end.cancelled() => true,
        () = stop.cancelled() => false,
    };
    if !ended {
        connection.as_mut().graceful_shutdown();
        let _ = end.run_until_cancelled(connection).await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::Frame;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::mpsc;

    use super::*;

    /// A body that never ends: it waits after some frames. Its sender is dropped with it.
    struct Endless {
        frames: usize,
        _alive: mpsc::Sender<()>,
    }

    impl Body for Endless {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if self.frames == 0 {
                return Poll::Pending;
            }
            self.frames -= 1;
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 1 << 16])))))
        }
    }

    /// Serves endless answers, and returns the address, and a receiver that ends with the last answer.
    async fn endless(frames: usize, stop: &CancellationToken) -> (std::net::SocketAddr, mpsc::Receiver<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (alive, ended) = mpsc::channel(1);
        let answer = move |_, _| {
            let _alive = alive.clone();
            async move { Response::new(Endless { frames, _alive }) }
        };
        tokio::spawn(serve(listener, 4, stop.clone(), answer));
        (address, ended)
    }

    async fn ask(address: std::net::SocketAddr) -> TcpStream {
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        client.read_u8().await.unwrap();
        client
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_loses_its_connection() {
        let stop = CancellationToken::new();
        let frames = 4096;
        let (address, mut ended) = endless(frames, &stop).await;
        let client = ask(address).await;
        tokio::time::sleep(STALLED + HEADERS).await;
        // The answer has more, and was cut: what is read now stood in the buffers.
        let mut read = Vec::new();
        let _ = client.take((frames as u64) << 16).read_to_end(&mut read).await;
        assert!(read.len() < frames << 15, "{} bytes", read.len());
        stop.cancel();
        assert_eq!(ended.recv().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_does_not_end_is_cut_when_the_server_stops() {
        let stop = CancellationToken::new();
        let (address, mut ended) = endless(1, &stop).await;
        let mut client = ask(address).await;
        stop.cancel();
        let mut read = Vec::new();
        let _ = client.read_to_end(&mut read).await;
        assert_eq!(ended.recv().await, None);
    }
}
