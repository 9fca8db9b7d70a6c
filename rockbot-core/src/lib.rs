//! Contracts of the rockbot agent framework.
//!
//! An agent receives a message, runs a turn, asks a model, calls a tool. This crate holds the types and
//! traits of those four things, with in-memory versions, and none of the machinery: no network client, no
//! broker, no runtime. Authors of tools, models, stores and buses depend on this crate alone; the runtime is
//! `rockbot-host`, and `rockbot` puts everything together.
//!
//! * [`chat`]: what is asked of a model, and the [`ChatClient`](chat::ChatClient) that asks it
//! * [`tool`]: tools, their registry, their arguments and results
//! * [`turn`]: what a turn is asked, reports and ends with, and the [`TurnJournal`](turn::TurnJournal)
//! * [`messaging`]: messages, and the [`Bus`](messaging::Bus) that carries them
//! * [`user`]: what people say to an agent over a bus, and the client of their interfaces
//! * [`subsystem`]: parts of a host, and what they need of each other
//! * [`store`]: what an agent remembers
//! * [`recall`]: what of it helps with a message
//! * `files` (feature `files`): what stores in files have in common
//! * [`embedding`]: texts as vectors, and the [`EmbeddingClient`](embedding::EmbeddingClient) that asks for them
//! * [`search`]: finding texts by words, and vectors that lie close
//! * [`context`]: the [`CallContext`] that travels with every call
//! * [`support`]: small helpers that the crates share: cancellation, safe log text, digests, suggestions
//! * `config` (feature `config`): settings from files and the environment
//! * `testing` (feature `testing`): scripted models, mock tools, a manual clock, conformance suites
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod chat;
pub mod clock;
#[cfg(feature = "config")]
#[cfg_attr(docsrs, doc(cfg(feature = "config")))]
pub mod config;
pub mod context;
pub mod embedding;
#[cfg(feature = "files")]
#[cfg_attr(docsrs, doc(cfg(feature = "files")))]
pub mod files;
mod id;
mod identity;
pub mod messaging;
pub mod recall;
pub mod rfc3339;
pub mod search;
pub mod store;
pub mod subsystem;
pub mod support;
#[cfg(any(test, feature = "testing"))]
#[cfg_attr(docsrs, doc(cfg(feature = "testing")))]
pub mod testing;
pub mod tool;
pub mod turn;
pub mod user;

pub use clock::{Clock, SystemClock, Timestamp};
pub use context::CallContext;
pub use id::{CallId, IdSource, MemoryId, MessageId, Principal, RandomIds, SessionId, ToolName, TurnId};
pub use identity::AgentIdentity;
pub use support::Digest;

/// An error of any type, as tower's own middleware produces it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// A text that is never printed, logged or serialized: keys and passwords.
pub type Secret = secrecy::SecretString;

/// Reads the text of a [`Secret`]; the one place where it becomes visible.
pub use secrecy::ExposeSecret;
