//! The HTTP transport of model clients: everything that no wire dialect owns.
//!
//! A dialect, such as [`openai`](crate::openai) or [`anthropic`](crate::anthropic), describes
//! itself to the transport by a [`Dialect`]: how it sends the key and how it reads an error body;
//! a chat adds how it writes and reads ([`ChatWire`]). Its builders collect [`ConnectionOptions`]
//! and [connect](ConnectionOptions::connect) them to a [`Connection`], which sends requests,
//! bounds answers in size and time, and turns refusals into a
//! [`ChatError`](rockbot_core::chat::ChatError) of the right kind.
//!
//! * [`endpoint`]: base URLs and the providers behind them
//! * [`builder`], [`options`], [`connection`]: the options of a client, and the client of one
//!   model at one server
//! * [`chat`]: the chat client of every dialect
//! * [`outgoing`]: the body and headers of a request, with the members and headers that model
//!   settings add
//! * [`retry_after`], [`request_id`]: the server's advice on retrying, and its name for a request
//! * [`answer`]: reads the answer, whole or streamed, with the [`AnswerReader`] of the dialect
//! * [`sse`], [`idle_timer`]: events of a stream, bounded in size, and the limit on its pauses
//! * [`calls`]: tool calls from the pieces of a stream
//! * [`tool_name`], [`arguments`], [`rounds`], [`stand_in`]: parts of a conversation, as every
//!   provider accepts them
//! * [`strict_tools`]: calls in strict mode, without parts that only that mode demands
//! * [`notes`]: marks around the texts that the host adds in the user's role
//! * [`reasoning_form`]: the dialect that kept reasoning belongs to
//! * [`fault`], [`error_body`], [`classify`], [`overflow`]: faults of an answer, and the kind of
//!   an error by status, code and wording
//! * [`refused_form`]: the handling of refusals by chat templates
//! * [`refused_part`]: images and schemas that a server does not take, and the words in their place
//! * [`report`]: error messages that name the server and the setting, and never a key
//! * [`probe`]: asks a server which models it lists
//! * [`media`]: images and files in the form that a model gets
//! * [`wire_text`]: JSON strings, read with patience

mod answer;
mod arguments;
mod builder;
mod calls;
mod chat;
mod classify;
mod connection;
mod dialect;
mod endpoint;
mod error_body;
mod fault;
mod idle_timer;
mod media;
mod note_echo;
mod notes;
mod options;
mod outgoing;
mod overflow;
mod probe;
mod reasoning_form;
mod refused_form;
mod refused_part;
mod report;
mod request_id;
mod retry_after;
mod rounds;
mod sse;
mod stand_in;
mod strict_tools;
mod temperature;
mod tool_name;
mod wire_text;

pub use self::probe::ServerCheck;
pub use self::report::SettingNames;

#[cfg(test)]
pub(crate) use self::answer::StreamFold;
pub(crate) use self::answer::{AnswerReader, Outlet};
pub(crate) use self::arguments::{sendable_arguments, sendable_object};
pub(crate) use self::builder::{ChatOptions, ClientBuilder};
pub(crate) use self::calls::{CallAssembler, CallPiece};
pub(crate) use self::chat::{ChatWire, HttpChat, Question};
pub(crate) use self::classify::ErrorFacts;
pub(crate) use self::connection::{Connection, has_type};
pub(crate) use self::dialect::Dialect;
pub(crate) use self::endpoint::{base_url, is_key, is_loopback, provider_of, shown_unchecked};
pub(crate) use self::error_body::{is_error, quoted, read_error};
pub(crate) use self::fault::Fault;
pub(crate) use self::idle_timer::IdleTimer;
pub(crate) use self::media::{PartForm, described, expected_size, form_of, forms, image_of, push_base64, push_url};
pub(crate) use self::note_echo::NoteEcho;
pub(crate) use self::notes::{MarkScope, NoteMarks, is_mixed, is_note};
pub(crate) use self::options::{ConnectionOptions, ExtraHeader};
pub(crate) use self::outgoing::{Outgoing, invalid_body, push_extra};
pub(crate) use self::probe::check_server;
pub(crate) use self::reasoning_form::ReasoningForm;
pub(crate) use self::rounds::{in_rounds, with_single_calls};
pub(crate) use self::sse::{EventTooLong, SseDecoder};
pub(crate) use self::stand_in::{NO_RESULT, OPENING, ORPHAN, RESULTS_READ};
pub(crate) use self::temperature::stated_temperature;
pub(crate) use self::tool_name::sendable_name;
pub(crate) use self::wire_text::{WireText, parse_wire};
