//! Cassettes: recordings of model servers, which tests replay without a server.

mod drift;
mod exchange;

use std::fmt;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatDelta, ChatError, ChatErrorKind, ChatRequest, ChatResponse, ModelInfo, ModelTier,
};
use rockbot_core::support::redact;
use serde_json::Value;

use drift::difference;
use exchange::{Exchange, Head, request_json};

/// A change of the texts of a request before it is kept or compared.
type Rewrite = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// A chat client that records the answers of a model server, or replays them.
///
/// Record once with the real server, keep the file beside the test, and replay it from then on: the
/// test needs no server and costs nothing. A request that is not in the file is refused, with the
/// place where it differs from the request that was expected, so a recording never hides that
/// prompts have changed.
///
/// Requests are kept as the model reads them, without headers, and with whatever looks like a key
/// replaced by `[redacted]`. Answers of a model are kept as they are. Texts that
/// differ in each run, such as the time of day, are made equal by [`Cassette::with_rewrite`], or by a
/// clock of the test.
///
/// ```
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_eval::Cassette;
/// use rockbot_host::AgentHost;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rockbot_core::BoxError> {
/// # let folder = tempfile::tempdir()?;
/// # let file = folder.path().join("greeting.jsonl");
/// # let server = ScriptedModel::new().says("Good morning.");
/// let recorded = AgentHost::in_memory().chat(Cassette::record(&file, server)?).build()?;
/// recorded.agent().ask("session", "Hello").await?;
///
/// let replayed = AgentHost::in_memory().chat(Cassette::replay(&file)?).build()?;
/// assert_eq!(replayed.agent().ask("session", "Hello").await?.text, "Good morning.");
/// let refused = replayed.agent().ask("session", "Goodbye").await.unwrap_err();
/// assert!(refused.to_string().contains("has no further answer"));
/// # Ok(())
/// # }
/// ```
pub struct Cassette {
    path: PathBuf,
    source: Source,
    rewrite: Option<Rewrite>,
}

enum Source {
    /// The server whose answers are recorded, and the file.
    Server(Arc<dyn ChatClient>, Mutex<File>),
    /// The answers that are replayed, each until it was given.
    Recording(Head, Mutex<Vec<Option<Exchange>>>),
}

impl fmt::Debug for Cassette {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cassette")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// An error of the file of a cassette.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CassetteError {
    /// The file cannot be written.
    #[error("{} cannot be written", path.display())]
    Unwritable {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file cannot be read.
    #[error("{} cannot be read: record it with `Cassette::record`", path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A line of the file is no recording.
    #[error("{}, line {line}: no recording: record it again", path.display())]
    Line {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: usize,
        /// The cause.
        source: serde_json::Error,
    },
}

impl CassetteError {
    /// Returns `false`: the file stays as it is.
    pub fn retry_helps(&self) -> bool {
        false
    }
}

impl Cassette {
    /// Creates a cassette that records the answers of `server` in a new file; a file of this name is
    /// replaced. Errors of the server are passed on, and not recorded.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn record(path: impl Into<PathBuf>, server: impl ChatClient) -> Result<Self, CassetteError> {
        let path = path.into();
        let head = Head::of(&server);
        let created = File::create(&path).and_then(|mut file| {
            writeln!(file, "{}", serde_json::to_string(&head)?)?;
            Ok(file)
        });
        let file = created.map_err(|source| CassetteError::Unwritable {
            path: path.clone(),
            source,
        })?;
        Ok(Self {
            path,
            source: Source::Server(Arc::new(server), Mutex::new(file)),
            rewrite: None,
        })
    }

    /// Creates a cassette that replays the answers in a file. Equal requests get their answers in the
    /// order of the recording.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or is no recording.
    pub fn replay(path: impl Into<PathBuf>) -> Result<Self, CassetteError> {
        let path = path.into();
        let text = fs::read_to_string(&path).map_err(|source| CassetteError::Unreadable {
            path: path.clone(),
            source,
        })?;
        let mut lines = text.lines().enumerate();
        let (_, first) = lines.next().unwrap_or_default();
        let head = parsed(&path, 0, first)?;
        let exchanges: Result<Vec<Exchange>, _> = lines.map(|(number, line)| parsed(&path, number, line)).collect();
        let exchanges = exchanges?.into_iter().map(Some).collect();
        Ok(Self {
            path,
            source: Source::Recording(head, Mutex::new(exchanges)),
            rewrite: None,
        })
    }

