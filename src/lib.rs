#![doc = include_str!("../README.md")]
//!
#![doc = include_str!("how_the_parts_fit.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod agent;
pub mod chat;
pub mod config;
#[cfg(all(feature = "llm", feature = "memory"))]
mod configured;
pub mod content;
#[cfg(any(doc, doctest))]
#[doc = include_str!("../docs/cookbook.md")]
pub mod cookbook {}
#[cfg(feature = "eval")]
#[cfg_attr(docsrs, doc(cfg(feature = "eval")))]
pub mod eval;
pub mod implement;
pub mod layer;
#[cfg(feature = "mcp")]
#[cfg_attr(docsrs, doc(cfg(feature = "mcp")))]
pub mod mcp;
#[cfg(feature = "memory")]
#[cfg_attr(docsrs, doc(cfg(feature = "memory")))]
pub mod memory;
pub mod message;
pub mod prelude;
pub mod service;
pub mod store;
#[cfg(feature = "testing")]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;
pub mod tool;
#[cfg(feature = "tool-services")]
#[cfg_attr(docsrs, doc(cfg(feature = "tool-services")))]
pub mod tool_services;
#[cfg(any(
    feature = "a2a",
    feature = "a2a-server",
    feature = "web",
    feature = "rest",
    feature = "files",
    feature = "scheduling",
    feature = "scripts",
    feature = "subagents",
    feature = "wisps"
))]
#[cfg_attr(
    docsrs,
    doc(cfg(any(
        feature = "a2a",
        feature = "a2a-server",
        feature = "web",
        feature = "rest",
        feature = "files",
        feature = "scheduling",
        feature = "scripts",
        feature = "subagents",
        feature = "wisps"
    )))
)]
pub mod tools;
pub mod turn;
#[cfg(feature = "web-server")]
#[cfg_attr(docsrs, doc(cfg(feature = "web-server")))]
pub mod web_server;

pub use rockbot_core::{
    AgentIdentity, BoxError, CallContext, CallId, Clock, Digest, ExposeSecret, IdSource, MemoryId, MessageId,
    Principal, RandomIds, Secret, SessionId, SystemClock, Timestamp, ToolName, TraceContext, TurnId, context, trust,
};
