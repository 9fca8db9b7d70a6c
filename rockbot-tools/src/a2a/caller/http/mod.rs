//! The way to agents with a URL, by the A2A protocol over HTTP.
//!
//! `remote_agent` is an agent as the operator names it, `card` its card as it is read, `peer` the
//! agent as it is spoken to, in each binding and version. `follow` hands a task over and follows it
//! to its end, by a stream (`events`) or by asking; `words` says what the agent answered.
//! `credentials` are what an agent is sent to let this host in: a key, or a token of an `account`.

mod account;
mod card;
mod credentials;
mod error;
mod events;
mod follow;
mod peer;
pub(super) mod remote_agent;
mod words;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::content::{MediaPart, MediaSource};
use rockbot_core::context::CancellationToken;
use rockbot_core::service::AgentCard;
use rockbot_core::support::loggable;
use rockbot_core::tool::ToolError;
use rockbot_core::{BoxError, Clock};
use serde_json::Value;
use tokio::time::sleep;
use tokio_util::task::TaskTracker;

use super::super::directory::Directory;
use super::tasks::PendingTask;
use super::transport::{Handover, Reports, Transport};
use crate::a2a_wire::{Message, Part, Role, SendConfiguration, SendMessage, SendMetadata};
use crate::egress::{EgressClient, EgressPolicy, EgressRequest, EgressResponse};
use account::Tokens;
use credentials::Credentials;
use error::PeerError;
use follow::Follower;
use peer::Peer;
use remote_agent::RemoteAgent;

/// Maximum length of an answer, in bytes.
const MAX_ANSWER: usize = 4 << 20;

/// Time for which a card counts. After it the card is read again before a call.
const CARD_AGE: Duration = Duration::from_secs(600);

/// Pause before a card that could not be read is read again.
const CARD_RETRY: Duration = Duration::from_secs(60);

/// Maximum number of agents whose cards are kept.
const MAX_PEERS: usize = 512;

/// Maximum number of agents that the operator names by their URLs.
const MAX_NAMED: usize = 256;

/// The parts that all calls share.
#[derive(Debug)]
pub(super) struct Http {
    client: EgressClient,
    /// The agents that the operator names.
    named: Vec<RemoteAgent>,
    clock: Arc<dyn Clock>,
    directory: Arc<Directory>,
    reports: Weak<dyn Reports>,
    /// The tokens of the agents that are called with an account, by their URLs.
    tokens: HashMap<String, Arc<Tokens>>,
    /// The agents whose cards were read, by their URLs.
    peers: Mutex<HashMap<String, Arc<Peer>>>,
    /// The tasks that are followed, each with the token that ends it.
    followed: Mutex<HashMap<String, CancellationToken>>,
    stop: CancellationToken,
    running: TaskTracker,
}

/// The way to agents with a URL.
#[derive(Debug)]
pub(super) struct HttpTransport(pub(super) Arc<Http>);

/// Creates the client, which reaches the agents that the operator names wherever they are.
///
/// # Errors
///
/// Returns an error for the first agent that cannot be called.
pub(super) fn client(policy: EgressPolicy, named: &[RemoteAgent]) -> Result<EgressClient, BoxError> {
    if named.len() > MAX_NAMED {
        return Err(format!(
            "`A2A.Agents` has {} agents, of at most {MAX_NAMED}: name fewer",
            named.len()
        )
        .into());
    }
    let allowed = named.iter().try_fold(policy, |policy, agent| -> Result<_, BoxError> {
        agent.check()?;
        let url = url::Url::parse(&agent.url).map_err(|_| {
            format!(
                "`{}` is no URL of an agent: write one such as https://agent.example.com",
                loggable(&agent.url)
            )
        })?;
        let issuer = agent.account.as_ref().and_then(account::Account::issuer_url);
        let policy = policy.allow_origin(&url)?;
        Ok(match issuer {
            Some(issuer) => policy.allow_origin(&issuer)?,
            None => policy,
        })
    });
    EgressClient::new(allowed?)
}