    /// Sets a change of each text of a request before it is kept or compared, for texts that differ in
    /// each run. Record and replay with the same change. Default: none.
    #[must_use]
    pub fn with_rewrite(mut self, rewrite: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.rewrite = Some(Arc::new(rewrite));
        self
    }

    /// Returns the number of recorded answers that were not given yet; 0 for a cassette that records.
    pub fn unused(&self) -> usize {
        match &self.source {
            Source::Server(..) => 0,
            Source::Recording(_, exchanges) => lock(exchanges).iter().flatten().count(),
        }
    }

    /// Returns the request as it is kept and compared.
    fn kept(&self, request: &ChatRequest) -> Result<Value, ChatError> {
        let mut json = request_json(request).map_err(|error| {
            ChatError::new(ChatErrorKind::InvalidRequest, "the request cannot be written as JSON").with_source(error)
        })?;
        self.clean(&mut json);
        Ok(json)
    }

    fn clean(&self, json: &mut Value) {
        match json {
            Value::String(text) => {
                let clean = redact(text);
                *text = self
                    .rewrite
                    .as_ref()
                    .map_or_else(|| clean.clone(), |rewrite| rewrite(&clean));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.clean(member)),
            _ => {}
        }
    }

    fn write(&self, file: &Mutex<File>, exchange: &Exchange) -> Result<(), ChatError> {
        let line = serde_json::to_string(exchange).map_err(std::io::Error::from);
        let written = line.and_then(|line| writeln!(lock(file), "{line}"));
        written.map_err(|source| {
            let message = format!("the recording {} cannot be written", self.path.display());
            ChatError::new(ChatErrorKind::InvalidRequest, message).with_source(source)
        })
    }

    /// Takes the answer to a request out of the recording; the error says how the request differs from
    /// the first request that was not answered yet.
    fn take(&self, exchanges: &Mutex<Vec<Option<Exchange>>>, request: &Value) -> Result<ChatResponse, ChatError> {
        let mut exchanges = lock(exchanges);
        let answers =
            |exchange: &Option<Exchange>| exchange.as_ref().is_some_and(|exchange| exchange.request == *request);
        if let Some(at) = exchanges.iter().position(answers)
            && let Some(exchange) = exchanges[at].take()
        {
            return Ok(exchange.response);
        }
        let path = self.path.display();
        let message = match exchanges.iter().flatten().next() {
            None => format!("{path} has no further answer: the agent asks more often than when it was recorded"),
            Some(expected) => {
                let difference = difference(&expected.request, request);
                format!("the request is not in {path}: {difference}. Record it again if the change is meant")
            }
        };
        Err(ChatError::new(ChatErrorKind::InvalidRequest, message).with_retry_advice(false))
    }
}

#[async_trait]
impl ChatClient for Cassette {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let request = self.kept(&call.request)?;
        match &self.source {
            Source::Server(server, file) => {
                let response = server.chat(call).await?;
                let exchange = Exchange { request, response };
                self.write(file, &exchange)?;
                Ok(exchange.response)
            }
            Source::Recording(_, exchanges) => {
                let response = self.take(exchanges, &request)?;
                if let Some(deltas) = call.deltas.filter(|_| !response.text.is_empty()) {
                    deltas.send(ChatDelta::Text(&response.text));
                }
                Ok(response)
            }
        }
    }

    fn describe(&self, tier: ModelTier) -> ModelInfo {
        match &self.source {
            Source::Server(server, _) => server.describe(tier),
            Source::Recording(head, _) => head.describe(tier),
        }
    }
}

fn parsed<T: serde::de::DeserializeOwned>(path: &Path, number: usize, line: &str) -> Result<T, CassetteError> {
    serde_json::from_str(line).map_err(|source| CassetteError::Line {
        path: path.to_owned(),
        line: number + 1,
        source,
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
