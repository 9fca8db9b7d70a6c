//! The integration tests: one binary, through the public surface only.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[cfg(feature = "a2a")]
mod a2a;
#[cfg(all(feature = "a2a", feature = "a2a-server"))]
mod a2a_client;
#[cfg(feature = "a2a-server")]
mod a2a_server;
mod agent;
mod agent_tools;
mod agents;
mod anthropic;
mod approvals;
mod attacks;
mod backlog;
mod behaviors;
mod budget;
mod build_checks;
mod cancel;
#[cfg(target_os = "linux")]
mod chat_terminal;
mod circles;
mod claims;
mod commands;
mod conversation_log;
mod conversations;
mod crash;
#[cfg(feature = "wisps")]
mod delegation_kills;
mod deploy;
#[cfg(feature = "rabbitmq")]
mod distributed;
mod doctor;
mod drain;
mod dreams;
mod economy;
#[cfg(feature = "rabbitmq")]
mod effects_once;
mod endorsement;
mod ends;
mod error_chains;
mod evaluate;
#[cfg(feature = "eval")]
mod evaluation;
mod example_programs;
mod example_requests;
mod examples;
mod faults;
mod feedback;
mod from_config;
mod golden;
mod guides;
mod history;
mod history_processors;
mod host;
#[cfg(all(unix, feature = "scheduling"))]
mod hostile_files;
mod images;
#[cfg(all(feature = "subagents", feature = "wisps"))]
mod informing;
mod injection;
mod input_guardrails;
mod joke_service;
mod journal;
mod journal_reading;
mod large_results;
mod layers;
mod limits;
mod live_attacks;
mod live_text;
mod logged_turns;
mod long_term_memory;
mod looking_back;
mod loop_policies;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "mcp-server")]
mod mcp_bridge;
#[cfg(feature = "mcp-server")]
mod mcp_server;
mod media_paths;
mod memory_folder;
mod memory_tools;
mod model_servers;
mod model_settings;
mod nudges;
mod old_data_folder;
mod one_call;
mod outbox;
mod output_modes;
mod output_validators;
mod outside_text;
mod parallel;
mod pending_tools;
mod pipeline;
#[cfg(feature = "wisps")]
mod pipelines;
#[cfg(all(feature = "memory", feature = "postgres"))]
mod postgres;
mod prelude;
mod profile;
#[cfg(feature = "pulsar")]
mod programs_over_pulsar;
mod rate_limit;
mod recall;
mod refused_parts;
#[cfg(all(feature = "scripts", target_os = "linux"))]
mod remote_scripts;
mod remote_tools;
mod reply_media;
mod requests;
#[cfg(feature = "rabbitmq")]
mod resent_calls;
mod responses;
mod restart;
mod results;
mod retention;
#[cfg(all(unix, feature = "mcp-server"))]
mod rockbot_serve;
mod rules;
mod runs;
#[cfg(feature = "scheduling")]
mod scheduling;
#[cfg(all(feature = "scripts", target_os = "linux"))]
mod scripts;
mod secrets;
mod self_evaluation;
mod semantic_memory;
mod serve_tools;
mod sessions;
mod settings;
#[cfg(all(
    feature = "a2a",
    feature = "a2a-server",
    feature = "files",
    feature = "mcp-server",
    feature = "pulsar",
    feature = "rabbitmq",
    feature = "rest",
    feature = "scheduling",
    feature = "scripts",
    feature = "web",
    feature = "web-server",
    feature = "wisps"
))]
mod settings_reference;
mod sharing;
mod skill_folders;
mod skills;
#[cfg(feature = "sqlite")]
mod soak;
mod spending;
mod sqlite;
mod starter_skills;
mod storm;
mod strict_tools;
mod structured_output;
#[cfg(feature = "subagents")]
mod subagents;
mod support;
mod syncs;
mod task_list;
mod telemetry;
mod templates;
mod text_fallback;
mod tidy;
mod tiers;
mod time_zone;
mod told;
mod tool_groups;
mod tool_services;
mod tool_surface;
mod tool_workers;
mod tools;
#[cfg(feature = "otel")]
mod traces;
mod trust;
#[cfg(feature = "rabbitmq")]
mod trustgraph;
mod turn_layers;
mod turn_trees;
mod two_principals;
mod users;
mod users_over_buses;
mod waiting;
#[cfg(feature = "web-server")]
mod web_server;
mod whole_host;
#[cfg(feature = "wisps")]
mod wisps;
mod worker_faults;
#[cfg(feature = "wisps")]
mod workers;
mod working_memory;
mod world_tools;

#[path = "../../rockbot-llm/src/anthropic/rules.rs"]
mod anthropic_rules;
#[allow(dead_code, reason = "the example's own `main` is not run here")]
#[path = "../../examples/evaluate/main.rs"]
mod evaluate_example;
#[allow(dead_code, reason = "the example's own `main` is not run here")]
#[path = "../../examples/handlers.rs"]
mod handlers;
#[cfg(feature = "pulsar")]
#[allow(dead_code, reason = "the tests of the bus use more of it")]
#[path = "../../rockbot-bus/src/pulsar/tests/lite.rs"]
mod pulsar_lite;
#[allow(dead_code, reason = "the example's own `main` is not run here")]
#[path = "../../examples/quickstart.rs"]
mod quickstart;
#[cfg(feature = "rabbitmq")]
#[allow(dead_code, reason = "the tests of the bus use more of it")]
#[path = "../../rockbot-bus/src/rabbitmq/tests/proxy.rs"]
mod rabbitmq_proxy;
#[allow(dead_code, reason = "the example's own `main` is not run here")]
#[path = "../../examples/remote_tools.rs"]
mod remote_tools_example;
#[path = "../../rockbot-llm/src/responses/rules.rs"]
mod responses_rules;
