//! The correction that a model is sent after malformed calls.

use std::fmt::Write;

use crate::answer::{MalformedCall, MalformedKind};
use crate::tools::Tools;

/// Maximum number of tool names in a correction.
const MAX_NAMES: usize = 20;

/// Returns one text about all malformed calls. It describes the first malformed call, so its
/// length is bounded.
pub(super) fn correction(malformed: &[MalformedCall], tools: &Tools) -> Option<String> {
    let first = malformed.first()?;
    let mut text = String::from("Nothing was run: ");
    if malformed.len() > 1 {
        let _ = write!(
            text,
            "{} tool calls could not be understood. The first: ",
            malformed.len()
        );
    }
    let name = first.name.as_deref().unwrap_or_default();
    let call = if name.is_empty() {
        "the tool call".into()
    } else {
        format!("the call of `{name}`")
    };
    let _ = match first.kind {
        MalformedKind::BrokenJson => write!(text, "the arguments of {call} are not valid JSON."),
        MalformedKind::ArgumentsNotObject => write!(text, "the arguments of {call} are not a JSON object."),
        MalformedKind::ArgumentsNotNamed => write!(text, "the arguments of {call} must be named and be plain values."),
        MalformedKind::NoName => write!(text, "a tool call does not name its tool."),
        MalformedKind::ResultWritten => write!(text, "you wrote the result of a tool yourself, and it was removed."),
        MalformedKind::UnknownTool => {
            let _ = write!(text, "there is no tool `{name}`. ");
            write!(text, "{}", suggestion(name, tools))
        }
    };
    text.push_str(
        " To call a tool, end your answer with these two lines, outside of any code fence:\n\
         tool_call_name: NAME\n\
         tool_call_arguments: {\"argument\": \"value\"}",
    );
    Some(text)
}

fn suggestion(name: &str, tools: &Tools) -> String {
    let near = tools.names().map(|known| (distance(name, known), known)).min();
    let mut names: Vec<_> = tools.names().take(MAX_NAMES).collect();
    match near {
        None => "There are no tools now; answer in words.".into(),
        Some((distance, near)) if distance <= 3 => format!("Did you mean `{near}`?"),
        Some(_) => {
            if tools.names().nth(MAX_NAMES).is_some() {
                names.push("…");
            }
            format!("The tools are: {}.", names.join(", "))
        }
    }
}

/// Returns the Levenshtein distance, ignoring case. Of long names the first 64 characters count.
fn distance(left: &str, right: &str) -> usize {
    let left = left.to_ascii_lowercase();
    let right = right.to_ascii_lowercase();
    let right: Vec<char> = right.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, left) in left.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in right.iter().enumerate() {
            let changed = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}
