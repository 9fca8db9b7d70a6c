//! A server on loopback for tests: it answers each request with the bytes that a function
//! returns, and records them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A server that lives as long as this value.
pub(crate) struct TestServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TestServer {
    /// Starts a server whose answer to a request, head and body, `answer` returns: a whole HTTP
    /// response.
    pub(crate) async fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let answer = Arc::new(answer);
        let seen = requests.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answer.clone(), seen.clone()));
            }
        });
        Self {
            address,
            requests,
            task,
        }
    }

    /// Starts a server that answers each path with the content of this type, and others with 404.
    pub(crate) async fn with_pages(pages: &'static [(&'static str, &'static str, &'static str)]) -> Self {
        Self::start(move |request| {
            let path = request.split(' ').nth(1).unwrap_or_default();
            match pages.iter().find(|(page, _, _)| *page == path) {
                Some((_, kind, content)) => ok(kind, content.as_bytes()),
                None => response(
                    "404 Not Found",
                    &[("content-type", "text/plain")],
                    b"there is no such page",
                ),
            }
        })
        .await
    }

    /// Returns the URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the requests so far, heads in lower case and bodies as they are.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Returns a response with status 200 and this content.
pub(crate) fn ok(kind: &str, content: &[u8]) -> Vec<u8> {
    response("200 OK", &[("content-type", kind)], content)
}

/// Returns a response.
pub(crate) fn response(status: &str, headers: &[(&str, &str)], content: &[u8]) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", content.len());
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += "\r\n";
    [text.as_bytes(), content].concat()
}

async fn serve(
    mut stream: TcpStream,
    answer: Arc<impl Fn(&str) -> Vec<u8> + Send + Sync + 'static>,
    seen: Arc<Mutex<Vec<String>>>,
) {
    let mut buffer = Vec::new();
    loop {
        let Some(request) = next_request(&mut stream, &mut buffer).await else {
            return;
        };
        seen.lock().unwrap().push(request.clone());
        let bytes = answer(&request);
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(1_000)]).into_owned();
        // A response without a length goes on for as long as the client listens.
        let is_endless = !head.contains("content-length");
        while stream.write_all(&bytes).await.is_ok() && is_endless {
            tokio::task::yield_now().await;
        }
        if is_endless || head.contains("connection: close") {
            return;
        }
    }
}

async fn next_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<String> {
    loop {
        let text = String::from_utf8_lossy(buffer).into_owned();
        if let Some(end) = text.find("\r\n\r\n") {
            let head = text[..end].to_owned();
            let lower = head.to_ascii_lowercase();
            let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
            if buffer.len() >= end + 4 + length {
                let body = String::from_utf8_lossy(&buffer[end + 4..end + 4 + length]).into_owned();
                buffer.drain(..end + 4 + length);
                // The target keeps its case.
                let (first, rest) = head.split_once("\r\n").unwrap_or((&head, ""));
                return Some(format!(
                    "{first}\n{}\n\n{body}",
                    rest.to_ascii_lowercase().replace("\r\n", "\n")
                ));
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(read) if read > 0 => buffer.extend_from_slice(&piece[..read]),
            _ => return None,
        }
    }
}