impl HttpTransport {
    pub(super) fn new(
        (client, named): (EgressClient, Vec<RemoteAgent>),
        clock: Arc<dyn Clock>,
        directory: Arc<Directory>,
        reports: Weak<dyn Reports>,
    ) -> Self {
        let account = |agent: &RemoteAgent| {
            let tokens = Tokens::new(agent.account.clone()?, clock.clone());
            Some((agent.url.clone(), Arc::new(tokens)))
        };
        Self(Arc::new(Http {
            client,
            tokens: named.iter().filter_map(account).collect(),
            named,
            clock,
            directory,
            reports,
            peers: Mutex::default(),
            followed: Mutex::default(),
            stop: CancellationToken::new(),
            running: TaskTracker::new(),
        }))
    }

    /// Reads the cards of the agents that the operator names, again and again, and follows the
    /// tasks that had not ended when the host stopped.
    pub(super) fn start(&self, open: Vec<PendingTask>) {
        for agent in self.0.named.clone() {
            let http = self.0.clone();
            self.0.running.spawn(async move {
                let stop = http.stop.clone();
                stop.run_until_cancelled(http.keep_card(agent.url)).await
            });
        }
        open.into_iter().for_each(|task| self.0.follow(task));
    }

    /// Ends all work. The next process follows the tasks.
    pub(super) async fn stop(&self) {
        self.0.stop.cancel();
        self.0.running.close();
        self.0.running.wait().await;
    }
}

#[async_trait]
impl Transport for HttpTransport {
    async fn prepare(&self, agent: &AgentCard) -> Result<(), ToolError> {
        let url = agent.url.as_deref().unwrap_or_default();
        let found = self.0.peer(url).await;
        found.map(drop).map_err(|error| {
            let name = &agent.agent_name;
            ToolError::execution_failed(format!("the agent `{name}` cannot be called: {}", error.words()))
        })
    }

    async fn hand_over(&self, handover: Handover<'_>) -> Result<(), ToolError> {
        let reports = self.0.reports.upgrade();
        let reports = reports.ok_or_else(|| ToolError::execution_failed("the host is stopping"))?;
        let message = serde_json::to_string(&message_of(&handover)).expect("a message has no maps");
        reports.keep_message(&handover.task.id, message.clone()).await?;
        let mut task = handover.task.clone();
        if let Some(remote) = &mut task.remote {
            remote.message = Some(message);
        }
        self.0.follow(task);
        Ok(())
    }

    async fn call_off(&self, task: &PendingTask) {
        // The follower tells the agent.
        if let Some(follower) = self.0.lock_followed().get(&task.id) {
            follower.cancel();
        }
    }
}

impl Http {
    /// Follows a task until its end, unless it is followed already.
    fn follow(self: &Arc<Self>, task: PendingTask) {
        let Some(reports) = self.reports.upgrade() else { return };
        let given_up = CancellationToken::new();
        {
            let mut followed = self.lock_followed();
            if followed.contains_key(&task.id) {
                return;
            }
            followed.insert(task.id.clone(), given_up.clone());
        }
        let http = self.clone();
        self.running.spawn(async move {
            let id = task.id.clone();
            let follower = Follower::new(http.clone(), reports.clone(), task, given_up);
            let followed = async {
                if let Some(words) = follower.run().await {
                    reports.end(&id, words).await;
                }
            };
            http.stop.run_until_cancelled(followed).await;
            http.lock_followed().remove(&id);
        });
    }

    async fn keep_card(&self, url: String) {
        loop {
            let pause = match self.read(&url).await {
                Ok(_) => CARD_AGE,
                Err(error) => {
                    tracing::warn!(url = %loggable(&url), error = %loggable(&error.words()), "the card of an agent is not read; it is tried again");
                    CARD_RETRY
                }
            };
            sleep(pause).await;
        }
    }

    /// Returns the agent at a URL, whose card is read anew if it is old.
    async fn peer(&self, url: &str) -> Result<Arc<Peer>, PeerError> {
        let known = self.lock_peers().get(url).cloned();
        let is_fresh = |peer: &Arc<Peer>| self.clock.now().since(peer.read_at) < CARD_AGE;
        if let Some(peer) = known.as_ref().filter(|peer| is_fresh(peer)) {
            return Ok(peer.clone());
        }
        match (self.read(url).await, known) {
            (Err(error), Some(known)) if error.is_passing() => Ok(known),
            (read, _) => read,
        }
    }

