//! Broken requests: whatever is sent, reading it ends with an object or an error.

use rockbot_core::testing::Mutations;
use serde_json::value::RawValue;

use super::content::content_of;
use super::rpc::{envelope, parsed};
use crate::a2a_wire::{SendMessage, v03};

const NEW: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": {
    "messageId": "m", "contextId": "c", "taskId": null, "role": "ROLE_USER", "parts": [{"text": "a"},
    {"raw": "AAAA", "mediaType": "image/png", "filename": "a.png"}, {"url": "https://example.com/a"}, {"data": {"a": [1, null]}}],
    "metadata": {"skill": "s", "other": [{}]}, "extensions": ["e"], "referenceTaskIds": []},
    "configuration": {"acceptedOutputModes": ["text/plain"], "historyLength": 1, "returnImmediately": true}, "metadata": {}}}"#;

const OLD: &str = r#"{"jsonrpc": "2.0", "id": "a", "method": "message/send", "params": {"message": {
    "kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "a"},
    {"kind": "file", "file": {"bytes": "AAAA", "name": "a.png", "mimeType": "image/png"}}, {"kind": "data", "data": {"a": 1}}]},
    "configuration": {"blocking": true, "pushNotificationConfig": null}}}"#;

fn read(body: &[u8]) {
    let Ok(envelope) = envelope(body) else { return };
    let params = envelope.params.map(RawValue::get).unwrap_or_default().as_bytes();
    let old = parsed::<v03::OldSend>(params, "params").map(SendMessage::from);
    for read in [parsed::<SendMessage>(params, "params"), old].into_iter().flatten() {
        if read.message.check().is_ok() && content_of(&read.message.parts).is_ok() {
            // What is kept as history can be read again.
            let kept = serde_json::to_vec(&read.message).unwrap();
            assert!(serde_json::from_slice::<crate::a2a_wire::Message>(&kept).is_ok());
        }
    }
}

#[test]
fn broken_requests_are_read_to_an_end() {
    Mutations::of([NEW, OLD]).check(read);
}

#[test]
fn what_is_not_looked_at_costs_nothing() {
    // A million of values in a member that is not read, and in a list of parts that is too long.
    let values = "[],".repeat(1 << 20);
    let body = NEW.replace("\"extensions\": [\"e\"]", &format!("\"extensions\": [{values}[]]"));
    let envelope = envelope(body.as_bytes()).unwrap();
    let params = envelope.params.unwrap().get().as_bytes();
    assert!(parsed::<SendMessage>(params, "params").is_ok());
    let body = NEW.replace("{\"text\": \"a\"}", &vec!["{\"text\": \"a\"}"; 100_000].join(","));
    let envelope = super::rpc::envelope(body.as_bytes()).unwrap();
    let read = parsed::<SendMessage>(envelope.params.unwrap().get().as_bytes(), "params").unwrap();
    assert_eq!(read.message.parts.len(), rockbot_core::content::MAX_PARTS + 1);
    assert!(read.message.check().is_err());
}
