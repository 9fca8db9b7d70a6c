//! The end of a task as one message of the conversation that asked for it, and the statuses that
//! the user is told before.

use std::time::Duration;

use rockbot_core::content::{Content, ContentPart, MediaPart, Provenance};
use rockbot_core::context::{Origin, Priority};
use rockbot_core::store::{StorePath, WorkingNote};
use rockbot_core::support::{loggable, one_line};
use rockbot_core::trust::Label;
use rockbot_core::turn::{Announcement, BusyPolicy, JournalError, TurnError, TurnParent, TurnRequest};
use rockbot_core::{Digest, MessageId};

use super::ends::EndWords;
use super::files;
use super::host::Caller;
use super::tasks::{PendingTask, TaskEnd};

/// Name of the program that sends the ends of tasks, which is part of the identity of their
/// messages.
const SOURCE: &str = "rockbot.a2a";

/// Maximum length of an answer that stands in the message whole, in bytes.
const MAX_INLINE: usize = 8_000;

/// Length of the beginning of a longer answer, in bytes. The whole answer is in working memory.
const PREVIEW: usize = 2_000;

/// Length of an answer in the message if there is no working memory.
const MAX_WITHOUT_MEMORY: usize = 32_000;

/// Time for which a long answer is kept.
const TTL: Duration = Duration::from_secs(60 * 60);

/// Maximum number of statuses of a task that the user is told.
const MAX_STATUSES: u32 = 20;

/// Maximum length of a status, in characters.
const MAX_STATUS: usize = 500;

/// A failure to tell something, which is tried again.
#[derive(Debug)]
pub(super) struct NotTold(pub(super) String);

impl Caller {
    /// Ends a task: by a message of its conversation, or for the call that waits for it. The first
    /// end counts; the message has the id of the task, so an end that comes once more, also after a
    /// crash, is the same message.
    pub(super) async fn end(&self, task: &PendingTask, end: TaskEnd) -> Result<(), NotTold> {
        if task.is_awaited {
            self.tasks.lock().await.end(&task.id, end);
            self.changed.send_replace(());
            return Ok(());
        }
        self.tell_files(task, &end.files).await?;
        match self.turns.start(message(task, &end)).await {
            Ok(_) => {}
            Err(error) if is_passing(&error) => return Err(NotTold(error.to_string())),
            // Another end of the task was told, or this end can never be told.
            Err(error) => {
                tracing::warn!(task = task.id, error = %loggable(&error.to_string()), "the end of a task of another agent is not told");
            }
        }
        self.tasks.lock().await.remove(&task.id);
        self.changed.send_replace(());
        Ok(())
    }

    /// Gives the files of an answer to the user. The same files are given once.
    async fn tell_files(&self, task: &PendingTask, files: &Content) -> Result<(), NotTold> {
        if files.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = files.media().filter_map(|file| file.name.as_deref()).collect();
        let label = label_of(&task.agent);
        let words = ContentPart::text(format!("[{}] sends: {}", task.agent, names.join(", ")));
        let words = words.with_provenance(Provenance::labelled("agent", &label));
        let content = std::iter::once(words)
            .chain(files.parts().iter().cloned())
            .collect::<Content>();
        let announcement = Announcement::new(task.principal.clone(), task.session.clone(), content)
            .with_turn(task.turn.clone())
            .with_label(label);
        let told = self.turns.announce(&format!("{}-files", task.id), announcement).await;
        told.map_err(|error| NotTold(error.to_string()))
    }

    /// Returns the end of a task with the agent's words; long texts are kept in working memory.
    pub(super) async fn end_with(&self, task: &PendingTask, words: EndWords) -> TaskEnd {
        let EndWords {
            heading,
            text,
            closing,
            files,
        } = words;
        let given = if files.is_empty() || task.is_awaited {
            ""
        } else {
            "\n\nThe user has its files."
        };
        let (text, note) = if text.len() > MAX_INLINE {
            self.shortened(task, text).await
        } else {
            (text, String::new())
        };
        TaskEnd {
            heading,
            text,
            closing: format!("{note}{given}{closing}"),
            files: files_of(&task.agent, files),
        }
    }

