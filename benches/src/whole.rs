//! A whole host that has been in use for a while: a profile, 1 000 memories and 100 skills in
//! files, and conversations that continue.

use std::io;
use std::path::Path;

use rockbot_core::chat::Role;
use rockbot_core::store::{ConversationMemory, ConversationTurn};
use rockbot_core::{BoxError, Clock as _, Principal, SessionId, SystemClock};
use rockbot_host::AgentHostBuilder;
use rockbot_host::profile::{AgentProfileOptions, DefaultSystemPromptBuilder};
use rockbot_memory::{FeedbackSignals, Memory};
use rockbot_store::file::FileConversationMemory;
use serde_json::json;

use crate::instructions;
use crate::talk::{Question, Talk};

/// Number of questions and answers at the beginning of each conversation: the host searches by
/// the message and the three before it.
pub const ANSWERS: usize = 3;

const MEMORIES: usize = 1_000;

/// Verbs and objects that skills are made of.
const DEEDS: [&str; 10] = [
    "book", "cancel", "compare", "describe", "find", "order", "plan", "repair", "report", "sell",
];
const THINGS: [&str; 10] = [
    "a bicycle",
    "a concert",
    "a dinner",
    "a flight",
    "a garden",
    "a hotel",
    "a lesson",
    "a meeting",
    "a rental car",
    "a train",
];

/// Adds the parts of the host whose files [`furnish`] writes below `data`.
pub fn add(builder: AgentHostBuilder, data: &Path) -> AgentHostBuilder {
    builder
        .profile(AgentProfileOptions::new(data.join("agent")), DefaultSystemPromptBuilder)
        .add(Memory::default())
        .add(FeedbackSignals::new())
}

/// Writes the files of the host below `data`, with the beginnings of its `sessions`.
///
/// # Errors
///
/// Returns an error if a file cannot be written.
pub async fn furnish(data: &Path, sessions: impl Iterator<Item = String>) -> Result<(), BoxError> {
    let write = |name: String, text: String| {
        let path = data.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(data))?;
        std::fs::write(path, text)
    };
    let prompt = instructions();
    let (soul, directives) = prompt.split_at(prompt.len() / 2);
    write("agent/soul.md".to_owned(), soul.to_owned())?;
    write("agent/directives.md".to_owned(), directives.to_owned())?;
    let talk = Talk::load();
    remember(&data.join("memory"), &talk, MEMORIES)?;
    for (deed, thing) in DEEDS.iter().flat_map(|deed| THINGS.map(|thing| (deed, thing))) {
        let name = format!("{deed}-{}", thing.replace(' ', "-"));
        let summary = format!("How to {deed} {thing}: what to ask before, and what to look at afterwards.");
        let content = format!(
            "# {deed} {thing}\n\n{}",
            "1. Ask what is not clear, and write down the answer.\n".repeat(12)
        );
        write(
            format!("skills/{name}.json"),
            json!({ "summary": summary, "content": content }).to_string(),
        )?;
    }
    begin(
        &FileConversationMemory::open(data.join("conversations"))?,
        &talk.texts,
        sessions,
    )
    .await
}

/// Writes `total` memories into the folder of a long-term memory.
///
/// # Errors
///
/// Returns an error if a file cannot be written.
pub fn remember(folder: &Path, talk: &Talk, total: usize) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (number, text) in talk.texts.iter().cycle().take(total).enumerate() {
        let file = folder.join(format!("m{number}.json"));
        std::fs::write(file, json!({ "content": text }).to_string())?;
    }
    Ok(())
}

/// Begins `sessions` with questions and answers.
///
/// # Errors
///
/// Returns an error if a file cannot be written.
pub async fn begin(
    memory: &FileConversationMemory,
    texts: &[String],
    sessions: impl Iterator<Item = String>,
) -> Result<(), BoxError> {
    let messages = messages();
    let now = SystemClock.now();
    for (index, session) in sessions.enumerate() {
        for at in 0..ANSWERS {
            let text = |number: usize| &texts[(7 * index + number) % texts.len()];
            let said = [
                (Role::User, messages[(index + 1 + at) % messages.len()].clone()),
                (
                    Role::Assistant,
                    format!("{} {} {}", text(at), text(at + 1), text(at + 2)),
                ),
            ];
            let entry =
                |(role, content): (Role, String)| ConversationTurn::new(role, content, now, format!("{session}-{at}"));
            let session = SessionId::from(&*session);
            let entries = said.map(entry);
            memory.append(&Principal::default(), &session, entries.into()).await?;
        }
    }
    Ok(())
}

/// Returns the users' messages in order: something to search by. Each tenth message corrects the
/// answer before it.
pub fn messages() -> Vec<String> {
    let talk = Talk::load();
    let long = talk
        .questions
        .iter()
        .filter(|question| question.text.chars().count() > 30);
    let message = |(index, question): (usize, &Question<'_>)| match index % 10 {
        0 => format!("No, that's wrong. {}", question.text),
        _ => question.text.to_owned(),
    };
    long.enumerate().map(message).collect()
}
