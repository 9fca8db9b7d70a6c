//! Requests that are cancelled at the server when nothing waits for their answer any more.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{CancelledNotificationParam, ClientRequest, RequestId, ServerResult};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, ServiceError};
use tokio::time::timeout;

/// Time limit for sending a cancellation.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);

/// Sends a request and waits for its answer, for `limit` at most.
pub(crate) async fn ask(
    peer: &Peer<RoleClient>,
    request: ClientRequest,
    limit: Duration,
) -> Result<ServerResult, ServiceError> {
    let asking = async {
        let options = PeerRequestOptions::no_options();
        let handle = peer.send_cancellable_request(request, options).await?;
        let mut abandoned = Abandoned::of(&handle);
        let result = handle.await_response().await;
        abandoned.disarm();
        result
    };
    let result = timeout(limit, asking).await;
    result.unwrap_or(Err(ServiceError::Timeout { timeout: limit }))
}

/// Tells the server that nothing waits for an answer any more, when it is dropped.
pub(crate) struct Abandoned {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Abandoned {
    pub(crate) fn of(handle: &RequestHandle<RoleClient>) -> Self {
        Self {
            peer: handle.peer.clone(),
            id: Some(handle.id.clone()),
        }
    }

    pub(crate) fn disarm(&mut self) {
        self.id = None;
    }
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let peer = self.peer.clone();
        let reason = Some("nothing waits for the answer".to_owned());
        let params = CancelledNotificationParam::new(Some(id), reason);
        // It ends at once, or after the time limit: the queue to a server that reads nothing is full.
        runtime.spawn(timeout(
            CANCEL_LIMIT,
            async move { peer.notify_cancelled(params).await },
        ));
    }
}
