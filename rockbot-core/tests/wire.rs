//! The JSON of the types that cross a process boundary. Other programs and older versions read
//! it: a change here is a change of the protocol.

use std::fmt::Debug;
use std::time::Duration;

use rockbot_core::chat::{ChatErrorKind, MicroUsd, ModelSettings, ModelTier, OutputSchema, Role, Spent, Usage};
use rockbot_core::content::{Content, MediaPart};
use rockbot_core::context::{Origin, Priority, Trust};
use rockbot_core::messaging::{ErrorReply, Message, MessageEnvelope};
use rockbot_core::store::{ConversationQuery, StorePath};
use rockbot_core::tool::{
    Effect, ToolError, ToolErrorCode, ToolErrorMessage, ToolFilter, ToolHints, ToolInvokeRequest, ToolInvokeResponse,
    ToolRegistration,
};
use rockbot_core::turn::{
    Approval, ApprovalRequest, Budget, BudgetLimit, BusyPolicy, FinishedCall, Recipient, ResultMode, TurnFailure,
    TurnOutcome, TurnProgress, TurnRequest, TurnStatus,
};
use rockbot_core::user::{
    AgentReply, ConversationHistoryRequest, ConversationHistoryResponse, HistoryTurn, UserFeedback, UserMessage,
};
use rockbot_core::{Timestamp, TurnId};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// `value` is written as `json`, and read back from it.
#[track_caller]
fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, json: &Value) {
    assert_eq!(serde_json::to_value(value).expect("it can be written"), *json);
    assert_eq!(
        serde_json::from_value::<T>(json.clone()).expect("it can be read"),
        *value
    );
}

/// Returns `json` with the name of each member in another case, as .NET programs write it.
fn in_other_case(json: Value, case: fn(&str) -> String) -> Value {
    match json {
        Value::Object(members) => {
            let members = members.into_iter();
            members
                .map(|(name, value)| (case(&name), in_other_case(value, case)))
                .collect()
        }
        Value::Array(values) => values.into_iter().map(|value| in_other_case(value, case)).collect(),
        value => value,
    }
}

fn pascal_case(name: &str) -> String {
    let (first, rest) = name.split_at(1);
    first.to_uppercase() + rest
}

/// `message` is read from a body whose members are named in any case.
#[track_caller]
fn check_any_case<M: Message + Serialize + DeserializeOwned + PartialEq + Debug>(message: &M) {
    for case in [pascal_case, str::to_uppercase, str::to_lowercase] {
        let body = in_other_case(serde_json::to_value(message).expect("it can be written"), case);
        let envelope = MessageEnvelope::new(M::TYPE, body.to_string());
        assert_eq!(envelope.payload::<M>().expect("it can be read"), *message, "{body}");
    }
}

#[test]
fn messages_are_read_in_any_case() {
    let picture = MediaPart::bytes("image/png", vec![1, 2, 3]).with_name("a.png");
    let message = UserMessage::new("s", Content::from("Look.").with_image(picture));
    check_any_case(&message.with_user_id("ann").with_target_agent("helper"));
    check_any_case(
        &AgentReply::new("s", "helper", "Nice.")
            .with_final(false)
            .with_content_type("text/plain"),
    );
    check_any_case(&ConversationHistoryRequest::new("s").with_page(ConversationQuery::new().with_limit(3)));
    let turn = HistoryTurn::new(Role::User, "Look.", Timestamp::from_millis(7));
    check_any_case(&ConversationHistoryResponse::new(vec![turn]).with_earlier(TurnId::from("t")));
    check_any_case(&UserFeedback::new("s", "m", true).with_agent_name("helper"));
    check_any_case(&approval_request().approve());
    check_any_case(&request());
    check_any_case(&request().succeed("booked"));
    check_any_case(&ToolErrorMessage::new(
        &request(),
        &ToolError::new(ToolErrorCode::Timeout, "too late"),
    ));
    check_any_case(&ErrorReply::new("unknown_currency", "there are no books in XYZ"));
}

