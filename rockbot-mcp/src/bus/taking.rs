//! The task that takes the servers of bridges in as servers of an agent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rockbot_core::context::Trust;
use rockbot_core::messaging::{
    Bus, Delivery, Disposition, Message, MessageEnvelope, MessagePublisherExt as _, MessageSubscriberExt as _,
    RequestClient, SubscribeOptions, Subscription,
};
use rockbot_core::support::{loggable, one_line};
use rockbot_core::{AgentIdentity, BoxError, MessageId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::directory::{Change, Directory, OwnedServer};
use super::fetches::{Details, Fetches, fetch};
use super::settings::ProxyOptions;
use super::wire::{BridgeLeaving, CallCancelled, META_PATTERN, RefreshRequest, invoke_topic, meta_topic};
use crate::bridge_link::BridgeLink;
use crate::index_event::{McpBridgeLease, McpServersIndexed};
use crate::runtime::Runtime;
use crate::server::{Endpoint, McpServer};
use crate::service::{Link, Origin, Service};
use crate::tool_call::MAX_WAIT;

/// Maximum length of the definitions of all servers of one bridge, in bytes.
const MAX_TEXT: usize = 16 * 1024 * 1024;

/// Maximum length of the name of a bridge, and of the id of its process, in bytes.
const MAX_NAME: usize = 128;

/// Shortest and longest time between two requests for the index of all bridges.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// Maximum time of a call, over all servers.
pub(super) const MAX_CALL: Duration = Duration::from_secs(5 * 60);

/// The time limit of a call whose bridge states none, such as a bridge of the original RockBot.
const CALL_LIMIT: Duration = Duration::from_secs(60);

/// The task of the subsystem.
pub(super) struct Taking {
    bus: Arc<dyn Bus>,
    identity: AgentIdentity,
    runtime: Arc<Runtime>,
    client: Arc<RequestClient>,
    abandoned: mpsc::Sender<MessageId>,
    options: ProxyOptions,
    directory: Directory,
    fetches: Fetches,
    asking: JoinSet<(String, OwnedServer, Result<Details, String>)>,
    /// The servers whose tools are there.
    taken: BTreeMap<String, TakenServer>,
    request: IndexRequest,
}

/// A server whose tools are there.
struct TakenServer {
    bridge: String,
    fingerprint: String,
    length: usize,
}

/// The next request for the index of all bridges, with exponential back-off.
struct IndexRequest {
    due: Option<Instant>,
    earliest: Instant,
    pause: Duration,
}

impl Taking {
    pub(super) fn new(
        bus: Arc<dyn Bus>,
        identity: AgentIdentity,
        runtime: Arc<Runtime>,
        client: Arc<RequestClient>,
        abandoned: mpsc::Sender<MessageId>,
        options: ProxyOptions,
    ) -> Self {
        let now = Instant::now();
        Self {
            bus,
            identity,
            runtime,
            client,
            abandoned,
            options,
            directory: Directory::default(),
            fetches: Fetches::default(),
            asking: JoinSet::new(),
            taken: BTreeMap::new(),
            request: IndexRequest {
                due: Some(now),
                earliest: now,
                pause: MIN_PAUSE,
            },
        }
    }

    /// Takes and drops servers until `stop` is cancelled.
    pub(super) async fn run(
        mut self,
        _announcements: Subscription,
        mut messages: mpsc::Receiver<Arc<MessageEnvelope>>,
        mut given_up: mpsc::Receiver<MessageId>,
        stop: CancellationToken,
    ) {
        loop {
            let expiry = self.directory.next_expiry();
            let question = self.fetches.due();
            tokio::select! {
                () = stop.cancelled() => return,
                Some(message) = messages.recv() => {
                    let change = self.take(&message);
                    self.apply(&change);
                }
                Some(message_id) = given_up.recv() => {
                    stop.run_until_cancelled(self.publish(&CallCancelled { message_id })).await;
                }
                () = reached(self.request.due) => {
                    stop.run_until_cancelled(self.publish(&RefreshRequest::default())).await;
                    self.request.asked(Instant::now());
                }
                Some(ended) = self.asking.join_next() => {
                    if let Ok((key, server, details)) = ended {
                        self.fetched(&key, &server, details).await;
                    }
                }
                () = reached(expiry) => {
                    while let Some(change) = self.directory.expire(Instant::now()) {
                        self.apply(&change);
                    }
                }
                () = reached(question) => {}
            }
            self.ask();
        }
    }

    /// Takes a message of a bridge, and returns its consequence.
    fn take(&mut self, message: &MessageEnvelope) -> Change {
        let now = Instant::now();
        match &*message.message_type {
            McpServersIndexed::TYPE => match read::<McpServersIndexed>(message) {
                Some(McpServersIndexed {
                    servers,
                    bridge: Some(lease),
                    ..
                }) if self.takes(&lease, message) => self.directory.announced(&lease, &servers, now),
                _ => Change::None,
            },
            McpBridgeLease::TYPE => match read::<McpBridgeLease>(message) {
                Some(lease) if self.takes(&lease, message) => self.directory.heartbeat(&lease, now),
                _ => Change::None,
            },
            BridgeLeaving::TYPE => match read::<BridgeLeaving>(message) {
                Some(leaving) if *message.source == *leaving.name => self.directory.leaving(&leaving),
                _ => Change::None,
            },
            _ => Change::None,
        }
    }

    /// Returns `true` if the servers of a bridge are wanted: the bridge speaks for itself, has a name
    /// that can be shown, and is not this host.
    fn takes(&self, lease: &McpBridgeLease, message: &MessageEnvelope) -> bool {
        let is_own = *lease.instance == **self.identity.instance_id();
        let are_names = is_name(&lease.name) && is_name(&lease.instance);
        are_names && *message.source == *lease.name && self.options.takes(&lease.name) && !is_own
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::None => {}
            Change::Ask => self.request.want(Instant::now()),
            Change::Servers => self.compare(),
        }
    }

    /// Removes the servers that no bridge has any more, and notes the servers whose tools are to be
    /// asked for.
    fn compare(&mut self) {
        let now = Instant::now();
        let owned = self.owned();
        let is_of = |key: &str, bridge: &str| owned.get(key).is_some_and(|server| server.bridge == bridge);
        let gone = self.taken.extract_if(.., |key, taken| !is_of(key, &taken.bridge));
        for (key, taken) in gone.collect::<Vec<_>>() {
            let found = self.runtime.bridge.find(&key);
            if found.is_some_and(|service| service.origin == Origin::Bridge) {
                tracing::info!(server = key, bridge = %loggable(&taken.bridge), "an MCP server of a bridge is gone");
                self.runtime.bridge.remove(&key);
            }
        }
        let is_stale = |key: &str, server: &OwnedServer| {
            let taken = self.taken.get(key);
            taken.is_none_or(|taken| taken.fingerprint != server.fingerprint)
        };
        for (key, server) in &owned {
            if is_stale(key, server) {
                self.fetches.want(key, server, now);
            }
        }
        self.fetches
            .retain(|key| owned.get(key).is_some_and(|server| is_stale(key, server)));
    }

    /// Asks for the tools of the servers that are due.
    fn ask(&mut self) {
        while let Some(key) = self.fetches.begin(Instant::now()) {
            let Some(server) = self.owned().remove(&key) else {
                self.fetches.ended(&key, Instant::now());
                self.fetches.retain(|other| other != key);
                continue;
            };
            let client = self.client.clone();
            self.asking.spawn(async move {
                let details = fetch(&client, &server).await;
                (key, server, details)
            });
        }
    }

    /// Takes the tools of a server, if it still belongs to the bridge that was asked.
    async fn fetched(&mut self, key: &str, server: &OwnedServer, details: Result<Details, String>) {
        self.fetches.ended(key, Instant::now());
        let is_wanted = self.owned().get(key).is_some_and(|now| now.bridge == server.bridge);
        let taken = match details {
            Ok(details) if is_wanted => self.admit(key, server, details).await,
            Ok(_) => Ok(()),
            Err(reason) => Err(reason),
        };
        if let Err(reason) = taken {
            let (server, bridge) = (&server.name, loggable(&server.bridge));
            let reason = loggable(&reason);
            tracing::warn!(server, %bridge, %reason, "the tools of a bridge's MCP server are not taken; trying again");
        }
        self.compare();
    }

    async fn admit(&mut self, key: &str, server: &OwnedServer, details: Details) -> Result<(), String> {
        let others = self
            .taken
            .iter()
            .filter(|(other, taken)| *other != key && taken.bridge == server.bridge);
        let length = details.text_len();
        if others.map(|(_, taken)| taken.length).sum::<usize>() + length > MAX_TEXT {
            return Err("the definitions of all servers of the bridge are too long".to_owned());
        }
        let time_limit = details.time_limit.unwrap_or(CALL_LIMIT).min(MAX_CALL);
        let description = McpServer::of(server.name.clone(), Endpoint::Bridge(server.bridge.clone()))
            .trusted(self.options.is_vouched(&server.bridge, key))
            .time_limit(time_limit);
        let compared = self.runtime.bridge.pins.compare(&description, details.tools).await;
        let service = self.service(key, description)?;
        let link = BridgeLink::new(
            self.client.clone(),
            self.abandoned.clone(),
            &server.bridge,
            &server.name,
            invoke_topic(&server.bridge),
            // Longer than the bridge waits for its server, so that its own words arrive.
            time_limit.saturating_add(MAX_WAIT),
        );
        service.state.send_modify(|state| {
            state.tools = compared.admitted.into();
            state.held = compared.held.into();
            state.instructions = details.instructions;
            state.link = Link::Bridged(Arc::new(link));
        });
        // Some tools may have been accepted meanwhile.
        self.runtime.bridge.release(&service);
        let taken = TakenServer {
            bridge: server.bridge.clone(),
            fingerprint: details.fingerprint,
            length,
        };
        self.taken.insert(key.to_owned(), taken);
        self.request.answered();
        Ok(())
    }

    /// Returns the service of a server, added if there is none of this description. The agent's own
    /// of this name stays.
    fn service(&self, key: &str, description: McpServer) -> Result<Arc<Service>, String> {
        match self.runtime.bridge.find(key) {
            Some(service) if service.origin != Origin::Bridge => {
                return Err("the agent itself is connected to a server of this name".to_owned());
            }
            Some(service) if service.server.digest() == description.digest() => return Ok(service),
            Some(_) => drop(self.runtime.bridge.remove(key)),
            None => {}
        }
        let added = self.runtime.add_bridged(description);
        added.ok_or_else(|| "there are too many servers".to_owned())
    }

    /// Returns the servers of bridges that have a place among the servers of the agent.
    fn owned(&self) -> BTreeMap<String, OwnedServer> {
        let bridge = &self.runtime.bridge;
        let is_own = |key: &str| bridge.find(key).is_some_and(|service| service.origin != Origin::Bridge);
        self.directory.servers(self.runtime.bridged_places(), is_own)
    }

    async fn publish<M: Message + Serialize + Sync>(&self, message: &M) {
        if let Err(error) = self.bus.send(self.identity.name(), message).await {
            tracing::warn!(%error, message_type = M::TYPE, "bridges to MCP servers could not be reached; trying again");
        }
    }
}

