//! The chat as the user interface of an agent in another process, over a bus.

use std::path::Path;
use std::time::Duration;

use rockbot::config::Config;
use rockbot::message::{AgentReply, UserMessage};
use rockbot::prelude::*;

use super::terminal::{self, Terminal};
use crate::arguments::Arguments;

use super::{ctrl_c, media};
use crate::host::bus;

/// Asks the question of the command line, or talks line by line. Returns `false` if the question
/// has no answer.
pub(crate) async fn talk(arguments: &Arguments, url: &str, pictures: &Path) -> Result<bool, BoxError> {
    let config = Config::load(arguments.agent.config.as_deref())?;
    let bus = bus::open(Some(url), &config).await?;
    let user = UserProxy::new(bus.clone(), "chat");
    let mut images = media::read(&arguments.chat.images)?;
    let answered = match arguments.question() {
        Some(question) => ask(&user, arguments, &question, images, pictures).await,
        None => {
            let mut terminal = Terminal::new(false, None);
            let printer = terminal.printer();
            let hearing = user.on_announcement(move |said| terminal::announce(&said, &printer));
            let _hearing = hearing.await?;
            while let Some(line) = next(&mut terminal).await {
                ask(&user, arguments, &line, std::mem::take(&mut images), pictures).await;
            }
            true
        }
    };
    let _ = bus.close(Duration::from_secs(1)).await;
    Ok(answered)
}

/// Returns the next line that is not empty, or `None` at the end of the conversation.
async fn next(terminal: &mut Terminal) -> Option<String> {
    loop {
        let line = tokio::select! {
            line = terminal.prompt("> ") => line?,
            () = ctrl_c() => return None,
        };
        match line.trim() {
            "" => {}
            "/quit" => return None,
            text => return Some(text.to_owned()),
        }
    }
}

/// Sends a message, shows the agent's progress, and prints the reply.
async fn ask(user: &UserProxy, arguments: &Arguments, question: &str, images: Vec<MediaPart>, pictures: &Path) -> bool {
    let content = images.into_iter().fold(Content::from(question), Content::with_media);
    let message = UserMessage::new(arguments.chat.session.as_str(), content);
    let report = |report: AgentReply| eprintln!("… {}", terminal::clean(&report.content.words()));
    match user.send_message(&message, report).await {
        Ok(reply) => {
            terminal::print(&format!("{}\n", terminal::clean(&reply.content.words())));
            if let Err(error) = media::save_reply(&reply, pictures) {
                eprintln!("error: an image of the answer is not saved: {error}");
            }
            true
        }
        Err(error) => {
            eprintln!("error: {error}");
            false
        }
    }
}
