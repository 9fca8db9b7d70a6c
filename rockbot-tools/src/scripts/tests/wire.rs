//! The messages between agents and scripts managers, as the original writes them.

use std::time::Duration;

use rockbot_core::messaging::{Message, MessageEnvelope};
use serde_json::{Value, json};

use super::super::guarantees::Guarantees;
use super::super::runner::{Script, ScriptError, ScriptOutput};
use super::super::wire::{
    ScriptCancelled, ScriptGuaranteesRequest, ScriptGuaranteesResponse, ScriptInvokeRequest, ScriptInvokeResponse,
};

const ELAPSED: Duration = Duration::from_millis(2_040);

fn script() -> Script {
    let packages = ["numpy".parse().unwrap(), "pandas==2.2.3".parse().unwrap()];
    let script = Script::new("print(1)").with_input("[1]").with_packages(packages);
    script.with_timeout(Duration::from_millis(1_500))
}

/// Returns the JSON of a message, and checks that it is read back from it.
fn written<M>(message: &M) -> Value
where
    M: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let value = serde_json::to_value(message).unwrap();
    assert_eq!(&serde_json::from_value::<M>(value.clone()).unwrap(), message);
    value
}

#[test]
fn requests_are_the_original_s() {
    let request = ScriptInvokeRequest::new("c1", &script(), Guarantees::NONE);
    let expected = json!({
        "toolCallId": "c1",
        "script": "print(1)",
        "inputData": "[1]",
        "timeoutSeconds": 2,
        "pipPackages": ["numpy", "pandas==2.2.3"],
    });
    assert_eq!(written(&request), expected);
    assert_eq!(request.script(), Ok(script().with_timeout(Duration::from_secs(2))));
    let bare = ScriptInvokeRequest::new("c2", &Script::new("x"), Guarantees::ALL);
    let required = ["no_network", "no_files", "no_credentials", "limits", "cleanup"];
    let expected = json!({"toolCallId": "c2", "script": "x", "timeoutSeconds": 30, "requiredGuarantees": required});
    assert_eq!(written(&bare), expected);
}

#[test]
fn requests_of_the_original_are_read() {
    let body = r#"{"ToolCallId":"c1","Script":"x","InputData":null,"PipPackages":null}"#;
    let envelope = MessageEnvelope::new(ScriptInvokeRequest::TYPE, body);
    let request: ScriptInvokeRequest = envelope.payload().unwrap();
    assert_eq!(
        request,
        ScriptInvokeRequest::new("c1", &Script::new("x"), Guarantees::NONE)
    );
    let hostile = json!({"toolCallId": "c", "script": "x", "pipPackages": ["x; curl evil"]});
    let hostile: ScriptInvokeRequest = serde_json::from_value(hostile).unwrap();
    let reason = "`x; curl evil` is not a package: write a name such as `numpy`, or `name==version`";
    assert_eq!(hostile.script(), Err(ScriptError::Refused(reason.to_owned())));
}

#[test]
fn answers_are_the_original_s() {
    let ran = |ran| ScriptInvokeResponse::new("c1", ran, ELAPSED, Guarantees::NONE);
    let with = |output: ScriptOutput| ScriptOutput {
        guarantees: Some(Guarantees::NONE),
        ..output
    };
    let output = ScriptOutput::new(0, "42\n", "");
    let answer = ran(Ok(output.clone()));
    let expected = json!({"toolCallId": "c1", "output": "42\n", "exitCode": 0, "elapsedMs": 2_040});
    assert_eq!(written(&answer), expected);
    assert_eq!(answer.into_output(), Ok(with(output)));

    let output = ScriptOutput::new(3, "", "why\n");
    let answer = ran(Ok(output.clone()));
    let expected = json!({"toolCallId": "c1", "stderr": "why\n", "exitCode": 3, "elapsedMs": 2_040});
    assert_eq!(written(&answer), expected);
    assert_eq!(answer.into_output(), Ok(with(output)));
}

