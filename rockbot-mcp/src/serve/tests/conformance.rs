//! The official conformance suite, which `.ci/mcp-servers` installs: each scenario for servers
//! that this server passes.

use std::time::Duration;

use rockbot_core::CallContext;
use rockbot_core::content::{Content, MediaPart};
use rockbot_core::tool::{Tool, ToolError, tool};
use serde_json::json;

use super::{Host, anywhere};
use crate::tests::real;

/// The scenarios, by the version of the protocol that they run in. The others need resources,
/// prompts, logging or requests to clients, which this server does not offer (`server-stateless`
/// and `caching` do in parts).
const SCENARIOS: [(&str, &[&str]); 3] = [
    (
        "2025-06-18",
        &[
            "server-initialize",
            "ping",
            "tools-list",
            "tools-call-simple-text",
            "tools-call-error",
        ],
    ),
    (
        "2025-11-25",
        &[
            "server-initialize",
            "server-session-lifecycle",
            "ping",
            "tools-list",
            "tools-call-simple-text",
            "tools-call-image",
            "tools-call-audio",
            "tools-call-embedded-resource",
            "tools-call-mixed-content",
            "tools-call-error",
            "tools-call-with-progress",
            "json-schema-2020-12",
            "server-sse-multiple-streams",
            "dns-rebinding-protection",
        ],
    ),
    (
        "2026-07-28",
        &[
            "tools-list",
            "tools-call-simple-text",
            "tools-call-image",
            "tools-call-audio",
            "tools-call-embedded-resource",
            "tools-call-mixed-content",
            "tools-call-error",
            "tools-call-with-progress",
            "json-schema-2020-12",
            "server-sse-multiple-streams",
            "dns-rebinding-protection",
            "http-header-validation",
        ],
    ),
];

/// Takes nothing.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Nothing {}

/// Returns the tools that the suite names.
fn tools() -> Vec<Tool> {
    let image = || MediaPart::bytes("image/png", vec![0x89, b'P', b'N', b'G']);
    let text = || MediaPart::of_file("embedded.txt", "This is an embedded resource content.");
    let described = |tool: Tool| tool.description("A tool of the suite.");
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
        "properties": {
            "name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"}, "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]}, "else": {"required": ["email"]},
        "additionalProperties": false,
    });
    let mut of_schema = tool("json_schema_2020_12_tool", |_: Nothing| async { "fine" });
    of_schema.registration.parameters_schema = schema;
    [
        tool("test_simple_text", |_: Nothing| async {
            "This is a simple text response for testing."
        }),
        tool("test_image_content", move |_: Nothing| async move {
            Content::EMPTY.with_media(image())
        }),
        tool("test_audio_content", |_: Nothing| async {
            Content::EMPTY.with_media(MediaPart::bytes("audio/wav", &b"RIFF"[..]))
        }),
        tool("test_embedded_resource", move |_: Nothing| async move {
            Content::EMPTY.with_media(text())
        }),
        tool("test_multiple_content_types", move |_: Nothing| async move {
            Content::from("Multiple content types test:")
                .with_media(image())
                .with_media(text())
        }),
        tool("test_error_handling", |_: Nothing| async {
            Err::<String, _>(ToolError::execution_failed(
                "This tool intentionally returns an error for testing",
            ))
        }),
        tool("test_tool_with_progress", |_: Nothing, cx: CallContext| async move {
            for step in 0..3 {
                cx.progress().report(format!("step {step}"));
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            "done"
        }),
        of_schema,
    ]
    .map(described)
    .into()
}

#[tokio::test]
async fn the_official_suite_passes() {
    let Some(folder) = real::folder() else { return };
    let host = Host::start(anywhere(), tools()).await;
    real::pass_conformance(&folder, &["server", "--url", &host.url()], &SCENARIOS).await;
}
