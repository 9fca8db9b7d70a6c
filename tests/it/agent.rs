//! Asking an agent.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, FinishReason, ModelInfo, ModelTier, Provenance,
};
use rockbot_core::context::Trust;
use rockbot_core::store::{ConversationMemory, ConversationTurn, StoreError, StoreErrorKind};
use rockbot_core::testing::{ScriptedModel, SequentialIds, mock_tool};
use rockbot_core::tool::tool;
use rockbot_core::turn::{Budget, BudgetLimit, TurnFailure, TurnProgress, TurnRequest, TurnStatus};
use rockbot_core::{Principal, SessionId};
use rockbot_host::{AgentHost, Stores, TurnError};
use serde_json::json;

use crate::support::weather::{OSLO, Weather, oslo};
use crate::support::{calls, collect, ending, host_of, noting_tool, results, settle, transcript, unanswered};

/// Adds two numbers.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[tokio::test]
async fn a_tool_call_and_an_answer() {
    let model = ScriptedModel::new()
        .calls("add", json!({"a": 2, "b": 3}))
        .says("It is 5.");
    let host = host_of(&model)
        .tool(tool("add", |Add { a, b }: Add| async move { (a + b).to_string() }).pure())
        .build()
        .unwrap();
    let answer = host.agent().ask("s", "2 + 3?").await.unwrap();
    assert_eq!(answer.text, "It is 5.");
    assert_eq!(answer.status, TurnStatus::Answered);
    assert_eq!(
        (answer.model_calls, answer.usage.total(), answer.calls.len()),
        (2, 30, 1)
    );
    assert_eq!(results(&model.requests()[1]), ["call_1: 5"]);
    model.assert_complete();
}

#[tokio::test]
async fn what_was_said_is_part_of_the_next_turn_of_its_session() {
    let model = ScriptedModel::new()
        .says("Hello Ann.")
        .says("You are Ann.")
        .says("I don't know.");
    let host = host_of(&model).instructions("Be kind.").build().unwrap();
    let agent = host.agent();
    agent.ask("a", "I am Ann.").await.unwrap();
    agent.ask("a", "Who am I?").await.unwrap();
    agent.ask("b", "Who am I?").await.unwrap();
    let asked: Vec<_> = model.requests().iter().map(|request| transcript(request)).collect();
    assert_eq!(asked[0], ["system: Be kind.", "user: I am Ann."]);
    assert_eq!(
        asked[1],
        [
            "system: Be kind.",
            "user: I am Ann.",
            "assistant: Hello Ann.",
            "user: Who am I?"
        ]
    );
    assert_eq!(asked[2], ["system: Be kind.", "user: Who am I?"]);
    assert_eq!(agent.sessions().await.unwrap(), ["a", "b"]);
    agent.reset("a").await.unwrap();
    assert_eq!(agent.sessions().await.unwrap(), ["b"]);
}

#[tokio::test]
async fn an_answer_of_the_right_shape_is_taken_at_once() {
    let ways = [
        OSLO.to_owned(),
        format!("  {OSLO}\n"),
        format!("```json\n{OSLO}\n```"),
        format!("Here it is:\n```\n{OSLO}\n```\nAnything else?"),
        format!("Here it is: {OSLO} Anything else?"),
    ];
    for said in ways {
        let model = ScriptedModel::new().says(said);
        let host = host_of(&model).build().unwrap();
        assert_eq!(
            host.agent().ask("s", "Oslo?").output::<Weather>().await.unwrap(),
            oslo()
        );
        model.assert_complete();
    }
}

