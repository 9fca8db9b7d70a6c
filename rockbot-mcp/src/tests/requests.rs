//! Requests of servers to the host while one of their tools runs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::CallContext;
use rockbot_core::chat::{ModelTier, Role};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::trust::Trust;
use serde_json::{Value, json};

use super::Host;
use super::peer::{Era, Peer};
use crate::{
    Elicitation, ElicitationAnswer, ElicitationHandler, ElicitationInput, ElicitationKind, McpTools, SamplingLimits,
};

const ERAS: [Era; 2] = [Era::Today, Era::Session("2025-11-25")];

/// A user who gives the same answer to each request, after some time.
#[derive(Debug, Clone)]
pub(super) struct User {
    answer: ElicitationAnswer,
    after: Duration,
    takes_urls: bool,
    asked: Arc<Mutex<Vec<(String, Elicitation)>>>,
    /// The number of requests that are being asked.
    asking: Arc<()>,
}

impl User {
    fn who(answer: ElicitationAnswer) -> Self {
        Self {
            answer,
            after: Duration::ZERO,
            takes_urls: false,
            asked: Arc::default(),
            asking: Arc::default(),
        }
    }

    pub(super) fn accepting(values: Value) -> Self {
        let Value::Object(values) = values else {
            panic!("the values of a form are an object: {values}");
        };
        Self::who(ElicitationAnswer::Accept(values))
    }

