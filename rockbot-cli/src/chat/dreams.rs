//! The plans of dreams: `/dreams`.

use rockbot::agent::AgentHost;
use rockbot::memory::Dreams;
use rockbot::prelude::*;

use super::questions::questions;
use super::{shut_down, terminal};
use crate::agent::Setup;

const USAGE: &str = "use it like this: /dreams, /dreams show ID, /dreams apply ID, /dreams undo ID, /dreams now";

/// Lists, shows, applies or undoes plans, as the words say.
pub(crate) async fn command(host: &AgentHost, words: &str) {
    let Some(dreams) = host.parts().get::<Dreams>() else {
        return eprintln!("this agent does not dream: start the chat with --dreams");
    };
    match told(&dreams, words).await {
        Ok(text) => terminal::print(&format!("{}\n", terminal::clean(&text))),
        Err(problem) => eprintln!("{problem}"),
    }
}

/// Does the same for an agent of the command line, which dreams whatever its options say.
pub(crate) async fn run(setup: &Setup<'_>, words: &str) -> Result<(), BoxError> {
    let host = setup.open(questions().0).await?;
    host.start().await?;
    let dreams = host.parts().get::<Dreams>();
    let dreams = dreams.ok_or("this agent does not dream: add --dreams, or the section Dream to its settings")?;
    let told = told(&dreams, words).await;
    shut_down(&host).await;
    terminal::print(&format!("{}\n", terminal::clean(&told?)));
    Ok(())
}

async fn told(dreams: &Dreams, words: &str) -> Result<String, BoxError> {
    match words.split_once(' ').unwrap_or((words, "")) {
        ("", _) => list(dreams),
        ("show", id) => {
            let plans = dreams.plans()?;
            let plan = plans.iter().find(|plan| plan.id == id.trim());
            Ok(plan.ok_or(USAGE)?.to_string())
        }
        ("apply", id) => Ok(dreams.apply(id.trim()).await?.line()),
        ("undo", id) => Ok(dreams.undo(id.trim()).await?.line()),
        ("now", _) => {
            dreams.dream().await?;
            list(dreams)
        }
        _ => Err(USAGE.into()),
    }
}

fn list(dreams: &Dreams) -> Result<String, BoxError> {
    let lines: Vec<_> = dreams.plans()?.iter().map(|plan| plan.line()).collect();
    Ok(if lines.is_empty() {
        "there is no plan yet".to_owned()
    } else {
        lines.join("\n")
    })
}
