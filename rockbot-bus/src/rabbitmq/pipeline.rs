//! Publishing over one channel, with many messages in flight.
//!
//! The broker confirms the messages of a channel in batches, so one channel is faster than many.
//! The client hands a returned message to whichever confirm comes next, which may be the confirm
//! of another message. A task owns all confirms of the channel and finds the message that was
//! returned by its id and its route.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use lapin::options::BasicPublishOptions;
use lapin::types::ShortString;
use lapin::{BasicProperties, Channel, ChannelState, Confirmation, Connection, ErrorKind};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::channels::{self, Published};
use super::outgoing::Outgoing;

/// Maximum number of messages in flight on the channel; further messages wait.
const MAX_IN_FLIGHT: usize = 64;

/// The channel of a session for publishing. The first message opens it. After it failed, the next
/// message opens it again.
///
/// Messages are sent in the order in which their publishers were first polled. Each publisher waits
/// for its own message, so there are no more messages than publishers.
#[derive(Default)]
pub(super) struct Pipeline(Mutex<Option<mpsc::UnboundedSender<Request>>>);

/// A message to publish.
struct Request {
    message: Address,
    body: Bytes,
    properties: BasicProperties,
    reply: oneshot::Sender<lapin::Result<Published>>,
}

/// The properties that identify a returned message. Two messages with the same properties are the
/// same message.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Address {
    exchange: ShortString,
    key: ShortString,
    id: Option<ShortString>,
}

impl Pipeline {
    /// Publishes a message and waits for the broker's confirm.
    ///
    /// When the broker closes the channel, all messages in flight end in the same error, whichever
    /// caused it.
    pub(super) async fn publish(
        &self,
        connection: &Arc<Connection>,
        lost: &CancellationToken,
        message: &Outgoing<'_>,
    ) -> lapin::Result<Published> {
        let (reply, published) = oneshot::channel();
        let route = message.route;
        let properties = message.next_properties();
        let request = Request {
            message: Address {
                exchange: route.exchange.into(),
                key: route.key.into(),
                id: properties.message_id().clone(),
            },
            body: message.body.clone(),
            properties,
            reply,
        };
        self.send(request, connection, lost);
        // The task ends with its channel, whatever waits for it.
        let ended = || ErrorKind::InvalidChannelState(ChannelState::Closed, "publishing").into();
        published.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Hands a message to the task of the channel, and starts the task if there is none.
    fn send(&self, request: Request, connection: &Arc<Connection>, lost: &CancellationToken) {
        let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let unsent = match &*requests {
            Some(open) => open.send(request).err().map(|unsent| unsent.0),
            None => Some(request),
        };
        let Some(request) = unsent else { return };
        let (sender, receiver) = mpsc::unbounded_channel();
        let (connection, lost) = (connection.clone(), lost.clone());
        tokio::spawn(async move { lost.run_until_cancelled(publishing(connection, receiver)).await });
        // The task has just begun, so it takes the message.
        let _ = requests.insert(sender).send(request);
    }
}

/// Opens a channel and publishes messages over it until it fails.
async fn publishing(connection: Arc<Connection>, mut requests: mpsc::UnboundedReceiver<Request>) {
    let opened = channels::open(&connection).await;
    drop(connection);
    match opened {
        Ok(channel) => InFlight::new(channel).run(requests).await,
        Err(error) => {
            requests.close();
            while let Some(request) = requests.recv().await {
                let _ = request.reply.send(Err(error.clone()));
            }
        }
    }
}

/// The messages of a channel that were not answered yet.
struct InFlight {
    channel: Arc<Channel>,
    messages: Vec<SentMessage>,
    /// Messages that the broker returned, each with the confirm of some message.
    returned: Vec<Address>,
}

struct SentMessage {
    message: Address,
    confirm: Pin<Box<dyn Future<Output = lapin::Result<Confirmation>> + Send>>,
    /// The broker's confirm, once it is there.
    published: Option<Published>,
    reply: oneshot::Sender<lapin::Result<Published>>,
}

impl InFlight {
    fn new(channel: Channel) -> Self {
        Self {
            channel: Arc::new(channel),
            messages: Vec::with_capacity(MAX_IN_FLIGHT),
            returned: Vec::new(),
        }
    }