#[test]
fn a_script_without_an_exit_code_says_why_to_the_original_and_to_us() {
    let ran = |ran| ScriptInvokeResponse::new("c1", ran, ELAPSED, Guarantees::NONE);
    let answer = ran(Ok(ScriptOutput::timed_out("half", "oh")));
    let said = "oh\nScript timed out after 2 s";
    let expected = json!({"toolCallId": "c1", "output": "half", "stderr": said, "exitCode": -1, "elapsedMs": 2_040,
        "failure": "timed_out"});
    assert_eq!(written(&answer), expected);
    let read = answer.into_output().unwrap();
    assert_eq!((read.exit_code, &*read.stdout, &*read.stderr), (None, "half", "oh"));

    for (error, kind) in [
        (ScriptError::Unavailable("no bwrap".to_owned()), "unavailable"),
        (ScriptError::Packages("no index".to_owned()), "packages"),
        (ScriptError::Refused("too large".to_owned()), "refused"),
    ] {
        let answer = ran(Err(error.clone()));
        let value = written(&answer);
        assert_eq!((&value["failure"], &value["exitCode"]), (&json!(kind), &json!(-1)));
        assert_eq!(answer.into_output(), Err(error));
    }
    let later = json!({"toolCallId": "c1", "exitCode": -1, "stderr": "why", "failure": "a newer reason"});
    let later: ScriptInvokeResponse = serde_json::from_value(later).unwrap();
    assert_eq!(later.into_output(), Err(ScriptError::Unavailable("why".to_owned())));
}

#[test]
fn guarantees_are_those_that_are_declared() {
    let all = ScriptInvokeResponse::new("c", Ok(ScriptOutput::new(0, "", "")), ELAPSED, Guarantees::ALL);
    assert_eq!(all.into_output().unwrap().guarantees, Some(Guarantees::ALL));
    // The original's managers declare nothing, and a newer one declares more than is known here.
    for (declared, expected) in [
        (json!(null), Guarantees::NONE),
        (json!([]), Guarantees::NONE),
        (json!(["no_network", "no_gravity"]), {
            let mut one = Guarantees::NONE;
            one.no_network = true;
            one
        }),
    ] {
        let answer = json!({"toolCallId": "c", "exitCode": 0, "guarantees": declared});
        let answer: ScriptInvokeResponse = serde_json::from_value(answer).unwrap();
        assert_eq!(answer.guarantees, expected);
    }
    let answer = ScriptGuaranteesResponse::new(Guarantees::ALL);
    let names = ["no_network", "no_files", "no_credentials", "limits", "cleanup"];
    assert_eq!(written(&answer), json!({ "guarantees": names }));
}

#[test]
fn types_and_topics_are_the_original_s_where_it_has_them() {
    let named = [
        (ScriptInvokeRequest::TYPE, ScriptInvokeRequest::TOPIC),
        (ScriptInvokeResponse::TYPE, ScriptInvokeResponse::TOPIC),
        (ScriptCancelled::TYPE, ScriptCancelled::TOPIC),
        (ScriptGuaranteesRequest::TYPE, ScriptGuaranteesRequest::TOPIC),
        (ScriptGuaranteesResponse::TYPE, ScriptGuaranteesResponse::TOPIC),
    ];
    let expected = [
        ("RockBot.Scripts.ScriptInvokeRequest", Some("script.invoke")),
        ("RockBot.Scripts.ScriptInvokeResponse", Some("script.result")),
        ("rockbot.ScriptCancelled", Some("script.cancel")),
        ("rockbot.ScriptGuaranteesRequest", Some("script.guarantees")),
        ("rockbot.ScriptGuaranteesResponse", None),
    ];
    assert_eq!(named, expected);
    assert_eq!(written(&ScriptCancelled::new("c1")), json!({"toolCallId": "c1"}));
}