fn request() -> ToolInvokeRequest {
    ToolInvokeRequest::new("call_1", "book", r#"{"day":1}"#).with_session_id("session-1")
}

#[test]
fn tool_call() {
    check(
        &request(),
        &json!({"toolCallId": "call_1", "toolName": "book", "arguments": "{\"day\":1}", "sessionId": "session-1"}),
    );
    let nothing = ToolInvokeRequest::new("call_1", "book", "{}");
    for json in [
        json!({"toolCallId": "call_1", "toolName": "book"}),
        json!({"toolCallId": "call_1", "toolName": "book", "arguments": null, "sessionId": null, "more": 1}),
    ] {
        assert_eq!(serde_json::from_value::<ToolInvokeRequest>(json).unwrap(), nothing);
    }
}

#[test]
fn tool_message_types() {
    fn of<M: Message>() -> (&'static str, Option<&'static str>) {
        (M::TYPE, M::TOPIC)
    }
    let calls = Some("tool.invoke");
    let results = Some("tool.result");
    assert_eq!(of::<ToolInvokeRequest>(), ("RockBot.Tools.ToolInvokeRequest", calls));
    assert_eq!(
        of::<ToolInvokeResponse>(),
        ("RockBot.Tools.ToolInvokeResponse", results)
    );
    assert_eq!(of::<ToolErrorMessage>(), ("RockBot.Tools.ToolError", results));
}

#[test]
fn tool_error() {
    let error = ToolError::new(ToolErrorCode::Timeout, "it took too long");
    let json = json!({
        "toolCallId": "call_1", "toolName": "book", "code": "Timeout", "message": "it took too long",
        "isRetryable": true,
    });
    check(&ToolErrorMessage::new(&request(), &error), &json);
    let read = ToolError::from(serde_json::from_value::<ToolErrorMessage>(json).unwrap());
    assert_eq!((read.code(), read.message()), (error.code(), error.message()));
    assert!(read.retry_helps());
}

#[test]
fn tool_response() {
    check(
        &request().succeed("booked"),
        &json!({"toolCallId": "call_1", "toolName": "book", "content": "booked", "isError": false}),
    );
    check(
        &request().fail(&ToolError::new(ToolErrorCode::Timeout, "it took too long")),
        &json!({
            "toolCallId": "call_1", "toolName": "book", "content": "it took too long", "isError": true,
            "code": "Timeout",
        }),
    );
    let unknown_members = json!({"toolCallId": "c", "toolName": "t", "content": "", "isError": true, "more": 1});
    let response: ToolInvokeResponse = serde_json::from_value(unknown_members).unwrap();
    assert_eq!(response.code, None, "an older or newer peer is understood");
    let no_content = json!({"toolCallId": "call_1", "toolName": "book", "content": null, "isError": false});
    let response: ToolInvokeResponse = serde_json::from_value(no_content).unwrap();
    assert_eq!(response, request().succeed(""));
}

#[test]
fn tool_error_codes() {
    for code in [
        ToolErrorCode::ToolNotFound,
        ToolErrorCode::ExecutionFailed,
        ToolErrorCode::Timeout,
        ToolErrorCode::InvalidArguments,
        ToolErrorCode::ApprovalRequired,
        ToolErrorCode::Denied,
        ToolErrorCode::Cancelled,
        ToolErrorCode::OutcomeUnknown,
    ] {
        check(&code, &json!(code.name()));
        assert_eq!(ToolError::new(code, "").retry_helps(), code == ToolErrorCode::Timeout);
    }
    for (name, code) in [
        ("tool_not_found", ToolErrorCode::ToolNotFound),
        ("execution_failed", ToolErrorCode::ExecutionFailed),
        ("timeout", ToolErrorCode::Timeout),
        ("invalid_arguments", ToolErrorCode::InvalidArguments),
        ("outcome_unknown", ToolErrorCode::OutcomeUnknown),
        ("OutOfCoffee", ToolErrorCode::ExecutionFailed),
        ("", ToolErrorCode::ExecutionFailed),
    ] {
        assert_eq!(
            serde_json::from_value::<ToolErrorCode>(json!(name)).unwrap(),
            code,
            "{name}"
        );
    }
}

#[test]
fn tool_registration() {
    let mut registration = ToolRegistration::new("book", "Books a table.", json!({"type": "object"}));
    registration.effect = Effect::Idempotent;
    registration.hints = ToolHints::default()
        .with_needs_approval(true)
        .with_time_limit(Duration::from_millis(1_500))
        // What comes over a bus describes itself in text of others.
        .with_outside_text(true);
    check(
        &registration,
        &json!({
            "name": "book",
            "description": "Books a table.",
            "parametersSchema": {"type": "object"},
            "source": "local",
            "effect": "idempotent",
            "hints": {
                "needsApproval": true, "timeLimit": {"secs": 1, "nanos": 500_000_000}, "maxConcurrency": null,
                "keepsResultsWhole": false,
            },
        }),
    );
    // A registration that was read is text of outside.
    let delegating = ToolHints::default().with_delegates(true).with_outside_text(true);
    let json = json!({
        "needsApproval": false, "timeLimit": null, "maxConcurrency": null, "keepsResultsWhole": false, "delegates": true,
    });
    check(&delegating, &json);
}

#[test]
fn turn_request() {
    let request = TurnRequest::new("session-1", "message-1", "hello");
    let json = json!({
        "session": "session-1",
        "message": "message-1",
        "text": "hello",
        "principal": "local",
        "source": "",
        "origin": "user",
        "priority": "user",
        "trust": "user",
        "busy": "queue",
    });
    check(&request, &json);
    let least = json!({"session": "session-1", "message": "message-1", "text": "hello", "trust": "user"});
    assert_eq!(serde_json::from_value::<TurnRequest>(least).unwrap(), request);
}

#[test]
fn turn_request_with_everything() {
    let request = TurnRequest::new("session-1", "message-1", "hello")
        .with_principal("me")
        .with_source("mail")
        .with_origin(Origin::Scheduled)
        .with_priority(Priority::Scheduled)
        .with_trust(Trust::Untrusted)
        .with_tier(ModelTier::High)
        .with_busy(BusyPolicy::Supersede)
        .with_budget(Budget::default())
        .with_output(OutputSchema::new("Answer", json!(true)))
        .with_model_settings(ModelSettings::new().with_temperature(0.5))
        .with_parent("turn-0", 1)
        .with_tools(ToolFilter::all().without(["send"]))
        .with_namespace(StorePath::new("patrol/mail").unwrap())
        .with_result_mode(ResultMode::VerbatimOutput)
        .with_recipient(Recipient::new("main", "mail"))
        .with_announced(true)
        .with_trace("00-1-2-01")
        .with_reply_to("replies")
        .with_correlation_id("correlation-1");
    check(
        &request,
        &json!({
            "session": "session-1",
            "message": "message-1",
            "text": "hello",
            "principal": "me",
            "source": "mail",
            "origin": "scheduled",
            "priority": "scheduled",
            "trust": "untrusted",
            "tier": "high",
            "busy": "supersede",
            "budget": {
                "maxModelCalls": 50,
                "maxToolCalls": 200,
                "maxWallClock": {"secs": 600, "nanos": 0},
                "maxTokens": null,
            },
            "output": {"name": "Answer", "schema": true},
            "modelSettings": {"temperature": 0.5},
            "parent": {"turn": "turn-0", "depth": 1},
            "tools": [{"without": [{"name": "send"}]}],
            "namespace": "patrol/mail",
            "resultMode": "verbatimOutput",
            "recipient": {"session": "main", "name": "mail", "busy": "steer"},
            "isAnnounced": true,
            "trace": "00-1-2-01",
            "replyTo": "replies",
            "correlationId": "correlation-1",
        }),
    );
}

#[test]
fn the_parent_in_a_journal_of_an_older_version() {
    let mut old = serde_json::to_value(TurnRequest::new("s", "m", "hello")).unwrap();
    old["parent"] = json!(["turn-0", 1]);
    let read: TurnRequest = serde_json::from_value(old).unwrap();
    assert_eq!(read, TurnRequest::new("s", "m", "hello").with_parent("turn-0", 1));
}

/// A redelivery after an update must find its turn: the identity never changes.
#[test]
fn turn_identity() {
    let request = TurnRequest::new("session-1", "message-1", "hello");
    assert_eq!(request.turn_id().as_str(), "b315616d9b28e629488d8ac4b5d2f2f8");
    let others = [
        request.clone().with_principal("me"),
        request.clone().with_source("mail"),
        TurnRequest::new("session-2", "message-1", "hello"),
        TurnRequest::new("session-1", "message-2", "hello"),
    ];
    for other in others {
        assert_ne!(other.turn_id(), request.turn_id(), "{other:?}");
        assert_eq!(other.body_digest(), request.body_digest());
    }
    let edited = TurnRequest::new("session-1", "message-1", "bye");
    assert_eq!(edited.turn_id(), request.turn_id());
    assert_ne!(edited.body_digest(), request.body_digest());
}

fn approval_request() -> ApprovalRequest {
    ApprovalRequest::new("turn-1", "call_1", "book", r#"{"day":1}"#)
}

const ARGS_HASH: &str = "70b172aa09a2f1e3a3060a7d3f4307268ada6f17c85dad1fcd70cbaa1c068ff5";

#[test]
fn approval() {
    let request = approval_request();
    check(
        &request,
        &json!({
            "turn": "turn-1", "call": "call_1", "tool": "book", "arguments": "{\"day\":1}", "argsHash": ARGS_HASH,
        }),
    );
    let approved = json!({"turn": "turn-1", "call": "call_1", "argsHash": ARGS_HASH, "approved": true});
    check::<Approval>(&request.approve(), &approved);
    let denied = json!({
        "turn": "turn-1", "call": "call_1", "argsHash": ARGS_HASH, "approved": false, "reason": "too dear",
    });
    check::<Approval>(&request.deny("too dear"), &denied);
}

#[test]
fn turn_outcome() {
    let spent = Spent::default()
        .with_calls(2)
        .with_usage(Usage::new(10, 5))
        .with_cost(MicroUsd(1_200))
        .with_unpriced(1);
    let mut outcome = TurnOutcome::new("turn-1".into(), TurnStatus::Answered, "Done.");
    outcome.usage = Usage::new(10, 5).with_cached(4);
    outcome.model_calls = 2;
    outcome.tiers = [(ModelTier::Low, spent)].into();
    outcome.calls = vec![FinishedCall::new("call_1", "book", false)];
    let json = json!({
        "turn": "turn-1",
        "status": "answered",
        "text": "Done.",
        "usage": {"input": 10, "output": 5, "cached": 4},
        "modelCalls": 2,
        "tiers": {"low": {"calls": 2, "usage": {"input": 10, "output": 5}, "cost": 1200, "unpriced": 1}},
        "calls": [{"call": "call_1", "tool": "book", "isError": false}],
    });
    check(&outcome, &json);
    check(&TurnProgress::Final(outcome), &json!({"final": json}));
}

#[test]
fn turn_status() {
    for (status, json) in [
        (TurnStatus::Answered, json!("answered")),
        (
            TurnStatus::Partial(BudgetLimit::WallClock),
            json!({"partial": "wall_clock"}),
        ),
        (
            TurnStatus::Parked(vec![approval_request()]),
            json!({"parked": [approval_request()]}),
        ),
        (TurnStatus::Joined("turn-0".into()), json!({"joined": "turn-0"})),
        (TurnStatus::Superseded, json!("superseded")),
        (TurnStatus::Cancelled, json!("cancelled")),
        (
            TurnStatus::Failed(TurnFailure::NoAnswer),
            json!({"failed": "no_answer"}),
        ),
        (
            TurnStatus::Failed(TurnFailure::Model(ChatErrorKind::RateLimited)),
            json!({"failed": {"model": "rate_limited"}}),
        ),
    ] {
        check(&status, &json);
    }
}
