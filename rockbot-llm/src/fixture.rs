//! A server on the loopback that answers with recorded bytes.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// The server's response to one request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Writes these pieces, one by one, and closes.
    Pieces(Vec<Vec<u8>>),
    /// Writes this and then nothing more, until the client goes away.
    Hang(Vec<u8>),
}

impl Reply {
    /// Creates a whole answer with this status and body, and these header lines.
    pub(crate) fn new(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n");
        Self::Pieces(vec![(head + body).into_bytes()])
    }

    /// Creates a whole JSON answer.
    pub(crate) fn json(status: u16, body: &str) -> Self {
        Self::new(status, "content-type: application/json\r\n", body)
    }

    /// Creates a stream that ends where `body` ends.
    pub(crate) fn stream(body: &str) -> Self {
        Self::Pieces(vec![STREAM_HEAD.into(), body.into()])
    }

    /// Creates a stream that stops after `body` without ending.
    pub(crate) fn stalling_stream(body: &str) -> Self {
        Self::Hang([STREAM_HEAD, body].concat().into_bytes())
    }
}

const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A running server. It answers the replies in order, one per connection.
pub(crate) struct Server {
    address: std::net::SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    /// Tells of clients that went away while the server hung.
    gone: mpsc::UnboundedReceiver<()>,
}

impl Server {
    /// Starts a server with these replies.
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let mut replies = replies.into_iter().collect::<Vec<_>>().into_iter();
        Self::serve(move |_| std::future::ready(replies.next())).await
    }

    /// Starts a server that gives each request the reply that `answer` makes.
    pub(crate) async fn answering<A: Future<Output = Reply> + Send + 'static>(
        mut answer: impl FnMut(String) -> A + Send + 'static,
    ) -> Self {
        Self::serve(move |request| {
            let answered = answer(request);
            async move { Some(answered.await) }
        })
        .await
    }

    /// Starts a server that replies until there is no reply any more.
    async fn serve<A: Future<Output = Option<Reply>> + Send>(
        mut reply_to: impl FnMut(String) -> A + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (tell_gone, gone) = mpsc::unbounded_channel();
        let seen = requests.clone();
        tokio::spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let request = read_request(&mut socket).await;
                seen.lock().unwrap().push(request.clone());
                let Some(reply) = reply_to(request).await else { return };
                match reply {
                    Reply::Pieces(pieces) => write_all(&mut socket, &pieces).await,
                    Reply::Hang(bytes) => {
                        write_all(&mut socket, &[bytes]).await;
                        let tell_gone = tell_gone.clone();
                        tokio::spawn(async move {
                            let _ = socket.read(&mut [0; 16]).await;
                            let _ = tell_gone.send(());
                        });
                    }
                }
            }
        });
        Self {
            address,
            requests,
            gone,
        }
    }

    /// Returns the endpoint to configure.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the requests so far: heads and bodies as they came.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// Waits until a client went away from a hanging reply.
    pub(crate) async fn client_gone(&mut self) {
        self.gone.recv().await.unwrap();
    }
}

async fn write_all(socket: &mut TcpStream, pieces: &[Vec<u8>]) {
    for piece in pieces {
        // The client may have had enough already.
        if socket.write_all(piece).await.is_err() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

async fn read_request(socket: &mut TcpStream) -> String {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text.into_owned();
            }
        }
        let mut bytes = [0; 4096];
        let count = socket.read(&mut bytes).await.unwrap();
        assert_ne!(count, 0, "the client closed in the middle of its request");
        request.extend_from_slice(&bytes[..count]);
    }
}
