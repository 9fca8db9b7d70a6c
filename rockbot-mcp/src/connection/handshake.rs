//! The handshake with a server: of the present protocol, and with a server that does not know it,
//! of an older one.
//!
//! A server may need a minute until its first answer: a container, a JVM, a program that is
//! downloaded first. The client library waits ten seconds for the answer to its first question,
//! and takes a later answer as the answer to the next question. So the questions are asked here,
//! each by an id of its own, and both of them wait for their answers as long as there is time.
//! Then the library makes its own handshake over a [`Greeted`] transport, which answers it with
//! the server's answer.
//!
//! The handshake is ours, and patient (`connection/handshake.rs`): a server may need a minute
//! until its first answer. The client library would give up its first question after ten seconds
//! and take the late answer for an answer to the next question. So both questions have ids of
//! their own, wait for their answers in one process, and the library then gets the answer that
//! counts. An unknown version of the protocol is refused.

use std::time::Duration;

use rmcp::ClientHandler as _;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ClientResult, DiscoverRequest, DiscoverRequestParams, ErrorCode, ErrorData,
    InitializeRequest, JsonRpcMessage, ProtocolVersion, RequestId, RequestMetaObject, ServerRequest, ServerResult,
};
use rmcp::service::{ClientInitializeError, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rockbot_core::support::one_line;
use tokio::time::{Instant, sleep_until, timeout};

use super::ConnectError;
use super::client::Client;

/// Longest time without an answer to the question of the present protocol. After it the older
/// question is asked, too.
const MAX_PROBE: Duration = Duration::from_secs(10);

/// Share of the time for a connection that the question of the present protocol has for itself.
const PROBE_SHARE: u32 = 6;

/// The ids of the two questions. The library counts from zero and never comes to them, so that no
/// late answer belongs to a request of the library.
const DISCOVER: RequestId = RequestId::Number(2_147_483_646);
const INITIALIZE: RequestId = RequestId::Number(2_147_483_647);

/// The way of questions and answers through a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    /// Pipes, or a stream of events: questions and answers are independent.
    Stream,
    /// Streamable HTTP: each question is a request that ends with its answer or an error.
    Requests,
}

/// A transport whose server has answered. It answers the library's handshake itself, and passes
/// everything else on.
pub(super) struct Greeted<T> {
    inner: T,
    answer: Option<ServerResult>,
    /// The answer, once the library has asked for it.
    ready: Option<RxJsonRpcMessage<RoleClient>>,
}

