//! The agent over HTTP, for people and their programs: an interface of its own, OpenAI's, AG-UI.
//!
#![doc = include_str!("../docs/http.md")]

#[doc(inline)]
pub use rockbot_web::{WebEndpoint, WebServer, WebUser, settings};
