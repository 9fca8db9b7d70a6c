//! Recall: the stored texts that the model is shown before each turn, from all context sources.

use std::sync::Arc;

use async_trait::async_trait;
use rockbot::testing::ScriptedModel;
use rockbot_core::BoxError;
use rockbot_core::chat::{ChatRequest, ContextReason, Provenance, Role};
use rockbot_core::recall::{ContextItem, ContextQuery, ContextSource};
use rockbot_core::turn::TurnRequest;
use rockbot_host::turn::{Evaluation, TraceEvent};
use rockbot_host::{AgentHost, AgentHostBuilder, ContextBudget, TurnPolicies};
use serde_json::json;

use crate::support::{Anything, Notes};

/// Knows the texts that share a word with a topic, and notes what it was asked.
#[derive(Debug, Clone)]
struct Known(&'static [&'static str], Notes);

#[async_trait]
impl ContextSource for Known {
    fn name(&self) -> &str {
        "known"
    }

    async fn gather(&self, query: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        let topics: Vec<_> = query.topics().map(str::to_lowercase).collect();
        self.1.add(topics.join(" | "));
        let fits = |text: &&&str| {
            topics
                .iter()
                .any(|topic| text.split(" ").any(|word| word.len() > 3 && topic.contains(word)))
        };
        let item = |text: &&str| ContextItem::new("Known", format!("- {text}"), "shares a word", Provenance::MODEL);
        Ok(self.0.iter().filter(fits).map(item).collect())
    }
}

#[derive(Debug)]
struct Rules;

#[async_trait]
impl ContextSource for Rules {
    fn name(&self) -> &str {
        "rules"
    }

    async fn gather(&self, _: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        let rule = ContextItem::new("Rules", "- Answer in Norwegian.", "a rule", Provenance::USER);
        Ok(vec![rule.as_instruction()])
    }
}

#[derive(Debug)]
pub(crate) struct Broken;

#[async_trait]
impl ContextSource for Broken {
    fn name(&self) -> &str {
        "broken"
    }

    async fn gather(&self, query: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        if query.text.contains("hang") {
            std::future::pending().await
        } else {
            panic!("it is broken")
        }
    }
}

fn host(model: &ScriptedModel) -> (AgentHostBuilder, Notes) {
    let notes = Notes::default();
    let known = Known(&["gold lies under the oak", "silver is in the well"], notes.clone());
    let builder = AgentHost::in_memory();
    (builder.chat(model.clone()).context_source(known), notes)
}

/// Reason and text of each message.
fn shown(request: &ChatRequest) -> Vec<(ContextReason, String)> {
    let message = |message: &Arc<rockbot_core::chat::ChatMessage>| (message.why(), message.text().into_owned());
    request.messages.iter().map(message).collect()
}

/// Returns the text between the marks.
fn records(request: &ChatRequest) -> String {
    let begins = |(_, text): &(ContextReason, String)| text.starts_with("Your own records");
    let (_, text) = shown(request).into_iter().find(begins).expect("something was recalled");
    let (_, text) = text.split_once("<records ").expect("a beginning");
    let (_, text) = text.split_once('>').expect("its end");
    let (text, _) = text.rsplit_once("</records").expect("an end");
    text.trim().to_owned()
}

const ASKS: &str = "Where did we say that the gold is hidden?";

#[tokio::test]
async fn what_helps_stands_before_the_message_and_rules_with_the_instructions() {
    let model = ScriptedModel::new().says("Under the oak.");
    let host = host(&model)
        .0
        .context_source(Rules)
        .instructions("Be kind.")
        .build()
        .unwrap();
    host.agent().ask("s", ASKS).await.unwrap();
    let request = &model.requests()[0];
    let shown = shown(request);
    let reasons: Vec<_> = shown.iter().map(|(reason, _)| *reason).collect();
    use ContextReason::{Instructions, Message, Recalled};
    assert_eq!(reasons, [Instructions, Recalled, Recalled, Message]);
    assert_eq!(shown[1].1, "## Rules\n- Answer in Norwegian.");
    assert_eq!(records(request), "## Known\n- gold lies under the oak");
    let roles: Vec<_> = request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::System, Role::User, Role::User]);
    let of_model = request.messages[2]
        .content
        .parts()
        .iter()
        .filter(|part| *part.provenance() == Provenance::MODEL);
    assert_eq!(of_model.count(), 1, "data remembers where it came from");
}

#[tokio::test]
async fn a_short_answer_does_not_lose_the_thread() {
    let model = ScriptedModel::new().says("Shall I dig?").says("Digging.");
    let (builder, notes) = host(&model);
    let host = builder.build().unwrap();
    host.agent().ask("s", ASKS).await.unwrap();
    host.agent().ask("s", "Yes, do.").await.unwrap();
    let asks = ASKS.to_lowercase();
    assert_eq!(notes.all(), [asks.as_str(), &asks]);
    assert_eq!(records(&model.requests()[1]), "## Known\n- gold lies under the oak");
}

#[tokio::test(start_paused = true)]
async fn a_turn_goes_on_without_a_source_that_fails() {
    for text in [
        "The gold, please, and do not break down!",
        "The gold, please, and do not hang around!",
    ] {
        let model = ScriptedModel::new().says("Here.");
        let host = host(&model).0.context_source(Broken).build().unwrap();
        assert_eq!(host.agent().ask("s", text).await.unwrap().text, "Here.");
        assert_eq!(records(&model.requests()[0]), "## Known\n- gold lies under the oak");
    }
}

