//! The transport of 2024: a `GET` opens a stream of events; the first event names the address
//! that requests are posted to.

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Client, Response, StatusCode, Url};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::MAX_MESSAGE;
use super::events::{Event, Events};

/// Number of messages that wait to be received; then the stream is read no further.
const QUEUE: usize = 32;

/// An error of the transport. No text of the server and no address is shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum EventStreamError {
    #[error("the server cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    #[error("the server answers {0}")]
    Refused(StatusCode),
    #[error("the server sends no address for requests")]
    NoEndpoint,
    #[error("the server names an address at another origin for requests")]
    OtherOrigin,
    #[error("the request cannot be written as JSON")]
    Unwritable(#[source] serde_json::Error),
}

/// The transport. Its drop ends the stream.
#[derive(Debug)]
pub(super) struct EventStream {
    http: Client,
    endpoint: Url,
    messages: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
    reader: JoinHandle<()>,
}

impl EventStream {
    /// Opens the stream and waits for the address.
    pub(super) async fn open(http: Client, url: Url) -> Result<Self, EventStreamError> {
        let asked = http.get(url.clone()).header(ACCEPT, "text/event-stream").send().await;
        let mut response = asked.map_err(EventStreamError::Unreachable)?;
        if !response.status().is_success() {
            return Err(EventStreamError::Refused(response.status()));
        }
        let mut events = Events::new(MAX_MESSAGE);
        let endpoint = loop {
            match next(&mut events, &mut response).await {
                Some(event) if event.kind == "endpoint" => break event.data,
                Some(_) => {}
                None => return Err(EventStreamError::NoEndpoint),
            }
        };
        let endpoint = url.join(endpoint.trim()).map_err(|_| EventStreamError::NoEndpoint)?;
        if endpoint.origin() != url.origin() {
            // The headers may hold a key.
            return Err(EventStreamError::OtherOrigin);
        }
        let (sender, messages) = mpsc::channel(QUEUE);
        Ok(Self {
            http,
            endpoint,
            messages,
            reader: tokio::spawn(read(events, response, sender)),
        })
    }
}

async fn read(mut events: Events, mut response: Response, messages: mpsc::Sender<RxJsonRpcMessage<RoleClient>>) {
    while let Some(event) = next(&mut events, &mut response).await {
        let message = match event.kind.as_str() {
            "" | "message" => serde_json::from_str(&event.data),
            _ => continue,
        };
        match message {
            Ok(message) => {
                if messages.send(message).await.is_err() {
                    return;
                }
            }
            Err(_) => tracing::debug!("an MCP server sent an event that is no message"),
        }
    }
}

/// Returns the next event, or `None` at the end of the stream.
async fn next(events: &mut Events, response: &mut Response) -> Option<Event> {
    loop {
        if let Some(event) = events.pop() {
            return Some(event);
        }
        events.push(&response.chunk().await.ok()??);
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Transport<RoleClient> for EventStream {
    type Error = EventStreamError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let http = self.http.clone();
        let endpoint = self.endpoint.clone();
        async move {
            let body = serde_json::to_vec(&item).map_err(EventStreamError::Unwritable)?;
            let posting = http.post(endpoint).header(CONTENT_TYPE, "application/json").body(body);
            let response = posting.send().await.map_err(EventStreamError::Unreachable)?;
            if response.status().is_success() {
                Ok(())
            } else {
                Err(EventStreamError::Refused(response.status()))
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.reader.abort();
        self.messages.close();
        Ok(())
    }
}