    /// Keeps a long text in working memory. Returns its beginning, and a note that names the place
    /// of the rest.
    async fn shortened(&self, task: &PendingTask, text: String) -> (String, String) {
        let cut = |max: usize| format!("{}…", &text[..text.floor_char_boundary(max)]);
        let key = StorePath::new(&format!("{}/a2a/{}/{}/result", task.namespace, task.agent, task.id));
        let (Some(memory), Ok(key)) = (&self.memory, key) else {
            return (cut(MAX_WITHOUT_MEMORY), String::new());
        };
        let provenance = Provenance::labelled("agent", &label_of(&task.agent));
        let note = WorkingNote::new(key.clone(), text.clone(), provenance)
            .with_ttl(TTL)
            .with_category(StorePath::new("a2a-result").ok());
        match memory.put(&task.principal, vec![note]).await {
            Ok(()) => {
                let whole = format!(
                    "\n\nThe whole answer ({} bytes) is in working memory: `{key}`.",
                    text.len()
                );
                (cut(PREVIEW), whole)
            }
            Err(error) => {
                tracing::warn!(task = task.id, error = %loggable(&error.to_string()), "working memory does not take an answer; it is cut");
                (cut(MAX_WITHOUT_MEMORY), String::new())
            }
        }
    }

    /// Tells the user how far an agent is, without asking a model. The same message is told once.
    pub(super) async fn tell_status(&self, task: &PendingTask, message: &MessageId, text: &str) {
        // A call that waits reports nothing: its turn is no conversation.
        if task.is_awaited || self.tasks.lock().await.count_status(&task.id) >= MAX_STATUSES {
            return;
        }
        let text: String = one_line(text).chars().take(MAX_STATUS).collect();
        let words = ContentPart::text(format!("[{}] {text}", task.agent));
        let label = label_of(&task.agent);
        let content = Content::from(words.with_provenance(Provenance::labelled("agent", &label)));
        let announcement = Announcement::new(task.principal.clone(), task.session.clone(), content)
            .with_turn(task.turn.clone())
            .with_label(label);
        let id = format!("{}-{}", task.id, Digest::of([message.as_str()]).short());
        if let Err(error) = self.turns.announce(&id, announcement).await {
            tracing::warn!(task = task.id, error = %loggable(&error.to_string()), "a status of another agent is not told");
        }
    }
}

/// Returns the files of an answer as content with the agent's label.
fn files_of(agent: &str, files: Vec<MediaPart>) -> Content {
    let said = Provenance::labelled("agent", &label_of(agent));
    let part = |file: MediaPart| {
        let part = if file.is_image() {
            ContentPart::image(file)
        } else {
            ContentPart::file(file)
        };
        part.with_provenance(said.clone())
    };
    files.into_iter().map(part).collect()
}

/// Returns the label of an agent's words.
pub(super) fn label_of(agent: &str) -> Label {
    Label::untrusted(&format!("agent:{agent}"))
}

/// Returns the end of a task as content: the host's words have the host's label, the agent's
/// words have the agent's.
pub(super) fn content_of(agent: &str, end: &TaskEnd) -> Content {
    let host = |text: &str| ContentPart::text(text).with_provenance(Provenance::HOST);
    let said = Provenance::labelled("agent", &label_of(agent));
    let before = [host(&end.heading), ContentPart::text(&*end.text).with_provenance(said)];
    // Models take images and documents, and hear of other files.
    let shown = |part: &&ContentPart| part.as_media().is_some_and(files::is_shown);
    let files = end.files.parts().iter().filter(shown).cloned();
    let parts = before.into_iter().chain(files).chain([host(&end.closing)]);
    parts.filter(|part| part.as_text() != Some("")).collect()
}

fn message(task: &PendingTask, end: &TaskEnd) -> TurnRequest {
    let mut label = task.label.clone();
    label.join(&label_of(&task.agent));
    let id = MessageId::from(task.id.as_str());
    let mut request = TurnRequest::new(task.session.clone(), id, content_of(&task.agent, end))
        .with_principal(task.principal.clone())
        .with_source(SOURCE)
        .with_origin(Origin::Subagent)
        .with_priority(Priority::Subagent)
        .with_trust(task.trust)
        .with_label(label)
        .with_busy(BusyPolicy::Steer)
        .with_announced(true);
    // Deeper than the turn that asked: no chain of questions and answers is endless.
    request.parent = Some(TurnParent::new(task.turn.clone(), task.depth + 1));
    request
}

/// Returns `true` for an error after which the end is told again later.
fn is_passing(error: &TurnError) -> bool {
    !matches!(
        error,
        TurnError::Content(_) | TurnError::IdTooLong { .. } | TurnError::Journal(JournalError::Conflict { .. })
    )
}
