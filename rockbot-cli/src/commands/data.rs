//! `rockbot data`: what the agent knows, from one place to another.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use clap::Subcommand;
use rockbot::agent::AgentHost;
use rockbot::implement::memory::copy;
use rockbot::implement::store::files::{DataFolder, owner_of};
use rockbot::implement::store::{FeedbackStore, MediaStore, SkillUsageStore};
use rockbot::store::{ConversationMemory, LongTermMemory, RulesStore, SkillStore};
use rockbot::{BoxError, Principal};

use crate::agent::Setup;
use crate::chat::terminal;

/// A command about data.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Copy memories, skills, rules, conversations with their images and files, feedback and scheduled
    /// tasks of all users. What is there under the same name is replaced, sessions that are there stay,
    /// and a second copy repeats nothing. Stop the agent first. Turns in progress, working memory and
    /// vectors are not copied
    Copy {
        /// A data folder, or `database` for the section Postgres of the settings
        from: Place,
        /// The other one; a folder is made if it is missing
        to: Place,
    },
}

/// A place of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Folder(PathBuf),
    Database,
}

impl FromStr for Place {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        match text {
            "database" => Ok(Self::Database),
            folder => Ok(Self::Folder(folder.into())),
        }
    }
}

/// The stores of an agent.
struct Stores {
    conversations: Arc<dyn ConversationMemory>,
    media: Arc<dyn MediaStore>,
    long_term: Arc<dyn LongTermMemory>,
    skills: Arc<dyn SkillStore>,
    skill_usage: Arc<dyn SkillUsageStore>,
    rules: Arc<dyn RulesStore>,
    feedback: Arc<dyn FeedbackStore>,
}

impl Stores {
    fn of(host: &AgentHost) -> Result<Self, BoxError> {
        let parts = host.parts();
        Ok(Self {
            conversations: parts.require()?,
            media: parts.require()?,
            long_term: parts.require()?,
            skills: parts.require()?,
            skill_usage: parts.require()?,
            rules: parts.require()?,
            feedback: parts.require()?,
        })
    }
}

/// Carries out a command.
pub(crate) async fn run(setup: &Setup<'_>, command: &Command) -> Result<(), BoxError> {
    let Command::Copy { from, to } = command;
    if from == to {
        return Err("both places are the same: name another one to copy to".into());
    }
    if let Place::Folder(folder) = from
        && !folder.is_dir()
    {
        return Err(format!("there is no folder `{}`", folder.display()).into());
    }
    let from = setup.open_stores(from).await?;
    let to = setup.open_stores(to).await?;
    let stores = (Stores::of(&from.host)?, Stores::of(&to.host)?);
    for principal in &from.principals {
        let copied = copy_all(principal, &stores.0, &stores.1).await?;
        terminal::print(&format!("{}: {copied}\n", terminal::clean(principal.as_str())));
    }
    #[cfg(feature = "scheduling")]
    {
        let tasks = rockbot::tools::scheduling::copy_tasks(from.host.parts(), to.host.parts()).await?;
        terminal::print(&format!("scheduled tasks: {tasks}\n"));
    }
    Ok(())
}

/// Copies all that a principal has, and returns the numbers in words.
async fn copy_all(principal: &Principal, from: &Stores, to: &Stores) -> Result<String, BoxError> {
    let memories = copy::copy_long_term(principal, &*from.long_term, &*to.long_term).await?;
    let skills = copy::copy_skills(principal, &*from.skills, &*to.skills).await?;
    let uses = copy::copy_timeline(principal, &*from.skill_usage, &*to.skill_usage).await?;
    let rules = copy::copy_rules(principal, &*from.rules, &*to.rules).await?;
    let feedback = copy::copy_timeline(principal, &*from.feedback, &*to.feedback).await?;
    // Before the conversations that show them.
    let media = copy::copy_media(principal, &*from.conversations, &*from.media, &*to.media).await?;
    let sessions = copy::copy_conversations(principal, &*from.conversations, &*to.conversations).await?;
    to.conversations.flush().await?;
    Ok(format!(
        "{memories} memories, {skills} skills, {uses} new uses of skills, {rules} new rules, {feedback} new entries of \
         feedback, {sessions} new sessions, {media} images and files"
    ))
}

/// Returns the principals that have files in a data folder, in the order of their names.
pub(crate) fn principals_of(folder: &Path) -> Result<Vec<Principal>, BoxError> {
    let files = DataFolder::unheld(folder).list("")?;
    let owners = files.iter().filter_map(|file| {
        // Rules are in the folder itself, other stores have a folder each.
        let in_store = file.name.split_once('/').filter(|_| !file.name.starts_with('@'));
        owner_of(in_store.map_or(&*file.name, |(_, name)| name))
    });
    let principals: BTreeSet<_> = owners.map(|(principal, _)| principal).collect();
    Ok(principals.into_iter().collect())
}
