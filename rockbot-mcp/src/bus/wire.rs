//! The topics and messages between a bridge and the agents that use its servers.
//!
//! Names and members are the original RockBot's where it has them. Members of this framework
//! alone are optional, and the original ignores them.

use rockbot_core::messaging::Message;
use rockbot_core::tool::Effect;
use rockbot_core::{Digest, MessageId};
use serde::{Deserialize, Serialize};

use crate::index_event::McpBridgeLease;

/// Topic of calls for any bridge. Bridges share a subscription to it, so each call goes to a
/// single bridge.
pub(super) const INVOKE_TOPIC: &str = "tool.invoke.mcp";

/// Name of the subscription that all bridges share.
pub(super) const SHARED_SUBSCRIPTION: &str = "mcp-bridge";

/// Topic of questions about servers for any bridge. Each bridge gets all questions, and the
/// bridge that has the server answers.
pub(super) const MANAGE_TOPIC: &str = "mcp.manage";

/// Topic of requests for the index. Each bridge gets all of them.
pub(super) const REFRESH_TOPIC: &str = "tool.meta.mcp.refresh";

/// Pattern of the topics of all bridges' announcements.
pub(super) const META_PATTERN: &str = "tool.meta.mcp.*";

/// Topic of cancellations. Each worker gets all of them.
const CANCEL_TOPIC: &str = "tool.cancel";

/// Maximum length of a name that is a segment of a topic as it is.
const MAX_PLAIN: usize = 60;

/// Returns the topic of the calls of one bridge.
pub(super) fn invoke_topic(bridge: &str) -> String {
    format!("{INVOKE_TOPIC}.{}", segment(bridge))
}

/// Returns the topic of the questions for one bridge.
pub(super) fn manage_topic(bridge: &str) -> String {
    format!("{MANAGE_TOPIC}.{}", segment(bridge))
}

/// Returns the topic of the announcements of one bridge.
pub(super) fn meta_topic(bridge: &str) -> String {
    format!("tool.meta.mcp.{}", segment(bridge))
}

/// Returns the segment of a topic for the name of an agent. Two names never have the same one.
pub(super) fn segment(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    match !name.is_empty() && name.len() <= MAX_PLAIN && name.chars().all(is_plain) && name != "refresh" {
        true => name.to_owned(),
        // Longer than any plain name, so that no other agent has this name.
        false => format!("{}-{}", name.replace(|c| !is_plain(c), "-"), Digest::of([name])),
    }
}

/// The end of a bridge's process: it takes no further calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BridgeLeaving {
    pub(super) name: String,
    pub(super) instance: String,
}

/// A request for the index of all bridges, or for a new list of a server's tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RefreshRequest {
    #[serde(default)]
    pub(super) server_name: Option<String>,
}

/// A request for the tools of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DetailsRequest {
    pub(super) server_name: String,
    /// Number of tools that the agent has already.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) offset: usize,
}

/// The tools of a server, or some of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DetailsResponse {
    pub(super) server_name: String,
    #[serde(default)]
    pub(super) tools: Vec<ToolDefinition>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    /// The offset of the next tools, if there are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) next_offset: Option<usize>,
    /// The digest of all definitions, as in the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fingerprint: Option<String>,
    /// The server's words about itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) instructions: Option<String>,
    /// The time limit of a call, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) timeout_ms: Option<u64>,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolDefinition {
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    /// The JSON Schema of the arguments, as text.
    #[serde(default)]
    pub(super) parameters_schema: Option<String>,
    /// The effect that the operator of the bridge lets count.
    #[serde(default)]
    pub(super) effect: Effect,
}

/// A request to connect a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RegisterRequest {
    pub(super) server_name: String,
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) url: Option<String>,
    /// A program: refused always.
    #[serde(default)]
    pub(super) command: Option<String>,
}

/// A request to disconnect a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UnregisterRequest {
    pub(super) server_name: String,
}

/// The result of [`RegisterRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RegisterResponse {
    pub(super) server_name: String,
    pub(super) success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// The result of [`UnregisterRequest`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UnregisterResponse {
    pub(super) server_name: String,
    pub(super) success: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// The cancellation of a call whose answer is no longer awaited.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallCancelled {
    pub(super) message_id: MessageId,
}

impl Message for McpBridgeLease {
    const TYPE: &'static str = "rockbot.McpBridgeHeartbeat";
}

impl Message for BridgeLeaving {
    const TYPE: &'static str = "rockbot.McpBridgeLeaving";
}

impl Message for RefreshRequest {
    const TYPE: &'static str = "RockBot.Tools.Mcp.McpMetadataRefreshRequest";
    const TOPIC: Option<&'static str> = Some(REFRESH_TOPIC);
}

impl Message for DetailsRequest {
    const TYPE: &'static str = "RockBot.Tools.Mcp.McpGetServiceDetailsRequest";
    const TOPIC: Option<&'static str> = Some(MANAGE_TOPIC);
}

impl Message for DetailsResponse {
    const TYPE: &'static str = "RockBot.Tools.Mcp.McpGetServiceDetailsResponse";
}

impl Message for RegisterRequest {
    const TYPE: &'static str = "RockBot.Tools.Mcp.McpRegisterServerRequest";
    const TOPIC: Option<&'static str> = Some(MANAGE_TOPIC);
}

impl Message for RegisterResponse {
    const TYPE: &'static str = "RockBot.Tools.Mcp.McpRegisterServerResponse";
}

impl Message for UnregisterRequest {
    const TYPE: &'static str = "RockBot.Tools.Mcp.McpUnregisterServerRequest";
    const TOPIC: Option<&'static str> = Some(MANAGE_TOPIC);
}

impl Message for UnregisterResponse {
    const TYPE: &'static str = "RockBot.Tools.Mcp.McpUnregisterServerResponse";
}

impl Message for CallCancelled {
    const TYPE: &'static str = "rockbot.ToolCallCancelled";
    const TOPIC: Option<&'static str> = Some(CANCEL_TOPIC);
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}
