//! The modes of structured output: by the provider's schema, by a tool call, by words.

use futures_util::StreamExt;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatError, ChatRequest, ChatResponse, FinishReason, ModelInfo, ModelSettings, ModelTier,
    OutputMode, OutputSchema, ToolChoice,
};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::turn::{TurnProgress, TurnStatus};
use rockbot_host::AgentHost;
use serde_json::json;

use crate::support::weather::{OSLO, Weather, oslo};
use crate::support::{calls, collect, host_of, noting_tool, results, transcript};

/// The tools, the tool choice and the schema of a request.
fn demands(request: &ChatRequest) -> (String, Option<ToolChoice>, bool) {
    let names: Vec<_> = request.tools.names().map(|name| name.as_str()).collect();
    let choice = request
        .settings
        .as_deref()
        .and_then(|settings| settings.tool_choice.clone());
    (names.join(" "), choice, request.output.is_some())
}

fn forced() -> Option<ToolChoice> {
    Some(ToolChoice::Tool("final_answer".into()))
}

async fn ask(host: &AgentHost, mode: OutputMode) -> Weather {
    let request = host.agent().ask("s", "Oslo?").output::<Weather>();
    request.output_mode(mode).await.unwrap()
}

#[tokio::test]
async fn by_tool_the_call_of_the_final_answer_ends_the_turn() {
    let model = ScriptedModel::new()
        .calls("look", json!({}))
        .calls("final_answer", json!({"city": "Oslo", "celsius": -3}));
    let (look, _) = noting_tool("look");
    let host = host_of(&model).tool(look).build().unwrap();
    assert_eq!(ask(&host, OutputMode::Tool).await, oslo());
    let asked = model.requests();
    let required = ("look final_answer".to_owned(), Some(ToolChoice::Required), false);
    assert_eq!((demands(&asked[0]), demands(&asked[1])), (required.clone(), required));
    let told = "user: When nothing else is left to do for the next message, give its answer by calling `final_answer`, \
                and in no other way.";
    assert_eq!(transcript(&asked[0])[1], told);
    let definitions: serde_json::Value = serde_json::from_slice(asked[0].tools.json()).unwrap();
    let expected = json!({"type": "function", "function": {
        "name": "final_answer",
        "description": "Gives the final answer. Call it once, when nothing else is left to do, with the whole answer as its arguments.",
        "parameters": {
            "type": "object",
            "description": "The weather in a place.",
            "properties": {"celsius": {"type": "integer"}, "city": {"type": "string"}},
            "required": ["city", "celsius"],
        },
    }});
    assert_eq!(definitions[1], expected);
    model.assert_complete();
}

#[tokio::test]
async fn by_tool_without_others_the_final_answer_is_forced() {
    let model = ScriptedModel::new()
        .calls("final_answer", json!({"city": "Oslo"}))
        .calls("final_answer", json!({"city": "Oslo", "celsius": -3}));
    let host = host_of(&model).build().unwrap();
    assert_eq!(ask(&host, OutputMode::Tool).await, oslo());
    let asked = model.requests();
    let only = ("final_answer".to_owned(), forced(), false);
    assert_eq!((demands(&asked[0]), demands(&asked[1])), (only.clone(), only));
    let last = transcript(&asked[1]).pop().unwrap();
    assert!(
        last.ends_with("could not be used: `celsius` is required and missing."),
        "{last}"
    );
}

#[tokio::test]
async fn by_tool_other_calls_of_the_answer_run_first_and_it_is_given_again() {
    let both = calls([("1", "final_answer", "{}"), ("2", "look", "{}")]);
    let model = ScriptedModel::new()
        .answers(both)
        .calls("final_answer", json!({"city": "Oslo", "celsius": -3}));
    let (look, looked) = noting_tool("look");
    let host = host_of(&model).tool(look).build().unwrap();
    assert_eq!(ask(&host, OutputMode::Tool).await, oslo());
    assert_eq!(looked.all().len(), 1);
    assert_eq!(results(&model.requests()[1]), ["2: look is done"]);
}

#[tokio::test]
async fn by_tool_an_answer_in_words_is_read_all_the_same() {
    let model = ScriptedModel::new().says(format!("It is cold: {OSLO}"));
    let host = host_of(&model).build().unwrap();
    assert_eq!(ask(&host, OutputMode::Tool).await, oslo());
}

#[tokio::test]
async fn by_tool_a_cut_answer_is_none() {
    let cut = calls([("1", "final_answer", OSLO)]).with_finish(FinishReason::Length);
    let host = host_of(&ScriptedModel::new().answers(cut)).build().unwrap();
    let asked = host.agent().ask("s", "Oslo?").output::<Weather>();
    let ended = asked.output_mode(OutputMode::Tool).await.unwrap_err();
    assert_eq!(
        ended.to_string(),
        "The model gave no answer: its answer was cut before it said anything."
    );
}

