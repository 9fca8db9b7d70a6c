//! Calls that a model writes into its text although it was offered native ones.

use std::time::Duration;

use rockbot::testing::ScriptedModel;
use rockbot_core::chat::{ChatErrorKind, ChatResponse, FinishReason, Reasoning, Role, ToolCall};
use rockbot_core::config::Config;
use rockbot_core::turn::TurnProgress;
use rockbot_host::settings::HostSettings;
use rockbot_host::turn::TraceEvent;
use rockbot_host::{AgentHost, TurnPolicies};

use crate::support::{Notes, collect, host_of, noting_tool};

const CALL: &str = "I'll note it.\n```json\n{\"name\": \"note\", \"arguments\": {\"n\": 1}}\n```";

fn hosted(model: &ScriptedModel) -> (AgentHost, Notes) {
    let (tool, notes) = noting_tool("note");
    (host_of(model).tool(tool).build().unwrap(), notes)
}

#[tokio::test]
async fn a_model_whose_first_call_is_text_is_asked_in_text_from_then_on() {
    let model = ScriptedModel::new().says(CALL).says(CALL).says("Noted.").says("Hello!");
    let (host, notes) = hosted(&model);
    let answer = host.agent().ask("s", "Note milk.").await.unwrap();
    assert_eq!((answer.text.as_str(), notes.all().len()), ("Noted.", 1));
    host.agent().ask("other session", "Hello!").await.unwrap();
    let offered: Vec<_> = model
        .requests()
        .iter()
        .map(|request| request.tools.entries().len())
        .collect();
    assert_eq!(
        offered,
        [1, 0, 0, 0],
        "the tools are words in all requests but the first"
    );
    let shown: Vec<_> = model.requests()[2]
        .messages
        .iter()
        .rev()
        .take(2)
        .map(|message| (message.role, message.text().into_owned(), message.tool_calls.len()))
        .collect();
    // The model reads its call in a form that it can write, and that the result is to be answered.
    let result =
        "[Tool result for note]: note is done\n\nNow answer in plain words, or call another tool if one is needed.";
    let call = "I'll note it.\n\ntool_call_name: note\ntool_call_arguments: {\"n\":1}";
    let expected = [(Role::User, result, 0), (Role::Assistant, call, 0)];
    assert_eq!(
        shown,
        expected.map(|(role, text, calls)| (role, text.to_owned(), calls))
    );
}

