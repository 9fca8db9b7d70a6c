//! Finds tool calls in the plain text of language models' answers.
//!
//! A model that was never trained on its server's native form of tool calls, or whose server does
//! not parse the form that the model was trained on, writes calls into the text of its answer.
//! [`TextCallParser`] finds them there, in the forms that open models really write, and leaves
//! text alone that only *talks* about calls. It is a pure function of the text and of the names
//! of the tools: no I/O, no model, no regular expressions, and linear time for any input.
//!
//! ```
//! use rockbot_text_calls::TextCallParser;
//!
//! let parser = TextCallParser::new(["get_weather"]);
//! let text = "Let me look.\n\ntool_call_name: get_weather\ntool_call_arguments: {\"city\":\"Paris\"}";
//! let answer = parser.parse(text);
//! assert_eq!(answer.text, "Let me look.");
//! assert_eq!(&*answer.calls[0].name, "get_weather");
//! assert_eq!(answer.calls[0].arguments, r#"{"city":"Paris"}"#);
//!
//! let answer = parser.parse("Write `tool_call_name: get_weather` to call it.");
//! assert!(answer.calls.is_empty());
//! ```
//!
//! # The parts
//!
//! * [`instructions`] teaches a model the form that every model can write, for the system prompt;
//!   [`result_text`] gives the result of a call back to the model.
//! * [`TextCallParser::parse`] takes a complete answer apart: text for a person, calls, malformed
//!   calls, and where the model began to hallucinate results. [`TextAnswer::correction`] is a
//!   text that tells the model its mistakes.
//! * [`HoldBack`] filters an answer while it is streamed: it passes on text that cannot become
//!   part of a call and holds the rest back.
//!
//! A round with a model that has no native tool calls looks like this:
//!
//! ```
//! use rockbot_text_calls::{OfferedTool, TextCallParser, instructions, result_text};
//! use serde_json::json;
//!
//! let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
//! let weather = OfferedTool::new("get_weather", "Returns the weather.", &schema);
//! let system_prompt = instructions([weather]);
//! assert!(system_prompt.contains("### get_weather"));
//!
//! // The model may answer in the form that it was trained on instead, here that of Qwen3-Coder.
//! let text = "<tool_call><function=get_weather><parameter=city>75000</parameter></function></tool_call>";
//! let answer = TextCallParser::for_tools([weather]).parse(text);
//! // The schema declares a string, so the digits stay one.
//! assert_eq!(answer.calls[0].arguments, r#"{"city":"75000"}"#);
//!
//! let next_message = result_text("get_weather", "21 degrees");
//! assert_eq!(next_message, "[Tool result for get_weather]: 21 degrees");
//! ```
//!
//! # What counts as a call
//!
//! The form must be a known one (the table is in `dialect/mod.rs`), the tool must be known, and
//! the call must stand where calls are made. For forms with a marker the position decides, never
//! the words around it:
//!
//! * A form with a marker of its own counts at the start of a line, filling its lines, outside of
//!   fences, thoughts, quotations, lists and inline code. It counts in the middle of a line only
//!   after the end of a sentence, when it ends the answer, or glued to a word when the marker is
//!   a special token that people do not type. The sections of Kimi and DeepSeek count within
//!   thoughts, too, if nothing but the end of the thoughts follows.
//! * In an answer of several messages or sections (gpt-oss, Muse, Kimi K3) only the messages to
//!   tools are calls, not the messages of thoughts. Where there is a call, the words are shown
//!   without the headers around them.
//! * It is quoted, and no call, when the line before introduces it (a colon, an open quote, a
//!   heading, a list item) *and* prose follows. Once an answer has quoted calls, later ones need
//!   no prose after them to count as quoted.
//! * A form without a marker (JSON of a known tool, a known name above a JSON object, a Python
//!   list of calls), and anything in a fence for data, must end the answer. Here words count,
//!   because a call and an example of one look the same: the words before them must say that the
//!   model makes the call (`Let me look:`), and neither explain nor refuse. A bare name, a bare
//!   Python call, and calls in a fence for code must be the whole answer, reasoning before them
//!   excepted. Fences with the info string `tool_code` or `tool_call`, and fenced JSON after
//!   `Action:`, are markers.
//! * A name that no tool has counts as the name of the only tool that it resembles: behind a
//!   namespace, with other separators, or in camel case.
//! * A call that cannot be parsed is malformed only if no prose follows it; otherwise it is
//!   prose, too.
//!
//! An explanation that ends with a call on lines of its own, outside of a fence, cannot be told
//! from a call. It counts as one, as it does for every server that parses its model's own form.
//!
//! # What is dropped
//!
//! A model that goes on after its call hallucinates the tool's result. From the first such result
//! on nothing counts, neither text nor further calls.
//!
//! # Untrusted input
//!
//! Give [`TextCallParser::parse`] only the assistant's own text of the current turn, never tool
//! results or text of the user: a call that was injected there would be found like any other.
//! Parse only answers that finished: a call whose arguments break off at the end of the text was
//! cut, and is malformed rather than repaired, but a text that was cut between two calls does not
//! show it.
//!
//! The parser looks at each byte a bounded number of times, whatever the text is; a hostile text
//! that exhausts this budget is not searched any further. Nothing panics.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod announcement;
mod answer;
mod call_object;
mod correction;
mod cursor;
mod dialect;
mod fence;
mod hallucination;
mod hold_back;
mod json;
mod parser;
mod placement;
mod prompt;
mod scan;
#[cfg(test)]
mod tests;
mod thought;
mod tools;
mod unmarked;
mod whole_answer;

pub use answer::{MalformedCall, MalformedKind, TextAnswer, TextCall};
pub use hold_back::HoldBack;
pub use parser::TextCallParser;
pub use prompt::{call_text, instructions, result_text};
pub use tools::OfferedTool;