impl<T: Transport<RoleClient> + 'static> Greeted<T> {
    /// Asks the server which form of the protocol it speaks, and waits for its answer as long as
    /// `limit`.
    pub(super) async fn by(
        mut transport: T,
        client: &Client,
        channel: Channel,
        limit: Duration,
    ) -> Result<Self, ConnectError> {
        let mut greeting = Greeting {
            transport: &mut transport,
            client,
            channel,
            discover: Question::Unasked,
            initialize: Question::Unasked,
            has_asked_again: false,
        };
        let answer = match timeout(limit, greeting.run(limit / PROBE_SHARE)).await {
            Ok(answer) => answer?,
            // A refusal that might have been followed by a better answer says more than the silence.
            Err(_) => {
                return Err(greeting
                    .refusal()
                    .unwrap_or(ConnectError::TimedOut(limit, String::new())));
            }
        };
        Ok(Self {
            inner: transport,
            answer: Some(answer),
            ready: None,
        })
    }

    /// Returns `true` if the server speaks the present protocol.
    pub(super) fn is_modern(&self) -> bool {
        matches!(self.answer, Some(ServerResult::DiscoverResult(_)))
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Greeted<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        // The first request of the library is its handshake.
        let sending = if let JsonRpcMessage::Request(request) = &item
            && let Some(answer) = self.answer.take()
        {
            self.ready = Some(JsonRpcMessage::response(answer, request.id.clone()));
            None
        } else {
            Some(self.inner.send(item))
        };
        async move {
            match sending {
                Some(sending) => sending.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        match self.ready.take() {
            Some(ready) => Some(ready),
            None => self.inner.receive().await,
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

/// The two questions to a server.
struct Greeting<'a, T> {
    transport: &'a mut T,
    client: &'a Client,
    channel: Channel,
    discover: Question,
    initialize: Question,
    /// `true` once the question of the present protocol was asked again.
    has_asked_again: bool,
}

/// The state of a question.
enum Question {
    Unasked,
    Asked,
    Refused(ErrorData),
    /// It has no answer that counts, such as a result of another kind.
    Failed,
}

impl Question {
    fn is_open(&self) -> bool {
        matches!(self, Self::Unasked | Self::Asked)
    }
}

impl<T: Transport<RoleClient> + 'static> Greeting<'_, T> {
    /// Asks until the server has answered the present or the older question. The older question is
    /// asked once the present one is refused, or is not answered within `probe` over a stream.
    async fn run(&mut self, probe: Duration) -> Result<ServerResult, ConnectError> {
        if self.client.knows_sessions_only() {
            self.discover = Question::Failed;
            self.ask_initialize().await?;
        } else {
            self.ask_discover().await?;
        }
        let ask_both = Instant::now() + probe.min(MAX_PROBE);
        loop {
            let may_ask_both = self.channel == Channel::Stream && matches!(self.initialize, Question::Unasked);
            let message = tokio::select! {
                message = self.transport.receive() => match message {
                    Some(message) => message,
                    None => return Err(self.ended()),
                },
                () = sleep_until(ask_both), if may_ask_both => {
                    self.ask_initialize().await?;
                    continue;
                }
            };
            if let Some(answer) = self.take(message).await? {
                return Ok(answer);
            }
            if !self.discover.is_open() && matches!(self.initialize, Question::Unasked) {
                self.ask_initialize().await?;
            }
            if !self.discover.is_open() && !self.initialize.is_open() {
                return Err(self.refusal().unwrap_or(ConnectError::NoEra));
            }
        }
    }

    /// Takes a message of the server, and returns the answer that counts, if it is one.
    async fn take(&mut self, message: RxJsonRpcMessage<RoleClient>) -> Result<Option<ServerResult>, ConnectError> {
        match message {
            JsonRpcMessage::Response(response) if is_answer(&DISCOVER, Some(&response.id)) => {
                return self.discovered(response.result);
            }
            JsonRpcMessage::Response(response) if is_answer(&INITIALIZE, Some(&response.id)) => {
                return self.initialized(response.result);
            }
            JsonRpcMessage::Error(error) => {
                // An error without an id is of a server that cannot read one: it answers the question that waits
                // longest.
                let is_discover = matches!(self.discover, Question::Asked) && is_answer(&DISCOVER, error.id.as_ref());
                if is_discover {
                    self.refused_discover(error.error).await?;
                } else if is_answer(&INITIALIZE, error.id.as_ref()) {
                    self.initialize = Question::Refused(error.error);
                }
            }
            // The present protocol has no such request.
            JsonRpcMessage::Request(request) if !matches!(self.initialize, Question::Unasked) => {
                if let ServerRequest::PingRequest(_) = request.request {
                    let pong = ClientJsonRpcMessage::response(ClientResult::empty(()), request.id);
                    self.send(pong, "answer a ping").await?;
                }
            }
            _ => {}
        }
        Ok(None)
    }

    /// Takes the refusal of the question of the present protocol. A server that refuses its version
    /// and names that very version is asked once more.
    async fn refused_discover(&mut self, error: ErrorData) -> Result<(), ConnectError> {
        if !self.has_asked_again && supported_by(&error).contains(&ProtocolVersion::LATEST) {
            self.has_asked_again = true;
            return self.ask_discover().await;
        }
        check_refusal(&error)?;
        self.discover = Question::Refused(error);
        Ok(())
    }

    /// Takes the answer to the question of the present protocol.
    fn discovered(&mut self, result: ServerResult) -> Result<Option<ServerResult>, ConnectError> {
        let ServerResult::DiscoverResult(found) = &result else {
            self.discover = Question::Failed;
            return Ok(None);
        };
        if found.supported_versions.contains(&ProtocolVersion::LATEST) {
            return Ok(Some(result));
        }
        check_versions(&found.supported_versions)?;
        self.discover = Question::Failed;
        Ok(None)
    }

    /// Takes the answer to the question of the older protocol.
    fn initialized(&mut self, result: ServerResult) -> Result<Option<ServerResult>, ConnectError> {
        let ServerResult::InitializeResult(found) = &result else {
            self.initialize = Question::Failed;
            return Ok(None);
        };
        if !ProtocolVersion::KNOWN_VERSIONS.contains(&found.protocol_version) {
            return Err(ConnectError::unknown_version([&found.protocol_version]));
        }
        Ok(Some(result))
    }

    async fn ask_discover(&mut self) -> Result<(), ConnectError> {
        let client = self.client.get_info();
        let meta = RequestMetaObject::with_client_context(
            ProtocolVersion::LATEST,
            client.client_info.clone(),
            client.capabilities.clone(),
        );
        let mut request = DiscoverRequest::new(DiscoverRequestParams {});
        request.extensions.insert(meta);
        self.discover = Question::Asked;
        let request = ClientJsonRpcMessage::request(ClientRequest::DiscoverRequest(request), DISCOVER);
        self.send(request, "send discover request").await
    }

    async fn ask_initialize(&mut self) -> Result<(), ConnectError> {
        let mut client = self.client.get_info();
        client.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        let request = InitializeRequest::new(client);
        self.initialize = Question::Asked;
        let request = ClientJsonRpcMessage::request(ClientRequest::InitializeRequest(request), INITIALIZE);
        self.send(request, "send initialize request").await
    }

    async fn send(&mut self, message: ClientJsonRpcMessage, what: &'static str) -> Result<(), ConnectError> {
        let Err(error) = self.transport.send(message).await else {
            return Ok(());
        };
        let cause: &(dyn std::error::Error + 'static) = &error;
        if cause.is::<std::io::Error>() {
            // Its pipe is broken.
            return Err(self.ended());
        }
        Err(ConnectError::refused(&ClientInitializeError::transport::<T>(
            error, what,
        )))
    }

    /// Returns the error of a server that has ended. A server that ended at the first question may
    /// know the older question alone.
    fn ended(&self) -> ConnectError {
        match self.initialize {
            Question::Unasked if self.channel == Channel::Stream => ConnectError::EndedAtFirst(String::new()),
            _ => ConnectError::refused(&ClientInitializeError::ConnectionClosed(String::new())),
        }
    }

    /// Returns the server's error if it refused the older question.
    fn refusal(&self) -> Option<ConnectError> {
        match &self.initialize {
            Question::Refused(error) => {
                let error = ClientInitializeError::JsonRpcError(error.clone());
                Some(ConnectError::refused(&error))
            }
            _ => None,
        }
    }
}

/// Returns `true` if a message with this id answers the question. Some servers send a number as
/// text.
fn is_answer(question: &RequestId, id: Option<&RequestId>) -> bool {
    match (question, id) {
        (_, None) => true,
        (RequestId::Number(number), Some(RequestId::String(text))) => **text == *number.to_string(),
        (question, Some(id)) => question == id,
    }
}

/// Checks that a server which refuses the question of the present protocol may speak an older
/// one.
fn check_refusal(error: &ErrorData) -> Result<(), ConnectError> {
    match error.code {
        ErrorCode::UNSUPPORTED_PROTOCOL_VERSION => check_versions(&supported_by(error)),
        ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY | ErrorCode::HEADER_MISMATCH => Err(ConnectError::refused(
            &ClientInitializeError::JsonRpcError(error.clone()),
        )),
        _ => Ok(()),
    }
}

/// Returns the versions that a refusal names; none if it is no refusal of a version.
fn supported_by(error: &ErrorData) -> Vec<ProtocolVersion> {
    let is_of_version = error.code == ErrorCode::UNSUPPORTED_PROTOCOL_VERSION;
    let data = error.data.as_ref().filter(|_| is_of_version);
    let supported = data.and_then(|data| data.get("supported"));
    let versions = supported.and_then(|versions| serde_json::from_value(versions.clone()).ok());
    versions.unwrap_or_default()
}

/// Checks that a server which does not speak the present protocol speaks an older one.
fn check_versions(versions: &[ProtocolVersion]) -> Result<(), ConnectError> {
    let is_older =
        |version: &ProtocolVersion| version.has_initialize() && ProtocolVersion::KNOWN_VERSIONS.contains(version);
    if versions.iter().any(is_older) {
        Ok(())
    } else {
        Err(ConnectError::unknown_version(versions))
    }
}

impl ConnectError {
    /// Returns the error of a server that speaks no known version of the protocol.
    fn unknown_version<'a>(versions: impl IntoIterator<Item = &'a ProtocolVersion>) -> Self {
        const MAX_VERSIONS: usize = 8;
        const MAX_VERSION: usize = 40;
        let shown = |version: &ProtocolVersion| {
            let text = version.as_str();
            format!("`{}`", one_line(&text[..text.floor_char_boundary(MAX_VERSION)]))
        };
        let spoken: Vec<_> = versions.into_iter().take(MAX_VERSIONS).map(shown).collect();
        let known: Vec<_> = ProtocolVersion::KNOWN_VERSIONS.iter().map(shown).collect();
        Self::UnknownVersion {
            spoken: if spoken.is_empty() {
                "none that it names".to_owned()
            } else {
                spoken.join(", ")
            },
            known: known.join(", "),
        }
    }
}
