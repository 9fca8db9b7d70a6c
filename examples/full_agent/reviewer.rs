//! A second agent, which reviews texts: a tool of the first one, and by itself a function whose
//! answer has a type.

use std::fmt;

use rockbot::agent::{AgentRequest, AgentTool, OutputProgress, Typed};
use rockbot::chat::{ChatMessage, ModelSettings};
use rockbot::config::Config;
use rockbot::prelude::*;
use rockbot::turn::{OutputValidator, OutputVerdict, validator_fn};

/// Maximum number of changes that a review asks for.
const MAX_CHANGES: usize = 3;

/// Maximum length of a review in tokens, what the model thinks before it included.
const MAX_TOKENS: u32 = 4_000;

/// A review of a text.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Review {
    /// `true` if the text can go out as it is.
    is_ready: bool,
    /// The changes that it needs, one sentence each.
    changes: Vec<String>,
}

/// The guidelines of the program that asks for a review, for the tool of this one turn.
pub(crate) struct Guidelines(pub(crate) Vec<String>);

/// Returns the guidelines that the text has to follow.
#[derive(Deserialize, JsonSchema)]
struct ReadGuidelines {}

/// Builds the host of the reviewer. It keeps nothing: each review stands for itself.
pub(crate) fn host(config: &Config) -> Result<AgentHost, BoxError> {
    let guidelines = |_: ReadGuidelines, cx: CallContext| async move {
        let guidelines = cx.extension::<Guidelines>().map(|given| given.0.join("\n"));
        guidelines.unwrap_or_else(|| "There are none.".to_owned())
    };
    let host = AgentHost::builder("reviewer")
        .chat(ModelGateway::from_config_or_offline(config)?)
        .instructions(
            "You review texts before they are sent. Name what is wrong, unclear or impolite, and nothing else.",
        )
        .tool(tool("read_guidelines", guidelines).pure())
        .build()?;
    Ok(host)
}

/// Returns the tool by which another agent gives texts to the reviewer. What that costs counts
/// for the calling turn.
pub(crate) fn as_tool(reviewer: &AgentHost) -> AgentTool {
    reviewer
        .agent()
        .as_tool(
            "ask_reviewer",
            "Asks the reviewer, another agent, for a second opinion on a text.",
        )
        .with_instructions(format!("At most {MAX_CHANGES} changes."))
        .with_budget(Budget::default().with_max_model_calls(3))
}

/// Returns the request for a review of `text`, for a program that acts on the answer.
pub(crate) fn request(reviewer: &Agent, session: &str, text: &str) -> Result<AgentRequest<Typed<Review>>, BoxError> {
    let request = reviewer
        .ask(session, text)
        .instructions(format!("At most {MAX_CHANGES} changes."))
        // A worked example, instead of the reviews before this one.
        .history(worked_example()?)
        .model_settings(ModelSettings::new().with_max_output_tokens(MAX_TOKENS))
        .validate(few_changes());
    Ok(request.output::<Review>())
}

/// Reviews a text, and tells how far the review is.
pub(crate) async fn review(reviewer: &AgentHost, text: &str) -> Result<Review, BoxError> {
    let mut review = request(reviewer.agent(), "reviews", text)?.stream().cancel_on_drop();
    while let Some(progress) = review.next().await {
        match progress? {
            OutputProgress::Partial(so_far) => {
                let changes = so_far["changes"].as_array().map_or(0, Vec::len);
                eprintln!("… {changes} changes so far");
            }
            OutputProgress::Final { value, .. } => return Ok(value),
            _ => {}
        }
    }
    Err("the review ended without a verdict".into())
}

fn worked_example() -> Result<Vec<ChatMessage>, BoxError> {
    let review = Review {
        is_ready: false,
        changes: vec!["Ask instead of demanding.".to_owned()],
    };
    let answer = serde_json::to_string(&review)?;
    Ok(vec![
        ChatMessage::user("Send me the files."),
        ChatMessage::assistant(answer),
    ])
}

/// Sends back a review with more changes than a writer reads.
fn few_changes() -> impl OutputValidator {
    validator_fn(|answer, _turn| async move {
        let changes = answer.json.as_ref().and_then(|review| review["changes"].as_array());
        Ok(if changes.is_some_and(|changes| changes.len() > MAX_CHANGES) {
            OutputVerdict::complain(format!("Keep the {MAX_CHANGES} changes that matter most."))
        } else {
            OutputVerdict::Accept
        })
    })
}

impl fmt::Display for Review {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_ready { "ready" } else { "not ready" })?;
        self.changes.iter().try_for_each(|change| write!(f, "\n- {change}"))
    }
}