#[tokio::test]
async fn an_answer_of_a_wrong_shape_is_asked_for_again_without_tools() {
    let model = ScriptedModel::new()
        .calls("look", json!({}))
        .says(r#"{"city":"Oslo"}"#)
        .says(OSLO);
    let (look, _) = noting_tool("look");
    let host = host_of(&model).tool(look).build().unwrap();
    assert_eq!(
        host.agent().ask("s", "Oslo?").output::<Weather>().await.unwrap(),
        oslo()
    );
    let requests = model.requests();
    let shown: Vec<_> = requests
        .iter()
        .map(|request| (request.tools.is_empty(), request.output.is_some()))
        .collect();
    assert_eq!(shown, [(false, false), (false, false), (true, true)]);
    let last = transcript(&requests[2]).pop().unwrap();
    let told = "user: Give your answer again as JSON of the shape that was asked for, and nothing else. \
                The last one could not be used: `celsius` is required and missing.";
    assert_eq!(last, told);
    model.assert_complete();
}

#[tokio::test]
async fn an_answer_that_could_be_read_in_two_ways_is_asked_for_again() {
    for said in [
        format!("{OSLO} or {OSLO}"),
        format!("```\n{OSLO}\n```\nor\n```\n{OSLO}\n```"),
    ] {
        let model = ScriptedModel::new().says(said).says(OSLO);
        let host = host_of(&model).build().unwrap();
        assert_eq!(
            host.agent().ask("s", "Oslo?").output::<Weather>().await.unwrap(),
            oslo()
        );
        model.assert_complete();
    }
}

#[tokio::test]
async fn an_answer_may_be_of_a_type_that_is_no_object() {
    async fn check<T>(said: &str, expected: T)
    where
        T: serde::de::DeserializeOwned + schemars::JsonSchema + std::fmt::Debug + PartialEq + Send + 'static,
    {
        let model = ScriptedModel::new().says("as you like").says(said);
        let host = host_of(&model).build().unwrap();
        assert_eq!(host.agent().ask("s", "?").output::<T>().await.unwrap(), expected);
        let requests = model.requests();
        let output = requests[1].output.as_ref().unwrap();
        assert_eq!(output.schema["type"], "object");
    }
    check(r#"{"value": 1.5}"#, 1.5).await;
    check(r#"{"value": ["a", "b"]}"#, vec!["a".to_owned(), "b".to_owned()]).await;
    check(r#"{"value": null}"#, None::<u32>).await;
    check(r#"{"value": {"city":"Oslo","celsius":-3}}"#, Some(oslo())).await;
}

#[tokio::test]
async fn a_limit_of_model_calls_holds_for_answers_of_a_wrong_shape_too() {
    let model = ScriptedModel::new().says("cold");
    let budget = Budget::default().with_max_model_calls(1);
    let host = host_of(&model).budget(budget).build().unwrap();
    let ended = host.agent().ask("s", "Oslo?").output::<Weather>().await;
    let Err(TurnError::Unanswered(outcome)) = ended else {
        panic!("got {ended:?}")
    };
    assert_eq!(outcome.status, TurnStatus::Failed(TurnFailure::Output));
    model.assert_complete();
}

#[tokio::test]
async fn an_answer_that_never_has_the_right_shape_fails_after_two_more_tries() {
    let model = ScriptedModel::new().says("cold").says("very cold").says("-3");
    let host = host_of(&model).build().unwrap();
    let ended = host.agent().ask("s", "Oslo?").output::<Weather>().await;
    let Err(TurnError::Unanswered(outcome)) = ended else {
        panic!("got {ended:?}")
    };
    assert_eq!(outcome.status, TurnStatus::Failed(TurnFailure::Output));
    assert!(outcome.text.contains("`Weather`"), "{}", outcome.text);
    model.assert_complete();
}

#[tokio::test]
async fn a_stream_reports_text_and_tools_in_order_and_the_end_last() {
    let model = ScriptedModel::new()
        .calls("add", json!({"a": 1, "b": 1}))
        .says("one two");
    let host = host_of(&model)
        .tool(tool("add", |Add { a, b }: Add| async move { (a + b).to_string() }).pure())
        .build()
        .unwrap();
    let mut stream = host.agent().stream("s", "go");
    let mut kinds = Vec::new();
    let mut text = String::new();
    while let Some(report) = stream.next().await {
        match report.unwrap() {
            TurnProgress::Delta(delta) => text.push_str(&delta),
            TurnProgress::ToolStarted { call, arguments, .. } => kinds.push(format!("started {call} {arguments}")),
            TurnProgress::ToolFinished { call, content, .. } => kinds.push(format!("finished {call} {content}")),
            TurnProgress::Final(outcome) => kinds.push(format!("final {} after {text}", outcome.text)),
            other => panic!("got {other:?}"),
        }
    }
    assert_eq!(
        kinds,
        [
            r#"started call_1 {"a":1,"b":1}"#,
            "finished call_1 2",
            "final one two after one two"
        ]
    );
}

#[tokio::test]
async fn a_reader_that_never_reads_blocks_no_turn_and_loses_nothing() {
    let long: String = (0..10_000).map(|word| format!("{word} ")).collect();
    let model = ScriptedModel::new().calls("look", json!({})).says(&long).says("next");
    let (look, _) = noting_tool("look");
    let host = host_of(&model).tool(look).build().unwrap();
    let stream = host.agent().stream("s", "go");
    settle().await;
    assert_eq!(host.agent().ask("s", "another").await.unwrap().text, "next");
    let reports = collect(stream).await;
    let deltas: Vec<_> = reports
        .iter()
        .filter_map(|report| match report {
            TurnProgress::Delta(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(deltas, [long.as_str()], "unread text grows together");
    assert_eq!(reports.len(), 4, "{reports:?}");
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_stops_waiting_cancels_the_turn_and_frees_the_session() {
    let model = ScriptedModel::new().hangs().hangs().says("free");
    let host = host_of(&model).ids(SequentialIds::new()).build().unwrap();
    let agent = host.agent().clone();
    let first = agent.request("s", "first");
    let turn = first.turn_id();
    let asking = tokio::spawn({
        let agent = agent.clone();
        async move { agent.run(first).await }
    });
    settle().await;
    asking.abort();
    let ended = agent.outcome(&turn).await.unwrap();
    assert_eq!(
        ending(&ended),
        (
            &TurnStatus::Cancelled,
            "This request was not finished: it was cancelled. Nothing had been done yet."
        )
    );

    let second = agent.request("s", "second");
    let turn = second.turn_id();
    let stream = agent.stream_turn(second).cancel_on_drop();
    settle().await;
    drop(stream);
    settle().await;
    assert_eq!(agent.outcome(&turn).await.unwrap().status, TurnStatus::Cancelled);
    assert_eq!(agent.ask("s", "third").await.unwrap().text, "free");
    model.assert_complete();
}

#[tokio::test]
async fn a_mutating_call_of_a_cancelled_turn_is_waited_for_and_recorded() {
    let model = ScriptedModel::new().calls_all([("send", json!({})), ("send", json!({}))]);
    let (send, mut handle) = mock_tool("send");
    let host = host_of(&model).tool(send).build().unwrap();
    let request = host.agent().request("s", "go");
    let turn = request.turn_id();
    let stream = host.agent().stream_turn(request).cancel_on_drop();
    let call = handle.next_call().await;
    drop(stream);
    settle().await;
    assert!(
        call.cx.cancellation().is_cancelled(),
        "the tool can see that nobody waits"
    );
    call.respond("sent");
    let ended = host.agent().outcome(&turn).await.unwrap();
    assert_eq!(
        ended.text,
        "This request was not finished: it was cancelled. Done before that: send."
    );
    assert_eq!(
        (handle.started(), handle.finished()),
        (1, 1),
        "the second call never ran"
    );
}

#[tokio::test]
async fn a_pure_call_of_a_cancelled_turn_is_dropped() {
    let model = ScriptedModel::new().calls("look", json!({}));
    let (look, mut handle) = mock_tool("look");
    let host = host_of(&model).tool(look.pure()).build().unwrap();
    let request = host.agent().request("s", "go");
    let turn = request.turn_id();
    let running = tokio::spawn({
        let agent = host.agent().clone();
        async move { agent.run(request).await }
    });
    let mut call = handle.next_call().await;
    host.agent().cancel(&turn).await.unwrap();
    call.dropped().await;
    assert_eq!(running.await.unwrap().unwrap().status, TurnStatus::Cancelled);
}

#[tokio::test]
async fn each_kind_of_model_error_is_one_honest_reply_and_the_session_goes_on() {
    use ChatErrorKind::{
        Auth, Cancelled, ContentFiltered, ContextOverflow, CutStream, InvalidRequest, InvalidResponse, NotConfigured,
        NotFound, Other, Overloaded, QuotaExceeded, RateLimited, TimedOut, Unreachable,
    };
    let kinds = [
        RateLimited,
        Overloaded,
        ContextOverflow,
        ContentFiltered,
        Auth,
        QuotaExceeded,
        TimedOut,
        CutStream,
        Unreachable,
        NotFound,
        InvalidRequest,
        InvalidResponse,
        Cancelled,
        NotConfigured,
        Other,
    ];
    for kind in kinds {
        let model = ScriptedModel::new().fails(kind).says("back");
        let host = host_of(&model).build().unwrap();
        let outcome = unanswered(host.agent().ask("s", "hi").await);
        let (status, text) = ending(&outcome);
        assert_eq!(*status, TurnStatus::Failed(TurnFailure::Model(kind)));
        let said = text.split_once(';').map_or(text, |(said, _)| said);
        assert_eq!(said, "The model could not be asked: the script of the model says so");
        assert_eq!(host.agent().ask("s", "again").await.unwrap().text, "back");
    }
}

#[tokio::test]
async fn what_the_host_says_of_a_failure_never_becomes_the_words_of_the_model() {
    let model = ScriptedModel::new()
        .fails(ChatErrorKind::Unreachable)
        .calls("look", json!({}))
        .fails(ChatErrorKind::Unreachable)
        .says("hello");
    let (look, _) = noting_tool("look");
    let host = host_of(&model).tool(look).build().unwrap();
    unanswered(host.agent().ask("s", "one").await);
    let failed = unanswered(host.agent().ask("s", "two").await);
    host.agent().ask("s", "three").await.unwrap();
    let last = model.requests().pop().unwrap();
    let shown: Vec<_> = last
        .messages
        .iter()
        .map(|message| {
            (
                message.text().into_owned(),
                message.content.parts()[0].provenance().clone(),
            )
        })
        .collect();
    let expected = [
        ("two".to_owned(), Provenance::USER),
        // It quotes the server, and is made of what the turn had read.
        (
            failed.text,
            Provenance::new("model server, tool:look", Trust::Untrusted),
        ),
        ("three".to_owned(), Provenance::USER),
    ];
    assert_eq!(shown[1..], expected, "what did nothing left nothing");
}

/// A client that breaks down.
struct PanickingModel;

#[async_trait]
impl ChatClient for PanickingModel {
    async fn chat(&self, _: ChatCall) -> Result<ChatResponse, ChatError> {
        panic!("the client has a bug")
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

#[tokio::test]
async fn a_model_client_that_panics_is_an_honest_reply() {
    let host = AgentHost::in_memory().chat(PanickingModel).build().unwrap();
    for _ in 0..2 {
        let outcome = unanswered(host.agent().ask("s", "hi").await);
        assert_eq!(
            outcome.status,
            TurnStatus::Failed(TurnFailure::Model(ChatErrorKind::Other))
        );
        assert!(!outcome.text.contains("bug"), "{}", outcome.text);
    }
}

#[tokio::test]
async fn an_answer_without_text_says_why() {
    let finishes = [
        (
            FinishReason::Stop,
            "The model gave no answer: it returned an empty answer.",
        ),
        (
            FinishReason::Length,
            "The model gave no answer: its answer was cut before it said anything.",
        ),
        (
            FinishReason::ContentFilter,
            "The model gave no answer: the provider's content filter withheld its answer.",
        ),
    ];
    for (finish, text) in finishes {
        let empty = ChatResponse::text(" \n").with_finish(finish);
        // An empty answer that was not cut is asked for once more.
        let model = ScriptedModel::new().answers(empty.clone()).answers(empty);
        let host = host_of(&model).build().unwrap();
        let outcome = unanswered(host.agent().ask("s", "hi").await);
        assert_eq!(ending(&outcome), (&TurnStatus::Failed(TurnFailure::NoAnswer), text));
    }
}

#[tokio::test]
async fn tool_calls_of_an_answer_that_did_not_finish_are_not_executed() {
    for (finish, status) in [
        (FinishReason::Length, TurnStatus::Partial(BudgetLimit::AnswerLength)),
        (
            FinishReason::ContentFilter,
            TurnStatus::Partial(BudgetLimit::ContentFilter),
        ),
        (FinishReason::Other, TurnStatus::Answered),
    ] {
        let cut = calls([("1", "look", "{}")])
            .with_text("I will look")
            .with_finish(finish);
        let model = ScriptedModel::new().answers(cut).says("next");
        let (look, notes) = noting_tool("look");
        let host = host_of(&model).tool(look).build().unwrap();
        let outcome = host.agent().ask("s", "hi").await.unwrap();
        assert_eq!((ending(&outcome), outcome.calls.len()), ((&status, "I will look"), 0));
        host.agent().ask("s", "and?").await.unwrap();
        assert!(notes.all().is_empty());
        let kept = model.requests()[1]
            .messages
            .iter()
            .any(|message| !message.tool_calls.is_empty());
        assert!(!kept, "no call without a result stays in the conversation");
    }
}

#[tokio::test]
async fn the_same_message_again_is_the_same_turn() {
    let model = ScriptedModel::new().says("once");
    let host = host_of(&model).build().unwrap();
    let request = TurnRequest::new("s", "m1", "hi");
    let first = host.agent().run(request.clone()).await.unwrap();
    let again = host.agent().run(request.clone()).await.unwrap();
    assert_eq!(again, first);
    let reports = collect(host.agent().stream_turn(request)).await;
    assert_eq!(reports, [TurnProgress::Final(first)]);

    let other = TurnRequest::new("s", "m1", "something else");
    let refused = host.agent().run(other).await.unwrap_err();
    assert!(
        refused.to_string().contains("received before with other content"),
        "{refused}"
    );
    model.assert_complete();
}

#[tokio::test]
async fn the_same_message_while_its_turn_runs_waits_for_the_same_answer() {
    let model = ScriptedModel::new().calls("look", json!({})).says("once");
    let (look, mut handle) = mock_tool("look");
    let host = host_of(&model).tool(look.pure()).build().unwrap();
    let request = TurnRequest::new("s", "m1", "hi");
    let (first, again, ()) = tokio::join!(host.agent().run(request.clone()), host.agent().run(request), async {
        handle.next_call().await.respond("seen")
    });
    assert_eq!(first.unwrap(), again.unwrap());
    model.assert_complete();
}

#[tokio::test]
async fn two_hosts_live_in_one_process() {
    let models = ["one", "two"].map(|name| ScriptedModel::new().says(name));
    let hosts = models.each_ref().map(|model| host_of(model).build().unwrap());
    let (one, two) = tokio::join!(hosts[0].agent().ask("s", "hi"), hosts[1].agent().ask("s", "hi"));
    assert_eq!(
        (one.unwrap().text, two.unwrap().text),
        ("one".to_owned(), "two".to_owned())
    );
}

#[test]
fn a_host_runs_in_every_kind_of_runtime() {
    let runtimes = [
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap(),
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_time()
            .build()
            .unwrap(),
    ];
    for runtime in runtimes {
        runtime.block_on(async {
            let model = ScriptedModel::new()
                .calls_all([("look", json!({})), ("look", json!({}))])
                .says("done");
            let (look, notes) = noting_tool("look");
            let host = host_of(&model).tool(look).build().unwrap();
            assert_eq!(host.agent().ask("s", "hi").await.unwrap().text, "done");
            assert_eq!(notes.all().len(), 2);
            host.shutdown(Duration::from_secs(5)).await;
        });
    }
}

#[tokio::test]
async fn a_host_that_stops_tells_every_waiting_caller() {
    let model = ScriptedModel::new().hangs();
    let host = host_of(&model).build().unwrap();
    let agent = host.agent().clone();
    let running = agent.stream("s", "one");
    let queued = agent.stream("s", "two");
    let asking = tokio::spawn({
        let agent = agent.clone();
        async move { agent.ask("s", "three").await }
    });
    settle().await;
    drop(host);
    for stream in [running, queued] {
        let reports: Vec<_> = stream.collect().await;
        assert!(
            matches!(reports.as_slice(), [Err(TurnError::Halted)]),
            "got {reports:?}"
        );
    }
    assert!(matches!(asking.await.unwrap(), Err(TurnError::Halted)));
    assert!(matches!(agent.ask("s", "four").await, Err(TurnError::Halted)));
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_leaves_turns_where_they_are_and_tells_it() {
    let model = ScriptedModel::new().calls("pay", json!({})).hangs();
    let (pay, _) = noting_tool("pay");
    let host = host_of(&model).tool(pay.needs_approval()).build().unwrap();
    let agent = host.agent().clone();
    let parked = agent.run(TurnRequest::new("a", "m1", "pay")).await.unwrap();
    let mut parked_stream = agent.stream_turn(TurnRequest::new("a", "m1", "pay"));
    let waiting = tokio::spawn({
        let agent = agent.clone();
        let turn = parked.turn.clone();
        async move { agent.outcome(&turn).await }
    });
    let asking = tokio::spawn({
        let agent = agent.clone();
        async move { agent.ask("b", "hi").await }
    });
    settle().await;
    host.shutdown(Duration::from_secs(5)).await;
    assert!(matches!(asking.await.unwrap(), Err(TurnError::Halted)));
    assert!(matches!(waiting.await.unwrap(), Err(TurnError::Halted)));
    assert!(matches!(parked_stream.next().await, Some(Err(TurnError::Halted))));
    assert!(parked_stream.next().await.is_none());
}

#[tokio::test]
async fn a_host_says_everything_that_keeps_it_from_being_built() {
    let (look, _) = noting_tool("look");
    let (spaced, _) = noting_tool("two words");
    let error = AgentHost::in_memory()
        .tool(look.clone())
        .tool(look)
        .tool(spaced)
        .build()
        .unwrap_err();
    assert_eq!(error.problems.len(), 3, "{error}");
    assert!(error.to_string().contains("call `.chat(…)`"), "{error}");
}

/// A memory that cannot be read, or that can be read but breaks down when it is written.
#[derive(Debug)]
struct BrokenMemory {
    reads: bool,
}

#[async_trait]
impl ConversationMemory for BrokenMemory {
    async fn append(&self, _: &Principal, _: &SessionId, _: Vec<ConversationTurn>) -> Result<(), StoreError> {
        panic!("the memory has a bug")
    }

    async fn recent(&self, _: &Principal, _: &SessionId, _: usize) -> Result<Vec<ConversationTurn>, StoreError> {
        if self.reads {
            Ok(Vec::new())
        } else {
            Err(StoreError::new(StoreErrorKind::Io, "the conversation cannot be read").with_cause("input/output error"))
        }
    }

    async fn clear(&self, _: &Principal, _: &SessionId) -> Result<(), StoreError> {
        Ok(())
    }

    async fn sessions(&self, _: &Principal) -> Result<Vec<SessionId>, StoreError> {
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn a_memory_that_cannot_be_read_is_an_honest_reply() {
    let memory = BrokenMemory { reads: false };
    let host = host_of(&ScriptedModel::new())
        .stores(Stores::new().with_conversation_memory(memory))
        .build()
        .unwrap();
    let outcome = unanswered(host.agent().ask("s", "hi").await);
    assert_eq!(outcome.status, TurnStatus::Failed(TurnFailure::Storage));
    let told = "This request could not be finished: the agent has a failure of its own, which its operator finds under the reference ";
    assert!(
        outcome.text.starts_with(told) && !outcome.text.contains("input/output"),
        "{}",
        outcome.text
    );
}

#[tokio::test]
async fn an_answer_goes_out_although_it_cannot_be_remembered() {
    let model = ScriptedModel::new().says("one").says("two");
    let host = host_of(&model)
        .stores(Stores::new().with_conversation_memory(BrokenMemory { reads: true }))
        .build()
        .unwrap();
    assert_eq!(host.agent().ask("s", "hi").await.unwrap().text, "one");
    assert_eq!(host.agent().ask("s", "hi").await.unwrap().text, "two");
}

#[tokio::test(start_paused = true)]
async fn turns_leave_no_task_behind_however_they_end() {
    let model = ScriptedModel::new()
        .calls_all([("look", json!({})), ("look", json!({}))])
        .says("answered")
        .fails(ChatErrorKind::Auth)
        .hangs()
        .hangs()
        .calls("pay", json!({}))
        .says("paid");
    let (look, _) = noting_tool("look");
    let (pay, _) = noting_tool("pay");
    let host = host_of(&model).tool(look).tool(pay.needs_approval()).build().unwrap();
    let agent = host.agent().clone();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();

    agent.ask("s", "answered").await.unwrap();
    unanswered(agent.ask("s", "failed").await);
    let waited = tokio::time::timeout(Duration::from_secs(1), agent.ask("s", "given up")).await;
    assert!(waited.is_err());
    let stream = agent.stream("s", "dropped").cancel_on_drop();
    settle().await;
    drop(stream);
    settle().await;
    assert_eq!(tasks(), 0);

    let parked = agent.run(agent.request("s", "parked")).await.unwrap();
    settle().await;
    assert_eq!(tasks(), 1, "somebody watches when the question expires");
    agent.decide(agent.approvals()[0].approve()).await.unwrap();
    assert_eq!(agent.outcome(&parked.turn).await.unwrap().text, "paid");
    settle().await;
    assert_eq!(tasks(), 0);
    model.assert_complete();
}

#[tokio::test(start_paused = true)]
async fn a_host_that_runs_goes_on_with_what_was_interrupted_and_stops_when_told() {
    let folder = tempfile::tempdir().unwrap();
    let request = TurnRequest::new("s", "m1", "go");
    let host = host_of(&ScriptedModel::new().hangs())
        .data_dir(folder.path())
        .build()
        .unwrap();
    let stream = host.agent().stream_turn(request.clone());
    settle().await;
    host.shutdown(Duration::from_secs(5)).await;
    drop((host, stream));

    let host = host_of(&ScriptedModel::new().says("at last"))
        .data_dir(folder.path())
        .build()
        .unwrap();
    let agent = host.agent().clone();
    let stop = async { agent.outcome(&request.turn_id()).await };
    let mut ended = None;
    host.run_until(async { ended = Some(stop.await) }).await.unwrap();
    assert_eq!(ended.unwrap().unwrap().text, "at last");
    assert!(matches!(agent.ask("s", "more").await, Err(TurnError::Halted)));
}

#[tokio::test]
async fn limits_of_a_request_go_before_those_of_the_host() {
    use rockbot_core::turn::Budget;

    let model = ScriptedModel::new().calls("look", json!({})).says("so far");
    let (look, _) = noting_tool("look");
    let host = host_of(&model).tool(look).build().unwrap();
    let budget = Budget::default().with_max_model_calls(1);
    let request = host.agent().request("s", "go").with_budget(budget);
    let outcome = host.agent().run(request).await.unwrap();
    assert_eq!(
        ending(&outcome),
        (&TurnStatus::Partial(BudgetLimit::ModelCalls), "so far")
    );
}

/// Adds two numbers.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct AddNumbers {
    a: i64,
    b: i64,
}

#[cfg(feature = "llm")]
#[tokio::test]
async fn the_first_agent_of_the_readme_works_without_a_key() {
    let add = tool(
        "add",
        |AddNumbers { a, b }: AddNumbers| async move { (a + b).to_string() },
    )
    .pure();
    let host = AgentHost::in_memory()
        .chat(rockbot::chat::OfflineModel::new())
        .tool(add)
        .build()
        .unwrap();
    let answer = host.agent().ask("me", "Add 19 and 23.").await.unwrap();
    assert!(answer.text.ends_with("\n42"), "{answer}");
}

#[tokio::test]
async fn an_id_that_is_too_long_is_refused_in_words() {
    let model = ScriptedModel::new();
    let host = host_of(&model).build().unwrap();
    let long = "x".repeat(100_000);
    let request = |session: &str, id: &str| TurnRequest::new(session, id, "hi");
    for (what, request) in [
        ("session", request(&long, "m")),
        ("principal", request("s", "m").with_principal(Principal::from(&*long))),
        ("source", request("s", "m").with_source(&*long)),
        ("id", request("s", &long)),
    ] {
        let error = host.agent().run(request).await.unwrap_err();
        let expected = format!("the {what} of the message has 100000 bytes: use one of at most 1024 bytes");
        assert_eq!((error.to_string(), error.retry_helps()), (expected, false));
    }
    assert_eq!(model.requests().len(), 0);
}
