//! Contracts of the rockbot agent framework.
//!
//! An agent receives a message, runs a turn, asks a model, calls a tool. This crate holds the
//! types and traits of these four steps, with in-memory implementations, and none of the
//! machinery: no network client, no broker, no runtime. Authors of tools, models, stores and
//! buses depend on this crate alone. The runtime is `rockbot-host`, and `rockbot` puts everything
//! together.
//!
//! # The contracts
//!
//! * [`content`]: the content of messages and tool results: text, images, files
//! * [`chat`]: requests to a model, its answers, and the [`ChatClient`](chat::ChatClient) between
//!   them
//! * [`tool`]: tools, their registry, their arguments and results
//! * [`turn`]: requests, progress and outcomes of turns, and the [`TurnJournal`](turn::TurnJournal)
//! * [`messaging`]: message envelopes, and the [`Bus`](messaging::Bus) that carries them
//! * [`user`]: messages of user interfaces over a bus, and their client
//! * [`subsystem`]: parts of a host, and their declarations to each other
//! * [`store`]: the memory of an agent: conversations, long-term memory, skills, rules, feedback
//! * [`recall`]: sources of context for a message
//! * [`embedding`]: vectors of texts, and the [`EmbeddingClient`](embedding::EmbeddingClient)
//!   that computes them
//! * [`trust`]: the [`Label`](trust::Label) of a text: how far it can be trusted, and which
//!   sources went into it
//! * [`context`]: the [`CallContext`] that travels with every call
//! * [`layer`]: a rate limit for any of the services that tower layers wrap
//! * [`clock`] and [`rfc3339`]: wall-clock time
//!
//! # The kit for implementers
//!
//! * [`search`]: full-text ranking and vector similarity. The in-memory stores rank with it, so
//!   it needs no feature.
//! * [`support`]: helpers that the crates share: cancellation, safe log text, digests, suggestions
//! * `config` (feature `config`): settings from files and the environment
//! * `files` (feature `files`): building blocks of stores in files
//! * `process` (feature `process`): child processes, bounded and killed with all that they started
//! * `testing` (feature `testing`): scripted models, mock tools, a manual clock, conformance suites
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod chat;
pub mod clock;
#[cfg(feature = "config")]
#[cfg_attr(docsrs, doc(cfg(feature = "config")))]
pub mod config;
pub mod content;
pub mod context;
pub mod embedding;
mod extensions;
#[cfg(feature = "files")]
#[cfg_attr(docsrs, doc(cfg(feature = "files")))]
pub mod files;
mod id;
mod identity;
pub mod layer;
pub mod messaging;
#[cfg(feature = "process")]
#[cfg_attr(docsrs, doc(cfg(feature = "process")))]
pub mod process;
mod rate_limit_exceeded;
pub mod recall;
pub mod rfc3339;
pub mod service;
mod shared;
pub mod store;
pub mod subsystem;
pub mod support;
#[cfg(any(test, feature = "testing"))]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;
pub mod tool;
mod trace;
pub mod trust;
pub mod turn;
pub mod user;
mod wait_reason;

pub use clock::{Clock, SystemClock, Timestamp};
pub use context::CallContext;
pub use id::{CallId, IdSource, MemoryId, MessageId, Principal, RandomIds, SessionId, ToolName, TurnId};
pub use identity::AgentIdentity;
#[doc(inline)]
pub use rockbot_search as search;
pub use support::Digest;
pub use trace::TraceContext;

/// A boxed error of any type, as tower's middleware returns errors.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// A text that is never printed, logged or serialized, such as an API key or a password.
pub type Secret = secrecy::SecretString;

/// Access to the text of a [`Secret`], the only way to make it visible.
pub use secrecy::ExposeSecret;