#[tokio::test]
async fn by_tool_a_choice_of_the_request_goes_first() {
    let model = ScriptedModel::new()
        .calls("look", json!({}))
        .calls("final_answer", json!({"city": "Oslo", "celsius": -3}));
    let (look, _) = noting_tool("look");
    let host = host_of(&model).tool(look).build().unwrap();
    let choice = ToolChoice::Tool("look".into());
    let request = host
        .agent()
        .ask("s", "Oslo?")
        .output::<Weather>()
        .output_mode(OutputMode::Tool);
    let settings = ModelSettings::new().with_tool_choice(choice.clone());
    assert_eq!(request.model_settings(settings).await.unwrap(), oslo());
    let choices: Vec<_> = model.requests().iter().map(|request| demands(request).1).collect();
    assert_eq!(choices, [Some(choice), Some(ToolChoice::Required)]);
}

#[tokio::test]
async fn by_tool_the_answer_reaches_a_stream_whole() {
    let model = ScriptedModel::new().calls("final_answer", json!({"value": [1, 2]}));
    let host = host_of(&model).build().unwrap();
    let request = host
        .agent()
        .ask("s", "Which?")
        .output::<Vec<u8>>()
        .output_mode(OutputMode::Tool);
    let reports: Vec<_> = request
        .stream()
        .map(|report| format!("{:?}", report.unwrap()))
        .collect()
        .await;
    assert_eq!(reports[0], "Partial(Array [Number(1), Number(2)])");
    assert_eq!(reports.len(), 2, "{reports:?}");
}

#[tokio::test]
async fn by_prompt_no_request_has_a_schema_and_the_words_do() {
    let model = ScriptedModel::new()
        .says("Cold.")
        .says(format!("Sorry! Here it is:\n```json\n{OSLO}\n```\nAnything else?"));
    let host = host_of(&model).build().unwrap();
    assert_eq!(ask(&host, OutputMode::Prompt).await, oslo());
    let asked = model.requests();
    let nothing = (String::new(), None, false);
    assert_eq!((demands(&asked[0]), demands(&asked[1])), (nothing.clone(), nothing));
    let told = &transcript(&asked[0])[1];
    assert!(
        told.starts_with("user: Give the answer to the next message as JSON that fits this schema"),
        "{told}"
    );
    assert!(told.contains(r#""celsius""#), "{told}");
}

/// A model that works best in one mode.
struct Suited(ScriptedModel, OutputMode);

#[async_trait::async_trait]
impl ChatClient for Suited {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        self.0.chat(call).await
    }

    fn describe(&self, tier: ModelTier) -> ModelInfo {
        self.0.describe(tier).with_output_mode(self.1)
    }
}

#[tokio::test]
async fn the_model_chooses_the_mode_unless_the_request_does() {
    use OutputMode::{Auto, Native, Prompt, Tool};
    for (of_model, of_request, expected) in [
        (Auto, Auto, (String::new(), None, true)),
        (Tool, Auto, ("final_answer".to_owned(), forced(), false)),
        (Prompt, Auto, (String::new(), None, false)),
        (Prompt, Native, (String::new(), None, true)),
        (Native, Tool, ("final_answer".to_owned(), forced(), false)),
    ] {
        let model = ScriptedModel::new().says(OSLO);
        let host = AgentHost::in_memory()
            .chat(Suited(model.clone(), of_model))
            .build()
            .unwrap();
        assert_eq!(ask(&host, of_request).await, oslo());
        assert_eq!(demands(&model.requests()[0]), expected, "{of_model:?} {of_request:?}");
    }
}

#[tokio::test]
async fn a_schema_that_no_tool_can_have_is_asked_for_in_words() {
    let model = ScriptedModel::new().says("[1, 2]");
    let host = host_of(&model).build().unwrap();
    let schema = OutputSchema::new("list", json!({"type": "array", "items": {"type": "integer"}}));
    let request = host.agent().ask("s", "Which?").output_schema(schema);
    let reports = collect(request.output_mode(OutputMode::Tool).stream()).await;
    let Some(TurnProgress::Final(outcome)) = reports.last() else {
        panic!("got {reports:?}")
    };
    assert_eq!(
        (&outcome.status, outcome.text.as_str()),
        (&TurnStatus::Answered, "[1, 2]")
    );
    assert_eq!(demands(&model.requests()[0]), (String::new(), None, false));
}

#[tokio::test]
async fn an_empty_answer_is_asked_for_again() {
    let model = ScriptedModel::new().says(" ").says(OSLO);
    let host = host_of(&model).build().unwrap();
    assert_eq!(ask(&host, OutputMode::Native).await, oslo());
    let asked = transcript(&model.requests()[1]);
    assert!(asked.last().unwrap().contains("it was empty"), "{asked:?}");
}