impl IndexRequest {
    /// Notes that the index is wanted. Wishes before the next request share it.
    fn want(&mut self, now: Instant) {
        self.due.get_or_insert(now.max(self.earliest));
    }

    fn asked(&mut self, now: Instant) {
        self.due = None;
        self.earliest = now + self.pause;
        self.pause = (self.pause * 2).min(MAX_PAUSE);
    }

    /// Notes that a request has brought tools, which ends the back-off.
    fn answered(&mut self) {
        self.pause = MIN_PAUSE;
    }
}

/// Returns `true` for a short text on one line with nothing hidden in it.
fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME && *one_line(text) == *text
}

/// Waits for a moment; for ever if there is none.
async fn reached(moment: Option<Instant>) {
    match moment {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Subscribes to the announcements. Each agent gets all of them, in a subscription of its own
/// that ends with it.
pub(super) async fn listen(
    bus: &dyn Bus,
    identity: &AgentIdentity,
    sender: mpsc::Sender<Arc<MessageEnvelope>>,
) -> Result<Subscription, BoxError> {
    let handler = move |delivery: Delivery| {
        let sender = sender.clone();
        async move {
            if delivery.trust == Trust::Untrusted {
                return Disposition::dead_letter("MCP servers are not taken from an unauthenticated channel");
            }
            // Brokers grant rights to publish by topic: under a topic of its own, no program speaks for
            // another one.
            if *delivery.topic == *meta_topic(&delivery.envelope.source) {
                // After the end of the subsystem it is of no interest.
                let _ = sender.send(delivery.envelope).await;
            }
            Disposition::Ack
        }
    };
    let name = format!(
        "{}.{}",
        identity.subscription_name(META_PATTERN),
        identity.instance_id()
    );
    let options = SubscribeOptions::new().ephemeral();
    Ok(bus.on_with(META_PATTERN, &name, options, handler).await?)
}

/// Reads a message of another program; `None` if its body does not fit its type.
fn read<M: Message + DeserializeOwned>(message: &MessageEnvelope) -> Option<M> {
    let read = message.payload();
    read.inspect_err(
        |error| tracing::warn!(%error, source = %loggable(&message.source), "an announcement is unreadable"),
    )
    .ok()
}
