//! The service: a joke about a topic, in the style that the tool is configured with.

use rockbot::prelude::*;
use rockbot::tool_services::{ReplyParts, ToolService};
use serde_json::Value;

/// The jokes, by words of their topics.
const JOKES: [(&str, &str); 3] = [
    (
        "program",
        "Why do programmers prefer dark mode? Because light attracts bugs.",
    ),
    ("animal", "Why do cats make bad storytellers? They only have one tail."),
    ("food", "Why did the tomato blush? It saw the salad dressing."),
];

/// Tells jokes.
#[derive(Debug)]
pub(crate) struct Jokes;

#[async_trait]
impl ToolService for Jokes {
    async fn invoke(&self, user: &str, config: &Value, arguments: &Value) -> Result<Value, BoxError> {
        let style = config["style"].as_str().unwrap_or("pun");
        let topic = arguments["topic"].as_str().unwrap_or_default().to_lowercase();
        if topic.is_empty() {
            return Err("`topic` is missing: say what the joke is about".into());
        }
        let joke = JOKES.iter().find(|(word, _)| topic.contains(word));
        let joke = joke.map_or_else(
            || format!("What do you call {topic} without a punchline? This."),
            |(_, joke)| (*joke).to_owned(),
        );
        let user = if user.is_empty() { "you" } else { user };
        Ok(format!("Hey {user}! Here's a {style} for you:\n\n{joke}").into())
    }

    /// Sends a joke in the style `knock-knock` line by line: each line is progress of the turn.
    async fn invoke_streaming(
        &self,
        user: &str,
        config: &Value,
        arguments: &Value,
        parts: &ReplyParts,
    ) -> Result<Value, BoxError> {
        if config["style"] != "knock-knock" {
            return self.invoke(user, config, arguments).await;
        }
        let topic = arguments["topic"].as_str().unwrap_or("nothing");
        for line in ["Knock, knock.\n", "Who's there?\n"] {
            parts.send(line).await?;
        }
        Ok(format!("{topic}, and that is the whole joke.").into())
    }
}
