//! Messages with a recipient and a channel: gpt-oss and LLM-jp (Harmony), and Muse.
//!
//! A message is `<|start|>assistant<|channel|>commentary to=functions.now<|message|>{…}<|call|>`.
//! The recipient may also stand before the channel, and the prompt may hold the beginning. Muse
//! has no channels: its thoughts go to `self`, its words to `user`, and its calls are markup.

use super::framed::Framed;
use super::named;
use crate::answer::MalformedKind;
use crate::cursor::{Cursor, name_at, starts_with};
use crate::tools::{CallSite, Tools};

const CLOSES: &[&str] = &["<|end|>", "<|call|>", "<|return|>", "<|eom|>", "<|eot|>"];
const MESSAGE: &str = "<|message|>";
/// Maximum length of a header, in bytes.
const MAX_HEADER: usize = 256;

/// The header of a message.
struct Header<'a> {
    /// The recipient; `None` for a message to the user.
    recipient: Option<&'a str>,
    /// The channel; empty for Muse.
    channel: &'a str,
}

/// Parses the messages that follow each other at the cursor.
pub(super) fn read(cursor: &mut Cursor<'_>, tools: &Tools) -> Option<Framed> {
    let start = cursor.at;
    let mut framed = Framed::default();
    let mut end = start;
    while let Some(header) = header(cursor, end == start) {
        let body = cursor.at;
        framed.settled = body;
        match header.recipient {
            Some(recipient) if recipient != "self" && recipient != "user" => {
                framed.sites.extend(calls(cursor, tools, recipient, end));
            }
            None if header.channel != "analysis" => framed.add_words(cursor.text, body..body_end(cursor)),
            Some("user") => {
                framed.add_words(cursor.text, body..body_end(cursor));
                framed.settled = cursor.at;
            }
            _ => framed.settled = body_end(cursor),
        }
        cursor.space();
        cursor.eat_any(CLOSES);
        end = cursor.at;
        cursor.space();
    }
    cursor.at = end;
    (end > start).then_some(framed)
}

/// Moves past a header. A recipient without anything before it can only be the recipient of the
/// first message.
fn header<'a>(cursor: &mut Cursor<'a>, first: bool) -> Option<Header<'a>> {
    let rest = cursor.head(MAX_HEADER);
    let head = &rest[..rest.find(MESSAGE)?];
    let start = head.strip_prefix("<|start|>").map(str::trim_start);
    let opens = match start {
        Some(role) => role.starts_with("assistant"),
        None => head.starts_with("<|channel|>") || first && begins_with_recipient(head),
    };
    if !opens || head.contains('\n') || cursor.spend(head.len()).is_err() {
        return None;
    }
    cursor.at += head.len() + MESSAGE.len();
    let recipient = head.rsplit_once("to=").map(|(_, recipient)| name_at(recipient));
    let channel = head
        .rsplit("<|channel|>")
        .next()
        .filter(|channel| channel.len() < head.len());
    Some(Header {
        // Before its thoughts gpt-oss writes a header to itself now and then.
        recipient: recipient.filter(|recipient| !["", "assistant"].contains(recipient)),
        channel: channel.map(|channel| name_at(channel.trim_start())).unwrap_or_default(),
    })
}

/// Returns `true` if the header is a recipient, and tokens if need be: the prompt may hold what
/// stands before.
fn begins_with_recipient(head: &str) -> bool {
    let Some(recipient) = head.strip_prefix("to=") else {
        return false;
    };
    let behind = recipient[name_at(recipient).len()..].trim_start();
    behind.is_empty() || behind.starts_with("<|")
}

/// Parses the body of a message to a tool, whose header begins at `start`: an object, or Muse's
/// markup.
fn calls(cursor: &mut Cursor<'_>, tools: &Tools, recipient: &str, start: usize) -> Vec<CallSite> {
    cursor.space();
    if !starts_with(cursor.rest(), "<atem:") {
        let outer = std::mem::replace(&mut cursor.closes, CLOSES);
        let arguments = named::arguments(cursor);
        cursor.closes = outer;
        return vec![tools.call(recipient, arguments, start..cursor.at)];
    }
    let Some(mut sites) = super::read(cursor, tools) else {
        body_end(cursor);
        return vec![tools.call(recipient, Err(MalformedKind::BrokenJson), start..cursor.at)];
    };
    sites.iter_mut().take(1).for_each(|first| first.span.start = start);
    sites
}

/// Moves to the end of a body, which the next message ends, too, and returns it.
fn body_end(cursor: &mut Cursor<'_>) -> usize {
    let ends = |rest: &str| rest.starts_with("<|start|>") || CLOSES.iter().any(|close| rest.starts_with(close));
    loop {
        cursor.at = cursor.find("<|").unwrap_or(cursor.text.len());
        if cursor.rest().is_empty() || ends(cursor.rest()) {
            return cursor.at;
        }
        cursor.at += "<|".len();
    }
}
