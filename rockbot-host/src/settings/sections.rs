//! The sections that parts of a host read, with the part of each.

/// The sections that parts read, each with the step that gives a program its part.
pub(crate) const SECTIONS_OF_PARTS: [(&str, &str); 18] = [
    ("ConversationLog", "call `Memory::with_conversation_log`"),
    ("Dream", "add `Dreaming`"),
    (
        "Egress",
        "add a part that makes requests, such as `WebTools` (feature `web`)",
    ),
    ("Feedback", "add `Memory` or `SessionEvaluation`"),
    ("FileTools", "add `FileTools` (feature `files`)"),
    ("LLM", "give the host the models of `ModelGateway::from_config`"),
    ("Mcp", "add `McpTools` (feature `mcp`)"),
    ("McpProxy", "add `McpToolProxy` (feature `mcp`)"),
    ("McpServer", "add `McpToolServer` (feature `mcp-server`)"),
    ("Memory", "add `Memory`"),
    (
        "Pulsar",
        "connect `PulsarBus` with `PulsarSettings::read` (feature `pulsar`) and call `.bus(…)` with it",
    ),
    (
        "RabbitMq",
        "connect `RabbitMqBus` with `RabbitMqSettings::read` (feature `rabbitmq`) and call `.bus(…)` with it",
    ),
    ("RemoteTools", "add `RemoteTools`, and call `.bus(…)`"),
    ("RestTools", "add `RestTools` (feature `rest`)"),
    ("ServiceSearch", "add `ServiceSearch`"),
    ("Skills", "add `Memory`"),
    (
        "ToolServices",
        "add `ToolServices` (feature `tool-services`), and give it or the host a bus",
    ),
    ("WebTools", "add `WebTools` (feature `web`)"),
];

/// The sections of brokers. A host with a bus may have it from elsewhere.
pub(crate) const SECTIONS_OF_BROKERS: [&str; 2] = ["Pulsar", "RabbitMq"];
