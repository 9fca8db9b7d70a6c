//! Requests to an agent: their settings, answers of a type, and the principals that ask.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use rockbot_core::CallContext;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatDelta, ChatError, ChatMessage, ChatResponse, ModelInfo, ModelSettings, ModelTier,
    OutputMode, Role,
};
use rockbot_core::content::{Content, MediaPart, MediaSource};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::{Tool, tool};
use rockbot_core::turn::{
    Budget, BudgetLimit, BusyPolicy, FinalAnswer, OutputVerdict, TurnProgress, TurnRequest, TurnStatus, validator_fn,
};
use rockbot_host::{Agent, AgentHost, OutputProgress, TurnError};
use serde_json::{Value, json};

use crate::support::{Anything, end_of, ending, host_of, noting_tool, results, settle, transcript};

/// A list of dishes.
#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct Menu {
    title: String,
    dishes: Vec<Dish>,
}

/// A dish.
#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct Dish {
    name: String,
    price: Option<f64>,
}

/// A value that a caller attaches to its request.
struct Tenant(&'static str);

/// A tool that names the tenant of the request.
fn tenant_tool() -> Tool {
    let named = |_: Anything, cx: CallContext| async move {
        let tenant = cx.extension::<Tenant>().map_or("no tenant", |tenant| tenant.0);
        format!("{tenant} of {}", cx.principal())
    };
    tool("tenant", named).description("Names the tenant.").pure()
}

#[tokio::test]
async fn every_setting_of_a_request_reaches_its_turn() {
    let model = ScriptedModel::new().calls("tenant", json!({})).says(r#"{"value": 7}"#);
    let host = host_of(&model)
        .instructions("Be kind.")
        .tool(tenant_tool())
        .build()
        .unwrap();
    let (seven, outcome) = host
        .agent()
        .ask("s", "How many?")
        .tier(ModelTier::High)
        .budget(Budget::default().with_max_model_calls(2))
        .principal("ann")
        .busy(BusyPolicy::Supersede)
        .model_settings(ModelSettings::new().with_temperature(0.5))
        .extension(Tenant("nobody"))
        .extension(Tenant("shop"))
        .instructions("Count twice.")
        .message_id("m1")
        .output::<u8>()
        .with_outcome()
        .await
        .unwrap();
    let same = TurnRequest::new("s", "m1", "").with_principal("ann");
    assert_eq!((seven, &outcome.turn), (7, &same.turn_id()));
    let asked = model.requests();
    assert_eq!(results(&asked[1]), ["call_1: shop of ann"]);
    let seen = |request: &rockbot_core::chat::ChatRequest| {
        let settings = request.settings.as_deref().cloned().unwrap_or_default();
        (request.tier, settings.temperature)
    };
    assert_eq!(seen(&asked[1]), (Some(ModelTier::High), Some(0.5)));
    model.assert_complete();
}

#[tokio::test]
async fn all_settings_of_one_request_hold_together() {
    let model = ScriptedModel::new()
        .hangs()
        .calls("tenant", json!({}))
        .says(r#"{"value": 7}"#)
        .says(r#"{"value": 8}"#);
    let host = host_of(&model)
        .instructions("Be kind.")
        .tool(tenant_tool())
        .build()
        .unwrap();
    let before = host.agent().for_principal("ann").stream("s", "Wait for me.");
    settle().await;
    let even = validator_fn(|answer: FinalAnswer, _| async move {
        Ok(match answer.json.and_then(|json| json["value"].as_u64()) {
            Some(8) => OutputVerdict::Accept,
            _ => OutputVerdict::complain("It is an even number."),
        })
    });
    let given = vec![ChatMessage::user("I count cats."), ChatMessage::assistant("Good.")];
    let shown = Content::from("How many?").with_image(MediaPart::bytes("image/png", vec![1, 2, 3]));
    let request = host
        .agent()
        .ask("s", shown)
        .principal("ann")
        .busy(BusyPolicy::Supersede)
        .budget(Budget::default().with_max_model_calls(3))
        .instructions("Count twice.")
        .tier(ModelTier::Low)
        .extension(Tenant("shop"))
        .history(given)
        .validate(even)
        .output_mode(OutputMode::Prompt)
        .output::<u8>();
    let (eight, outcome) = request.with_outcome().await.unwrap();
    assert_eq!((eight, outcome.model_calls), (8, 3), "the budget allows no more");
    assert_eq!(end_of(before).await.status, TurnStatus::Superseded);
    let asked = model.requests();
    let first = &asked[1];
    let roles: Vec<_> = transcript(first);
    assert_eq!(roles[..2], ["system: Be kind.", "system: Count twice."]);
    assert!(roles.contains(&"user: I count cats.".to_owned()) && !roles.contains(&"user: Wait for me.".to_owned()));
    let image = first.messages.iter().find_map(|message| message.content.media().next());
    assert_eq!(image.unwrap().source, MediaSource::Bytes(vec![1, 2, 3].into()));
    assert_eq!((first.tier, &first.output), (Some(ModelTier::Low), &None));
    assert_eq!(results(&asked[2]), ["call_1: shop of ann"]);
    assert!(transcript(&asked[3]).last().unwrap().contains("It is an even number."));
}

#[tokio::test]
async fn the_budget_of_a_request_ends_its_turn() {
    let model = ScriptedModel::new().calls("look", json!({})).says("so far");
    let (look, _) = noting_tool("look");
    let host = host_of(&model).tool(look).build().unwrap();
    let budget = Budget::default().with_max_model_calls(1);
    let outcome = host.agent().ask("s", "go").budget(budget).await.unwrap();
    let partial = TurnStatus::Partial(BudgetLimit::ModelCalls);
    assert_eq!(ending(&outcome), (&partial, "so far"));
}

#[tokio::test]
async fn instructions_of_a_request_end_its_system_message_and_no_other() {
    let model = ScriptedModel::new().says("Oui.").says("Yes.");
    let host = host_of(&model).instructions("Be kind.").build().unwrap();
    host.agent()
        .ask("s", "Tea?")
        .instructions("Speak French.")
        .await
        .unwrap();
    host.agent().ask("s", "Tea?").await.unwrap();
    let asked: Vec<_> = model.requests().iter().map(|request| transcript(request)).collect();
    assert_eq!(asked[0], ["system: Be kind.", "system: Speak French.", "user: Tea?"]);
    assert_eq!(
        asked[1],
        ["system: Be kind.", "user: Tea?", "assistant: Oui.", "user: Tea?"]
    );
}

#[tokio::test]
async fn a_resumed_turn_has_its_instructions_and_no_extensions() {
    let folder = tempfile::tempdir().unwrap();
    let host_of = |model: &ScriptedModel| {
        let host = host_of(model).data_dir(folder.path()).tool(tenant_tool());
        host.build().unwrap()
    };
    let host = host_of(&ScriptedModel::new().calls("tenant", json!({})).hangs());
    let request = host.agent().ask("s", "go").message_id("m1").extension(Tenant("shop"));
    let stream = request.instructions("Be brief.").stream();
    settle().await;
    host.shutdown(Duration::from_secs(5)).await;
    drop((host, stream));

    let model = ScriptedModel::new().calls("tenant", json!({})).says("done");
    let host = host_of(&model);
    host.start().await.unwrap();
    let turn = TurnRequest::new("s", "m1", "go").turn_id();
    assert_eq!(host.agent().outcome(&turn).await.unwrap().text, "done");
    let asked = model.requests();
    assert!(transcript(&asked[0]).contains(&"system: Be brief.".to_owned()));
    assert_eq!(
        results(&asked[1])[..],
        ["call_1: shop of local", "call_1-2: no tenant of local"]
    );
}

#[tokio::test]
async fn a_message_id_is_one_turn_however_often_it_is_asked() {
    let model = ScriptedModel::new().says("once");
    let host = host_of(&model).build().unwrap();
    for _ in 0..2 {
        let answer = host.agent().ask("s", "hi").message_id("m1").await.unwrap();
        assert_eq!(answer.text, "once");
    }
    model.assert_complete();
}

#[tokio::test]
async fn a_request_that_is_never_awaited_sends_nothing_and_a_dropped_one_is_cancelled() {
    let model = ScriptedModel::new().hangs();
    let host = host_of(&model).build().unwrap();
    drop(host.agent().ask("s", "hi"));
    settle().await;
    assert_eq!(model.requests().len(), 0);

    let asking = tokio::time::timeout(Duration::from_millis(1), host.agent().ask("s", "hi"));
    assert!(asking.await.is_err());
    settle().await;
    assert!(host.agent().is_idle());
}

#[tokio::test]
async fn principals_have_conversations_of_their_own() {
    let model = ScriptedModel::new().says("1").says("2").says("3");
    let host = host_of(&model).build().unwrap();
    let agent = host.agent();
    let [ann, bob] = ["ann", "bob"].map(|name| agent.for_principal(name));
    agent.ask("s", "local").await.unwrap();
    ann.ask("s", "from ann").await.unwrap();
    ann.stream("t", "more from ann").count().await;

    let said = async |agent: &Agent| {
        let entries = agent.history("s").await.unwrap();
        let said = entries.into_iter().filter(|entry| entry.role == Role::User);
        said.map(|entry| entry.content).collect::<Vec<_>>()
    };
    assert_eq!(
        (said(agent).await, said(&ann).await),
        (vec!["local".into()], vec!["from ann".into()])
    );
    assert_eq!(said(&bob).await, [""; 0]);
    assert_eq!(agent.sessions().await.unwrap(), ["s"]);
    assert_eq!(ann.sessions().await.unwrap(), ["s", "t"]);

    bob.reset("s").await.unwrap();
    ann.reset("s").await.unwrap();
    assert_eq!((said(agent).await.len(), said(&ann).await.len()), (1, 0));
    assert_eq!((agent.principal().as_str(), ann.principal().as_str()), ("local", "ann"));
}

#[tokio::test]
async fn an_enum_with_fields_is_an_answer_too() {
    #[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    enum Move {
        Go { to: String },
        Wait,
    }
    let model = ScriptedModel::new()
        .says(r#"{"value": {"kind": "go", "to": "Oslo"}}"#)
        .says(r#"{"value": {"kind": "wait"}}"#);
    let host = host_of(&model).build().unwrap();
    let next = async || host.agent().ask("s", "Next?").output::<Move>().await.unwrap();
    assert_eq!(next().await, Move::Go { to: "Oslo".into() });
    assert_eq!(next().await, Move::Wait);
}

/// A model that writes its answer in these pieces, each once the reader has the one before.
struct Piecewise(Vec<String>);

#[async_trait]
impl ChatClient for Piecewise {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        for piece in &self.0 {
            call.deltas
                .iter()
                .for_each(|deltas| deltas.send(ChatDelta::Text(piece)));
            settle().await;
        }
        Ok(ChatResponse::text(self.0.concat()))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// Streams an answer that the model writes in these pieces, and returns the reports: partial
/// values, and the others in words.
async fn streamed<T>(model: &ScriptedModel, host: &AgentHost) -> (Vec<Value>, Result<T, TurnError>)
where
    T: serde::de::DeserializeOwned + schemars::JsonSchema + Send + 'static,
{
    let mut stream = host.agent().ask("s", "go").output::<T>().stream();
    let mut partial = Vec::new();
    while let Some(progress) = stream.next().await {
        match progress {
            Ok(OutputProgress::Partial(value)) => partial.push(value),
            Ok(OutputProgress::Turn(TurnProgress::Retract)) => partial.clear(),
            Ok(OutputProgress::Final { value, outcome }) => {
                assert_eq!(outcome.status, TurnStatus::Answered);
                assert!(stream.next().await.is_none(), "nothing follows the end");
                model.assert_complete();
                return (partial, Ok(value));
            }
            Ok(_) => {}
            Err(error) => return (partial, Err(error)),
        }
    }
    panic!("a stream has an end");
}

#[tokio::test]
async fn an_answer_is_streamed_in_parts_that_grow_up_to_the_value() {
    let whole = json!({"title": "Today", "dishes": [{"name": "Soup", "price": 4.5}, {"name": "Pie", "price": null}]});
    let pieces = [
        r#"{"title": "To"#,
        r#"day", "dishes": [{"na"#,
        r#"me": "Soup", "price": 4"#,
        r#".5}, {"name": "Pie", "#,
        r#""price": null}]}"#,
    ];
    let host = AgentHost::in_memory().chat(Piecewise(pieces.map(str::to_owned).to_vec()));
    let (partial, menu) = streamed::<Menu>(&ScriptedModel::new(), &host.build().unwrap()).await;
    assert_eq!(menu.unwrap(), serde_json::from_value(whole.clone()).unwrap());
    let shown: Vec<_> = partial.iter().map(Value::to_string).collect();
    let expected = [
        r#"{"title":"To"}"#,
        r#"{"dishes":[{}],"title":"Today"}"#,
        r#"{"dishes":[{"name":"Soup"}],"title":"Today"}"#,
        r#"{"dishes":[{"name":"Soup","price":4.5},{"name":"Pie"}],"title":"Today"}"#,
        &whole.to_string(),
    ];
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn a_corrected_answer_begins_anew_in_the_stream() {
    let model = ScriptedModel::new()
        .says(r#"{"value": "many"}"#)
        .says(r#"{"value": [1, 2]}"#);
    let host = host_of(&model).build().unwrap();
    let (partial, list) = streamed::<Vec<u8>>(&model, &host).await;
    assert_eq!(list.unwrap(), [1, 2]);
    assert_eq!(partial.last(), Some(&json!([1, 2])));
    assert!(partial.iter().all(Value::is_array), "{partial:?}");
}

#[tokio::test]
async fn a_stream_without_an_answer_of_the_type_ends_with_the_outcome_in_an_error() {
    let model = ScriptedModel::new().says("no").says("no").says("no");
    let host = host_of(&model).build().unwrap();
    let (_, ended) = streamed::<Menu>(&model, &host).await;
    let Err(TurnError::Unanswered(outcome)) = ended else {
        panic!("got {ended:?}")
    };
    assert!(outcome.text.contains("`Menu`"), "{}", outcome.text);
}
