//! The connections of clients, and the requests in them.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use rockbot_core::context::CancellationToken;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

use super::Places;

/// Maximum number of connections. A further connection takes the place of an earlier one.
const MAX_CONNECTIONS: usize = 256;

/// Maximum time for the headers of a request.
const HEADERS: Duration = Duration::from_secs(10);

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

/// Serves at most 256 connections over HTTP/1: `answer` gets each request with the client's
/// address. When `stop` is cancelled, ends all connections and returns. Dropping the future ends
/// them, too.
///
/// Once all connections are taken, the client with the most connections gives one up, an unused
/// connection first.
pub async fn serve<F>(
    listener: TcpListener,
    stop: CancellationToken,
    answer: impl Fn(Request<Incoming>, IpAddr) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Answer> + Send + 'static,
{
    let tasks = TaskTracker::new();
    let end = stop.child_token();
    let _ended = end.clone().drop_guard();
    let places = Arc::new(Mutex::new(Places::new(MAX_CONNECTIONS)));
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
                    tasks.spawn(connected(stream, connection, end, answer.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be accepted; trying again");
                    sleep(PAUSE).await;
                }
            }
        }
    };
    stop.run_until_cancelled(accepting).await;
    tasks.close();
    tasks.wait().await;
}

async fn connected<F>(
    stream: TcpStream,
    connection: Connection,
    end: CancellationToken,
    answer: impl Fn(Request<Incoming>, IpAddr) -> F + Clone + Send + Sync + 'static,
) where
    F: Future<Output = Answer> + Send + 'static,
{
    let connection = Arc::new(connection);
    let service = service_fn(move |request| {
        let used = connection.begin_use();
        let answering = answer(request, used.0.peer);
        async move {
            // The connection is in use until the client has read the answer.
            let answer = answering
                .await
                .map(|body| body.map_frame(move |frame| (frame, &used).0).boxed_unsync());
            Ok::<_, Infallible>(answer)
        }
    });
    let mut protocol = http1::Builder::new();
    protocol.timer(TokioTimer::new()).header_read_timeout(HEADERS);
    let connection = protocol.serve_connection(TokioIo::new(stream), service);
    // An error of a connection concerns its client, who sees the connection end.
    let _ = end.run_until_cancelled(connection).await;
}
