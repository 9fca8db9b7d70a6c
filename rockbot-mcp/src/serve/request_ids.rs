//! A transport that refuses a request under the id of a running request: a client could not tell
//! two answers with one id apart.

use std::collections::HashSet;
use std::pin::Pin;

use rmcp::RoleServer;
use rmcp::model::{ClientNotification, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// Returns the answer to a request whose id is in use.
pub(super) fn refusal(id: RequestId) -> ServerJsonRpcMessage {
    let text =
        format!("the request id {id} is in use: wait for the answer to the request before it, or use another id");
    ServerJsonRpcMessage::error(ErrorData::invalid_request(text, None), Some(id))
}

/// The transport.
pub(super) struct UniqueIds<T: Transport<RoleServer>> {
    inner: T,
    running: HashSet<RequestId>,
    /// The refusal that is being sent. It is kept here, since the wait for the next message may be
    /// dropped meanwhile.
    refusing: Option<Sending<T::Error>>,
}

type Sending<E> = Pin<Box<dyn Future<Output = Result<(), E>> + Send>>;

impl<T: Transport<RoleServer>> UniqueIds<T> {
    pub(super) fn around(inner: T) -> Self {
        Self {
            inner,
            running: HashSet::new(),
            refusing: None,
        }
    }

    /// Returns the id to refuse if the message is a request under the id of a running request.
    fn note(&mut self, message: &RxJsonRpcMessage<RoleServer>) -> Option<RequestId> {
        match message {
            JsonRpcMessage::Request(request) => {
                let is_new = self.running.insert(request.id.clone());
                (!is_new).then(|| request.id.clone())
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    // It gets no answer.
                    self.running.remove(id);
                }
                None
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => None,
        }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for UniqueIds<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        match &item {
            JsonRpcMessage::Response(response) => _ = self.running.remove(&response.id),
            JsonRpcMessage::Error(error) => {
                if let Some(id) = &error.id {
                    self.running.remove(id);
                }
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {}
        }
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(refusing) = &mut self.refusing {
                // A client that is gone gets none.
                let _ = refusing.await;
                self.refusing = None;
            }
            let message = self.inner.receive().await?;
            match self.note(&message) {
                Some(id) => self.refusing = Some(Box::pin(self.inner.send(refusal(id)))),
                None => return Some(message),
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