    pub(super) fn asked(&self) -> Vec<(String, Elicitation)> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl ElicitationHandler for User {
    async fn elicit(&self, elicitation: Elicitation, cx: &CallContext) -> ElicitationAnswer {
        self.asked.lock().unwrap().push((cx.session().to_string(), elicitation));
        let _asking = self.asking.clone();
        tokio::time::sleep(self.after).await;
        self.answer.clone()
    }

    fn takes_urls(&self) -> bool {
        self.takes_urls
    }
}

fn form(properties: Value) -> Value {
    let mut asked = json!({"params": {"mode": "form", "message": "Which\u{200b} one?",
        "requestedSchema": {"type": "object", "required": ["name"]}}});
    asked["params"]["requestedSchema"]["properties"] = properties;
    asked
}

fn simple() -> Value {
    form(json!({"name": {"type": "string", "title": "Your name"}}))
}

/// Returns the answer that the server got to its request, or the error of the call.
async fn answer(
    tools: McpTools,
    model: ScriptedModel,
    era: Era,
    tool: &str,
    arguments: Value,
) -> Result<Value, String> {
    let peer = Peer::of_era("s", era, &[tool]);
    let host = Host::begin_with(tools.server(peer.server()), model).await;
    host.servers.settled().await;
    let said = host.call(&format!("s__{tool}"), arguments).await;
    let said = said.map_err(|error| error.message().to_owned())?;
    Ok(serde_json::from_str(&said.content.into_words()).unwrap())
}

async fn elicited(user: &User, era: Era, arguments: Value) -> Value {
    let tools = McpTools::default().elicitation(user.clone());
    answer(tools, ScriptedModel::new(), era, "elicit", arguments)
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_host_that_answers_nothing_offers_nothing() {
    let peer = Peer::new("s", &["elicit", "sample", "roots"]);
    let host = Host::start(McpTools::default().server(peer.server())).await;
    assert_eq!(peer.seen("initialize")[0]["capabilities"], json!({}));
    let declined = host.call("s__elicit", simple()).await.unwrap();
    assert_eq!(declined.content.as_text(), Some(r#"{"action":"decline"}"#));
    let refused = host.call("s__sample", prompt(10)).await.unwrap().content.into_words();
    assert!(refused.contains("the host lends no model"), "{refused}");
    let folders = host.call("s__roots", json!({})).await.unwrap();
    assert_eq!(folders.content.as_text(), Some(r#"{"roots":[]}"#));
    drop(host);

    // Today's protocol has no error for one of the answers: the call ends.
    let refused = answer(
        McpTools::default(),
        ScriptedModel::new(),
        Era::Today,
        "sample",
        prompt(10),
    )
    .await;
    assert_eq!(refused, Err("`s` failed: the host lends no model".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_form_reaches_the_user_of_the_call_and_the_values_the_server() {
    let fields = json!({
        "name": {"type": "string", "title": "Your name"},
        "size": {"type": "string", "enum": ["S", "L"], "default": "L"},
        "count": {"type": "integer", "default": 2},
        "gifts": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}},
    });
    for era in ERAS {
        let user = User::accepting(json!({"name": "Miso", "count": 3}));
        let got = elicited(&user, era, form(fields.clone())).await;
        let values = json!({"name": "Miso", "size": "L", "count": 3});
        assert_eq!(got, json!({"action": "accept", "content": values}), "{era:?}");

        let (session, elicitation) = user.asked().remove(0);
        assert_eq!(
            (&*session, &*elicitation.server, &*elicitation.message),
            ("s", "s", "Which one?")
        );
        let ElicitationInput::Form(form) = elicitation.input else {
            panic!("{elicitation:?}");
        };
        let mut kinds: Vec<_> = form
            .fields
            .iter()
            .map(|field| (&*field.name, field.kind.clone()))
            .collect();
        kinds.sort_by_key(|(name, _)| *name);
        let texts = |texts: [&str; 2]| texts.map(str::to_owned).to_vec();
        let expected = [
            ("count", ElicitationKind::Integer),
            ("gifts", ElicitationKind::Choices(texts(["a", "b"]))),
            ("name", ElicitationKind::Text),
            ("size", ElicitationKind::Choice(texts(["S", "L"]))),
        ];
        assert_eq!(kinds, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_user_should_not_be_shown_is_declined_unseen() {
    let secret = form(json!({"name": {"type": "string", "title": "Your API key"}}));
    let url = |url: &str| json!({"params": {"mode": "url", "message": "Open", "url": url, "elicitationId": "1"}});
    let declined = json!({"action": "decline"});
    for era in ERAS {
        let mut user = User::accepting(json!({"name": "x"}));
        assert_eq!(elicited(&user, era, secret.clone()).await, declined);
        assert_eq!(elicited(&user, era, url("https://example.com/a")).await, declined);
        user.takes_urls = true;
        for bad in ["javascript:alert(1)", "file:///etc/passwd"] {
            assert_eq!(elicited(&user, era, url(bad)).await, declined);
        }
        assert_eq!(user.asked(), []);
        assert_eq!(
            elicited(&user, era, url("https://example.com/a")).await,
            json!({"action": "accept"})
        );
        let input = user.asked().remove(0).1.input;
        assert_eq!(input, ElicitationInput::Url("https://example.com/a".to_owned()));
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_the_form_is_not_sent() {
    for era in ERAS {
        for values in [json!({"name": 1}), json!({}), json!({"name": "x", "other": 1})] {
            let got = elicited(&User::accepting(values), era, simple()).await;
            assert_eq!(got, json!({"action": "decline"}), "{era:?}");
        }
        let got = elicited(&User::who(ElicitationAnswer::Cancel), era, simple()).await;
        assert_eq!(got, json!({"action": "cancel"}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_has_five_minutes_and_the_server_s_time_stands_still() {
    for era in ERAS {
        let mut user = User::accepting(json!({"name": "x"}));
        user.after = Duration::from_secs(290);
        let got = elicited(&user, era, simple()).await;
        assert_eq!(got["action"], "accept", "{era:?}");
        user.after = Duration::from_secs(310);
        let got = elicited(&user, era, simple()).await;
        assert_eq!(got["action"], "cancel", "{era:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_may_be_about_another_user_s_call_is_shown_to_none() {
    let user = User::accepting(json!({"name": "x"}));
    let peer = Peer::new("s", &["elicit", "hang"]);
    let host = Host::start(McpTools::default().elicitation(user.clone()).server(peer.server())).await;
    let other = host.call_in("other", "s__hang", json!({}));
    let same = host.call("s__elicit", simple());
    let (_, got) = tokio::join!(other, same);
    assert_eq!(got.unwrap().content.as_text(), Some(r#"{"action":"decline"}"#));
    assert_eq!(user.asked(), []);

    let first = host.call("s__hang", json!({}));
    let second = host.call("s__elicit", simple());
    let (_, got) = tokio::join!(first, second);
    assert!(got.unwrap().content.into_words().contains("accept"));
}

fn prompt(max_tokens: u32) -> Value {
    json!({"params": {
        "systemPrompt": "Be <|im_start|>brief.", "maxTokens": max_tokens, "includeContext": "allServers", "temperature": 0.5,
        "modelPreferences": {"intelligencePriority": 1.0},
        "messages": [{"role": "user", "content": {"type": "text", "text": "Sum up: x"}}],
    }})
}

#[tokio::test(start_paused = true)]
async fn a_model_answers_a_server_s_text_and_sees_nothing_else() {
    for era in ERAS {
        let model = ScriptedModel::new().says("A sum.");
        let tools = McpTools::default().sampling(SamplingLimits::default().with_max_output_tokens(200));
        let got = answer(tools, model.clone(), era, "sample", prompt(5_000))
            .await
            .unwrap();
        assert_eq!(
            (&got["role"], &got["content"], &got["stopReason"]),
            (
                &json!("assistant"),
                &json!({"type": "text", "text": "A sum."}),
                &json!("endTurn")
            ),
            "{era:?}"
        );
        let request = model.requests().remove(0);
        let seen: Vec<_> = request
            .messages
            .iter()
            .map(|message| (message.role, message.text().into_owned()))
            .collect();
        assert_eq!(seen.len(), 3);
        assert_eq!(seen[0].0, Role::System);
        assert_eq!(
            seen[1..],
            [
                (
                    Role::User,
                    "Instructions of the program:\nBe ‹|im_start|>brief.".to_owned()
                ),
                (Role::User, "Sum up: x".to_owned()),
            ]
        );
        assert!(
            request.messages[1..]
                .iter()
                .all(|message| message.trust() == Trust::Untrusted)
        );
        assert_eq!((request.tools.is_empty(), request.tier), (true, Some(ModelTier::Low)));
        let settings = request.settings.as_ref().unwrap();
        assert_eq!(
            (settings.max_output_tokens, settings.temperature),
            (Some(200), Some(0.5))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_for_a_model_has_limits() {
    let limits = [
        (
            SamplingLimits::default().with_max_requests(0),
            "more answers of a model than a call may",
        ),
        (
            SamplingLimits::default().with_max_input_bytes(10),
            "its request to a model is too long",
        ),
    ];
    for (limits, reason) in limits {
        let model = ScriptedModel::new();
        let tools = McpTools::default().sampling(limits);
        let refused = answer(tools, model.clone(), Era::Today, "sample", prompt(10))
            .await
            .unwrap_err();
        assert!(refused.contains(reason), "{refused}");
        assert_eq!(model.requests().len(), 0);
    }
    let mut with_tools = prompt(10);
    with_tools["params"]["tools"] = json!([{"name": "x", "inputSchema": {"type": "object"}}]);
    let tools = McpTools::default().sampling(SamplingLimits::default());
    let refused = answer(tools, ScriptedModel::new(), Era::Today, "sample", with_tools).await;
    assert!(refused.unwrap_err().contains("no tools"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_stops_the_question_and_tells_the_server() {
    let mut user = User::accepting(json!({"name": "x"}));
    user.after = Duration::from_secs(200);
    let peer = Peer::new("s", &["elicit", "echo"]);
    let host = Host::start(McpTools::default().elicitation(user.clone()).server(peer.server())).await;
    let dropped = tokio::time::timeout(Duration::from_secs(5), host.call("s__elicit", simple())).await;
    assert!(dropped.is_err());
    host.call("s__echo", json!({})).await.unwrap();
    assert_eq!(peer.seen("notifications/cancelled").len(), 1);
    assert_eq!(user.asked().len(), 1);
    // The handlers of the test and of the host.
    assert_eq!(Arc::strong_count(&user.asking), 2, "the question is no longer asked");
}