    /// Publishes messages until the channel fails, or the session is gone and all are answered.
    async fn run(mut self, mut requests: mpsc::UnboundedReceiver<Request>) {
        let mut is_open = true;
        while is_open || !self.messages.is_empty() {
            let has_room = is_open && self.messages.len() < MAX_IN_FLIGHT;
            let failed = tokio::select! {
                biased;
                // All that wait are taken before they are sent together.
                request = requests.recv(), if has_room => {
                    match request {
                        // The publisher of a message that was not sent may have given up.
                        Some(request) if request.reply.is_closed() => {}
                        Some(request) => self.begin(request),
                        None => is_open = false,
                    }
                    continue;
                }
                failed = poll_fn(|context| self.poll_confirms(context)) => failed,
            };
            let Err(error) = failed else { continue };
            for sent in self.messages {
                let _ = sent.reply.send(Err(error.clone()));
            }
            return;
        }
    }

    fn begin(&mut self, request: Request) {
        let channel = Arc::clone(&self.channel);
        let message = request.message.clone();
        let body = request.body;
        let properties = request.properties;
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let confirm = async move {
            let sent = channel.basic_publish(message.exchange, message.key, options, &body, properties);
            sent.await?.await
        };
        self.messages.push(SentMessage {
            message: request.message,
            confirm: Box::pin(confirm),
            published: None,
            reply: request.reply,
        });
    }

    /// Sends messages, and answers the confirmed messages. Ready if some were answered or the channel
    /// failed.
    fn poll_confirms(&mut self, context: &mut Context<'_>) -> Poll<lapin::Result<()>> {
        // A returned message comes with its own confirm or with an earlier confirm. A confirm that
        // precedes a confirm seen in one pass is seen in the next pass at the latest.
        while self.poll_once(context)? {}
        if self.answer() {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    /// Looks at each message that is not confirmed. Returns `true` if a message was confirmed now.
    fn poll_once(&mut self, context: &mut Context<'_>) -> lapin::Result<bool> {
        let mut is_any = false;
        for sent in &mut self.messages {
            if sent.published.is_some() {
                continue;
            }
            let Poll::Ready(confirmation) = sent.confirm.as_mut().poll(context)? else {
                continue;
            };
            let (published, returned) = match confirmation {
                Confirmation::Ack(returned) => (Published::Routed, returned),
                Confirmation::Nack(returned) => (Published::Refused, returned),
                Confirmation::NotRequested => (Published::Routed, None),
            };
            sent.published = Some(published);
            self.returned.extend(returned.map(|returned| Address {
                exchange: returned.delivery.exchange,
                key: returned.delivery.routing_key,
                id: returned.delivery.properties.message_id().clone(),
            }));
            is_any = true;
        }
        Ok(is_any)
    }

    /// Answers the confirmed messages. While a returned message is not confirmed, the confirm of
    /// another message may still hide a return, so all wait.
    fn answer(&mut self) -> bool {
        let is_unconfirmed = |sent: &SentMessage| sent.published.is_none() && self.returned.contains(&sent.message);
        if self.messages.iter().any(is_unconfirmed) {
            return false;
        }
        let before = self.messages.len();
        let returned = std::mem::take(&mut self.returned);
        for sent in self.messages.extract_if(.., |sent| sent.published.is_some()) {
            let published = if returned.contains(&sent.message) {
                Some(Published::Unroutable)
            } else {
                sent.published
            };
            let _ = published.map(|published| sent.reply.send(Ok(published)));
        }
        self.messages.len() < before
    }
}
