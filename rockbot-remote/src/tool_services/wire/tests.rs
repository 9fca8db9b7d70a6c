use proptest::prelude::*;
use serde_json::json;

use super::*;

#[track_caller]
fn check(body: &str, expected: Reply) {
    assert_eq!(Reply::parse(body.as_bytes()), Some(expected), "{body}");
}

fn last(text: &str) -> Reply {
    Reply::Part {
        text: text.to_owned(),
        is_last: true,
    }
}

fn failed(kind: &str, message: &str) -> Reply {
    Reply::Failed {
        kind: kind.to_owned(),
        message: message.to_owned(),
    }
}

#[test]
fn replies_are_read_as_they_are_meant() {
    check(
        r#"{"error": null, "response": "hi", "end_of_stream": true}"#,
        last("hi"),
    );
    check(r#"{"response": "hi", "more": 1}"#, last("hi"));
    check(r#"{"response": "hi", "error": false}"#, last("hi"));
    check("{}", last(""));
    check(r#"{"response": null}"#, last("null"));
    check(r#"{"response": {"a": [1, 2]}}"#, last(r#"{"a":[1,2]}"#));
    let part = Reply::Part {
        text: "a".to_owned(),
        is_last: false,
    };
    check(r#"{"response": "a", "end_of_stream": false}"#, part);
    check(
        r#"{"error": {"type": "tool-service-error", "message": "bang"}, "response": "", "end_of_stream": true}"#,
        failed("tool-service-error", "bang"),
    );
    check(r#"{"error": {}}"#, failed("", ""));
    check(r#"{"error": "oops"}"#, failed("", "oops"));
    check(r#"{"error": {"type": null, "message": 7}}"#, failed("", "7"));
    for body in ["", "null", "[]", "\"hi\"", "{"] {
        assert_eq!(Reply::parse(body.as_bytes()), None, "{body}");
    }
}

#[test]
fn replies_are_written_as_trustgraph_writes_them() {
    let json = |reply: ReplyBody<'_>| String::from_utf8(reply.to_json()).unwrap();
    assert_eq!(
        json(ReplyBody::last("hi")),
        r#"{"error":null,"response":"hi","end_of_stream":true}"#
    );
    assert_eq!(
        json(ReplyBody::part("h")),
        r#"{"error":null,"response":"h","end_of_stream":false}"#
    );
    assert_eq!(
        json(ReplyBody::error(SERVICE_ERROR, "bang")),
        r#"{"error":{"type":"tool-service-error","message":"bang"},"response":"","end_of_stream":true}"#
    );
}

#[test]
fn requests_are_read_with_and_without_a_user() {
    let request = |body: &str| Request::parse(body.as_bytes());
    let expected = Request {
        user: "alice".to_owned(),
        config: json!({"style": "pun"}),
        arguments: json!({"topic": "cats"}),
    };
    let body = r#"{"user": "alice", "config": "{\"style\": \"pun\"}", "arguments": "{\"topic\": \"cats\"}", "x": 1}"#;
    assert_eq!(request(body), Ok(expected));
    let nothing = Request {
        user: String::new(),
        config: json!({}),
        arguments: json!({}),
    };
    assert_eq!(request("{}").as_ref(), Ok(&nothing));
    assert_eq!(request(r#"{"config": "", "arguments": null, "user": 7}"#), Ok(nothing));
    for (body, error) in [
        ("[]", "the request is no JSON object"),
        (
            r#"{"config": {}}"#,
            "`config` must be the JSON text of an object, in quotes",
        ),
        (
            r#"{"arguments": "[1]"}"#,
            "`arguments` must be the JSON text of an object",
        ),
    ] {
        assert_eq!(request(body), Err(error.to_owned()));
    }
    assert!(request("").unwrap_err().starts_with("the request is not JSON: "));
}

proptest! {
    #[test]
    fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Reply::parse(&body);
        let _ = Request::parse(&body);
    }

    #[test]
    fn what_is_written_is_read(text in ".{0,60}") {
        let expected = Reply::Part { text: text.clone(), is_last: true };
        prop_assert_eq!(Reply::parse(&ReplyBody::last(&text).to_json()), Some(expected));
    }
}