    /// Forgets the card of an agent, which may have moved.
    fn forget(&self, url: &str) {
        self.lock_peers().remove(url);
    }

    /// Reads the card of an agent.
    async fn read(&self, url: &str) -> Result<Arc<Peer>, PeerError> {
        let base = self.client.policy().parse(url)?;
        let mut request = EgressRequest::get(base.clone());
        request
            .url
            .set_path(&format!("{}{}", base.path().trim_end_matches('/'), card::PATH));
        let credentials = self.credentials(url);
        let response = self.fetch(&credentials, request).await?;
        if response.status == 404 {
            return Err(PeerError::Card("there is no agent card below its URL (HTTP 404)"));
        }
        if !response.status.is_success() {
            return Err(PeerError::Status(response.status.as_u16()));
        }
        if response.is_cut || response.body.len() > card::MAX_CARD {
            return Err(PeerError::Card("its card has more than 256 KiB"));
        }
        let read = card::read(&response.body, &base).map_err(PeerError::Card)?;
        let is_own = read.interface.url.origin() == base.origin();
        let peer = Arc::new(Peer {
            interface: read.interface,
            streams: read.streams,
            credentials: if is_own { credentials } else { Credentials::None },
            read_at: self.clock.now(),
        });
        self.directory.fetched(url, read.card);
        let mut peers = self.lock_peers();
        if peers.len() >= MAX_PEERS {
            peers.clear();
        }
        peers.insert(url.to_owned(), peer.clone());
        Ok(peer)
    }

    /// Fetches a card. A token that is refused is asked for anew once.
    async fn fetch(&self, credentials: &Credentials, mut request: EgressRequest) -> Result<EgressResponse, PeerError> {
        let sent = credentials.set(&mut request, &self.client, None).await?;
        let response = self.client.fetch(request.clone()).await?;
        if !credentials.is_refused(response.status) {
            return Ok(response);
        }
        credentials.set(&mut request, &self.client, sent.as_ref()).await?;
        Ok(self.client.fetch(request).await?)
    }

    /// Returns the credentials for the agent at a URL.
    fn credentials(&self, url: &str) -> Credentials {
        let named = self.named.iter().find(|agent| agent.url == url);
        let key = named.and_then(RemoteAgent::key_field).and_then(Result::ok);
        match (self.tokens.get(url), key) {
            (Some(tokens), _) => Credentials::Account(tokens.clone()),
            (None, Some((name, value))) => Credentials::Key(name, value),
            (None, None) => Credentials::None,
        }
    }

    fn lock_peers(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Peer>>> {
        // Each change of the map is one step, so a poisoned map is consistent.
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_followed(&self) -> std::sync::MutexGuard<'_, HashMap<String, CancellationToken>> {
        // Each change of the map is one step, so a poisoned map is consistent.
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the message of a task.
fn message_of(handover: &Handover<'_>) -> SendMessage {
    let (task_id, context_id) = handover.context.map_or((None, None), words::parts_of);
    let mut parts = vec![Part::text(handover.message)];
    if let Some(data) = handover.data {
        parts.push(Part {
            data: serde_json::value::to_raw_value(&Value::from(data.clone())).ok(),
            ..Part::default()
        });
    }
    parts.extend(handover.files.iter().map(part_of));
    SendMessage {
        message: Message {
            // The same task is the same message, so that agents deduplicate it.
            message_id: handover.task.id.clone(),
            context_id,
            task_id,
            role: Role::User,
            parts,
            metadata: None,
        },
        configuration: Some(SendConfiguration {
            history_length: Some(0),
            return_immediately: Some(true),
            ..SendConfiguration::default()
        }),
        metadata: Some(SendMetadata {
            skill: Some(handover.task.skill.clone()),
            chain: Some(handover.chain.join(",")),
        }),
    }
}

/// Returns a file as a part: its bytes, or its URL.
fn part_of(file: &MediaPart) -> Part {
    let content = match &file.source {
        MediaSource::Bytes(bytes) => Part::raw(bytes),
        MediaSource::Url(url) => Part {
            url: Some(url.clone()),
            ..Part::default()
        },
        _ => Part::text(file.to_string()),
    };
    Part {
        filename: file.name.clone(),
        media_type: Some(file.media_type.clone()),
        ..content
    }
}
