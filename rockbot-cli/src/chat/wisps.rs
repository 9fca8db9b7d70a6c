//! The log of wisps: `/wisps`.

use rockbot::agent::AgentHost;

/// Lists the wisps that have ended, or shows one of them, as the words say.
#[cfg(feature = "wisps")]
pub(crate) fn command(host: &AgentHost, words: &str) {
    use rockbot::tools::wisps::WispRuns;

    use super::terminal;

    let Some(runs) = host.parts().get::<WispRuns>() else {
        return eprintln!("this agent runs no wisps: start the chat with --wisps");
    };
    let shown = match words.split_once(' ').unwrap_or((words, "")) {
        ("", _) => runs.table(false).ok_or("no wisp has run yet".to_owned()),
        ("failed", _) => runs.table(true).ok_or("no wisp has failed yet".to_owned()),
        ("show", id) => runs
            .show(id)
            .ok_or(format!("there is no wisp `{}`; /wisps lists them", id.trim())),
        _ => Err("use it like this: /wisps, /wisps failed, /wisps show ID".to_owned()),
    };
    match shown {
        Ok(text) => terminal::print(&format!("{}\n", terminal::clean(text.trim_end()))),
        Err(problem) => terminal::print(&format!("{problem}\n")),
    }
}

/// Says that this chat was built without wisps.
#[cfg(not(feature = "wisps"))]
pub(crate) fn command(_: &AgentHost, _: &str) {
    eprintln!("this chat was built without the feature `wisps`");
}