#[tokio::test]
async fn a_model_that_makes_native_calls_too_reads_all_of_them_as_native() {
    let native = ChatResponse::calls([ToolCall::new("call_1", "note", r#"{"n": 2}"#)]);
    let model = ScriptedModel::new().answers(native).says(CALL).says("Noted.");
    let (host, notes) = hosted(&model);
    host.agent().ask("s", "Note milk.").await.unwrap();
    let requests = model.requests();
    assert!(requests.iter().all(|request| request.tools.entries().len() == 1));
    let called = requests[2].messages.iter().flat_map(|message| &message.tool_calls);
    let ids: Vec<_> = called.map(|call| call.id.as_str()).collect();
    assert_eq!((ids, notes.all().len()), (vec!["call_1", "text00001"], 2));
}

#[tokio::test]
async fn calls_in_text_are_shown_in_later_turns_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new().says(CALL).says(CALL).says("Noted.");
    let host = |model: &ScriptedModel| {
        let tool = noting_tool("note").0;
        host_of(model).tool(tool).data_dir(folder.path()).build().unwrap()
    };
    let first = host(&model);
    first.agent().ask("s", "Note milk.").await.unwrap();
    let rounds = first.agent().history("s").await.unwrap()[1].rounds.clone();
    assert_eq!(rounds.iter().map(|round| round.from_text).collect::<Vec<_>>(), [true]);
    first.shutdown(Duration::from_secs(10)).await;
    drop(first);

    // Another program, which has not seen the model call, goes by the conversation.
    let model = ScriptedModel::new().says("You're welcome.");
    host(&model).agent().ask("s", "Thanks.").await.unwrap();
    let messages = &model.requests()[0].messages;
    let texts: Vec<_> = messages.iter().map(|message| message.text().into_owned()).collect();
    let past = [
        "Note milk.",
        "tool_call_name: note\ntool_call_arguments: {\"n\":1}",
        "[Tool result for note]: note is done",
        "Noted.",
        "Thanks.",
    ];
    assert_eq!(texts[texts.len() - past.len()..], past);
}

#[tokio::test]
async fn a_model_whose_answer_the_server_cannot_read_is_asked_for_calls_in_text() {
    let model = || {
        ScriptedModel::new()
            .fails(ChatErrorKind::InvalidResponse)
            .says(CALL)
            .says("Noted.")
    };
    let asked = model();
    let (host, notes) = hosted(&asked);
    let answer = host.agent().ask("s", "Note milk.").await.unwrap();
    assert_eq!((answer.text.as_str(), notes.all().len()), ("Noted.", 1));
    let offered: Vec<_> = asked
        .requests()
        .iter()
        .map(|request| request.tools.entries().len())
        .collect();
    assert_eq!(
        offered,
        [1, 0, 0],
        "the tools are words once the server could not read a call"
    );
    let words: String = asked.requests()[1]
        .messages
        .iter()
        .map(|message| message.text().to_string())
        .collect();
    assert!(words.contains("note"), "{words}");

    let refused = model();
    let notes = Notes::default();
    let policies = TurnPolicies::new().with_text_call_fallback(false);
    let host = host_of(&refused)
        .tool(noting_tool("note").0)
        .policies(policies)
        .build()
        .unwrap();
    host.agent().ask("s", "Note milk.").await.unwrap_err();
    assert_eq!((refused.requests().len(), notes.all().len()), (1, 0));
}

#[tokio::test]
async fn the_trace_tells_which_calls_were_read_from_text() {
    let folder = tempfile::tempdir().unwrap();
    let model = ScriptedModel::new().says(CALL).says(CALL).says("Noted.");
    let builder = host_of(&model).tool(noting_tool("note").0).data_dir(folder.path());
    let host = builder.build().unwrap();
    let answer = host.agent().ask("s", "Note milk.").await.unwrap();
    let trace = host.trace(&answer.turn).await.unwrap().unwrap();
    let answers = trace.entries().iter().filter_map(|entry| match &entry.event {
        TraceEvent::ModelAnswered { response, .. } => Some(response.calls_from_text),
        _ => None,
    });
    assert_eq!(answers.collect::<Vec<_>>(), [true, false]);
}

#[tokio::test]
async fn a_call_in_the_thoughts_of_an_empty_answer_is_executed() {
    let thoughts = "The user wants a note.<|tool_calls_section_begin|><|tool_call_begin|>functions.note:0\
        <|tool_call_argument_begin|>{\"n\": 1}<|tool_call_end|><|tool_calls_section_end|>";
    let thinking = |text: &str| ChatResponse::text(text).with_reasoning(Reasoning::new(thoughts));
    for (text, noted) in [("", 1), ("There is nothing to note.", 0)] {
        let model = ScriptedModel::new().answers(thinking(text)).says("Noted.");
        let (host, notes) = hosted(&model);
        host.agent().ask("s", "Note milk.").await.unwrap();
        assert_eq!(notes.all().len(), noted, "{text}");
    }
}

#[tokio::test]
async fn a_call_in_the_text_is_not_streamed() {
    let model = ScriptedModel::new().says(CALL).says(CALL).says("Noted.");
    let (host, _) = hosted(&model);
    let reports = collect(host.agent().stream("s", "Note milk.")).await;
    let shown: String = reports
        .iter()
        .filter_map(|report| match report {
            TurnProgress::Delta(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert!(
        shown.starts_with("I'll note it.") && shown.ends_with("Noted."),
        "{shown}"
    );
    assert!(!shown.contains('{') && !shown.contains('`'), "{shown}");
}

#[tokio::test]
async fn texts_about_calls_are_answers() {
    for text in [
        "A call looks like this:\n```json\n{\"name\": \"note\", \"arguments\": {}}\n```",
        "{\"name\": \"other\", \"arguments\": {}}",
        "{\"name\": \"note\", \"arguments\": {\"n\": \"1",
        "Write `note` and then a JSON object.",
    ] {
        let model = ScriptedModel::new().says(text);
        let (host, notes) = hosted(&model);
        let reports = collect(host.agent().stream("s", "How does a call look?")).await;
        let Some(TurnProgress::Final(outcome)) = reports.last() else {
            panic!("{reports:?}")
        };
        assert_eq!((outcome.text.as_str(), notes.all().len()), (text, 0));
        let shown = reports.iter().filter_map(|report| match report {
            TurnProgress::Delta(text) => Some(text.as_str()),
            _ => None,
        });
        assert_eq!(shown.collect::<String>(), text);
    }
    let cut = ChatResponse::text(CALL).with_finish(FinishReason::Length);
    let model = ScriptedModel::new().answers(cut);
    let (host, notes) = hosted(&model);
    let answer = host.agent().ask("s", "How does a call look?").await.unwrap();
    assert_eq!(answer.text, CALL);
    assert_eq!(notes.all().len(), 0);
}

#[tokio::test]
async fn a_setting_turns_it_off() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::new()
        .with_text("agent.json", r#"{ "AgentHost": { "TextCallFallback": false } }"#)
        .unwrap();
    let settings = HostSettings::read(&config, folder.path()).unwrap();
    let off = TurnPolicies::new().with_text_call_fallback(false);
    for configured in [true, false] {
        let (tool, notes) = noting_tool("note");
        let model = ScriptedModel::new().says(CALL);
        let builder = host_of(&model).tool(tool);
        let host = if configured {
            builder
                .settings(&settings)
                .policies(TurnPolicies::new().with_evaluation(rockbot_host::turn::Evaluation::OFF))
        } else {
            builder.policies(off.clone())
        };
        let host = host.build().unwrap();
        let answer = host.agent().ask("s", "How does a call look?").await.unwrap();
        assert_eq!(answer.text, CALL);
        assert_eq!(notes.all().len(), 0);
    }
}