#[tokio::test]
async fn there_is_room_for_as_much_as_the_budget_says_and_the_trace_tells_the_rest() {
    let model = ScriptedModel::new().says("Both.");
    let folder = tempfile::tempdir().unwrap();
    let known = Known(&["gold lies under the oak", "silver is in the well"], Notes::default());
    let host = AgentHost::builder("digger")
        .data_dir(folder.path())
        .chat(model.clone())
        .context_source(known)
        .policies(TurnPolicies::new().with_context_budget(ContextBudget::default().with_max_tokens(7)))
        .build()
        .unwrap();
    let request: TurnRequest = host.agent().request("s", "Where is the gold, and where is the silver?");
    let turn = request.turn_id();
    host.agent().run(request).await.unwrap();
    assert_eq!(records(&model.requests()[0]), "## Known\n- gold lies under the oak");

    let trace = host.trace(&turn).await.unwrap().unwrap();
    let TraceEvent::Started { recalled, .. } = &trace.entries()[0].event else {
        panic!("the first record is the beginning")
    };
    let told: Vec<_> = recalled
        .iter()
        .map(|one| (one.beginning.as_str(), one.reason.as_str(), one.is_shown))
        .collect();
    assert_eq!(
        told,
        [
            ("- gold lies under the oak", "shares a word", true),
            ("- silver is in the well", "shares a word", false)
        ]
    );
}

#[tokio::test]
async fn an_incomplete_answer_is_sent_back_with_what_is_known_about_what_is_missing() {
    let verdict = json!({ "complete": false, "reason": "The silver is missing." }).to_string();
    let model = ScriptedModel::new()
        .says("I'll look that up.")
        .says(verdict)
        .says("The silver is in the well.");
    let evaluation = Evaluation::OFF.with_max_completion_reprompts(1);
    let look = rockbot_core::tool::tool("look", |_: Anything| async { "nothing" }).pure();
    let host = host(&model)
        .0
        .tool(look)
        .policies(TurnPolicies::new().with_evaluation(evaluation))
        .build()
        .unwrap();
    host.agent()
        .ask("s", "Find all the treasures, will you?")
        .await
        .unwrap();
    let request = &model.requests()[2];
    assert_eq!(records(request), "## Known\n- silver is in the well");
    let reasons: Vec<_> = shown(request).into_iter().map(|(reason, _)| reason).collect();
    use ContextReason::{Answer, Correction, Instructions, Message, Recalled};
    assert_eq!(reasons, [Instructions, Message, Answer, Recalled, Correction]);
}

/// A source that knows the same whatever it is asked, and notes what that was.
#[derive(Debug)]
struct Skills(Notes);

#[async_trait]
impl ContextSource for Skills {
    fn name(&self) -> &str {
        "skills"
    }

    async fn gather(&self, query: &ContextQuery) -> Result<Vec<ContextItem>, BoxError> {
        self.0.add(query.topics().collect::<Vec<_>>().join(" | "));
        let fits = |text: &str| query.topics().any(|topic| topic.contains("silver")) || text.contains("gold");
        let texts = ["- dig: for gold", "- dive: for silver"]
            .into_iter()
            .filter(|text| fits(text));
        let skill = |text| ContextItem::new("Skills", text, "it fits", Provenance::HOST);
        let rule = ContextItem::new("Rules", "- Be brief.", "a rule", Provenance::USER).as_instruction();
        Ok(texts.map(skill).chain([rule]).collect())
    }
}

#[tokio::test]
async fn a_follow_up_knows_what_fits_it_the_message_and_the_answer() {
    let worth = json!({ "hasFollowUps": true, "prompt": "Look for what lies beside the gold." }).to_string();
    let model = ScriptedModel::new()
        .calls("look", json!({}))
        .says("The gold is under the oak, and silver is in the well.")
        .says(worth)
        .calls("look", json!({}))
        .says("There is a spade.");
    let folder = tempfile::tempdir().unwrap();
    let notes = Notes::default();
    let evaluation = Evaluation::OFF.with_max_follow_up_passes(1);
    let host = AgentHost::builder("digger")
        .data_dir(folder.path())
        .chat(model.clone())
        .tool(rockbot_core::tool::tool("look", |_: Anything| async { "nothing" }).pure())
        .policies(TurnPolicies::new().with_evaluation(evaluation))
        .context_source(Skills(notes.clone()))
        .build()
        .unwrap();
    let request: TurnRequest = host.agent().request("s", ASKS);
    let turn = request.turn_id();
    host.agent().run(request).await.unwrap();

    let answer = "The gold is under the oak, and silver is in the well.";
    let more = format!("Look for what lies beside the gold. | {answer} | {ASKS}");
    assert_eq!(notes.all(), [ASKS, &more]);
    let requests = model.requests();
    assert_eq!(records(&requests[0]), "## Skills\n- dig: for gold");
    let begins = |(_, text): &(ContextReason, String)| text.starts_with("Your own records");
    let shown: Vec<_> = shown(&requests[3]).into_iter().filter(begins).collect();
    assert_eq!(shown.len(), 2, "what stood there stays, and is not shown twice");
    assert!(
        shown[1].1.contains(">\n## Skills\n- dive: for silver\n</records"),
        "{}",
        shown[1].1
    );

    let replayed = host.trace(&turn).await.unwrap().unwrap();
    let gathered = replayed.entries().iter().find_map(|entry| match &entry.event {
        TraceEvent::Gathered { recalled, .. } => Some(recalled),
        _ => None,
    });
    let told = gathered
        .unwrap()
        .iter()
        .map(|one| (&*one.beginning, &*one.reason, one.is_shown));
    assert_eq!(told.collect::<Vec<_>>(), [("- dive: for silver", "it fits", true)]);
    let last = &requests[4].messages;
    assert_eq!(replayed.messages()[..last.len()], **last, "a replay shows the same");
}
