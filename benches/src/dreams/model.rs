//! The scripted model that dreams: it answers by the tuples behind the sentences that it is shown,
//! and on request a fifth of its answers is nonsense.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use rockbot_core::Digest;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier};
use serde_json::{Value, json};

use super::grammar::{INJECTED, MADE_UP};
use super::library::{Library, Role, Tuple};

/// The scripted model.
#[derive(Debug, Clone)]
pub struct Dreamer {
    tuples: Arc<BTreeMap<String, Tuple>>,
    /// Percentage of answers that are nonsense.
    nonsense: u8,
}

/// A text of a question, and its tuple.
struct Shown<'a> {
    id: &'a str,
    text: &'a str,
    tuple: Option<&'a Tuple>,
    /// `true` for a memory among messages.
    is_known: bool,
}

impl Dreamer {
    /// Creates a model that knows the tuples of a library, and `nonsense` percent of whose answers
    /// are nonsense.
    pub fn new(library: &Library, nonsense: u8) -> Self {
        let tuples = Arc::new(library.tuples.clone());
        Self { tuples, nonsense }
    }

    fn shown<'a>(&'a self, line: &'a str) -> Option<Shown<'a>> {
        let (id, text) = line.strip_prefix('[')?.split_once("] ")?;
        let is_known = text.starts_with("(remembered) ");
        let text = match text.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
            Some((_, text)) => text,
            None => text,
        };
        // A correction stands in quotation marks behind the summary of the feedback.
        let text = text.split('"').nth(1).unwrap_or(text);
        Some(Shown {
            id,
            text,
            tuple: self.tuples.get(text),
            is_known,
        })
    }
}

#[async_trait]
impl ChatClient for Dreamer {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let asked = call.request.messages[1].text();
        let shown: Vec<_> = asked.lines().filter_map(|line| self.shown(line)).collect();
        let dice = Digest::of([&*asked])
            .short()
            .bytes()
            .fold(0, |sum: usize, byte| sum * 31 % 10_007 + usize::from(byte));
        let answer = if dice % 100 < usize::from(self.nonsense) {
            nonsense(&shown, dice / 100)
        } else if asked.contains("\"contradictions\"") {
            contradictions(&shown)
        } else if asked.contains("the merged text") {
            merges(&shown)
        } else if asked.starts_with("What the user said, and") {
            mined(&shown)
        } else {
            repeated(&shown)
        };
        Ok(ChatResponse::text(answer))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// Returns two memories that cannot both be true: two values of a topic, or a value and a fact that
/// rests on another.
fn contradictions(shown: &[Shown<'_>]) -> String {
    let mut found = Vec::new();
    for (at, a) in shown.iter().enumerate() {
        for b in &shown[at + 1..] {
            if let (Some(one), Some(other)) = (a.tuple, b.tuple)
                && (one.contradicts(other) || other.contradicts(one))
            {
                found.push(json!({"ids": [a.id, b.id], "reason": "two values"}));
            }
        }
    }
    json!({"contradictions": found}).to_string()
}

/// Merges the memories that state the same tuple.
fn merges(shown: &[Shown<'_>]) -> String {
    let mut same: BTreeMap<_, Vec<&Shown<'_>>> = BTreeMap::new();
    for one in shown {
        if let Some(tuple) = one.tuple {
            same.entry((&tuple.topic, &tuple.value)).or_default().push(one);
        }
    }
    let groups = same.into_values().filter(|group| group.len() > 1);
    let merged = groups.map(|group| saved(group.iter().map(|one| one.text).max_by_key(|text| text.len()), &group));
    json!({"toSave": merged.collect::<Vec<_>>()}).to_string()
}

/// Returns the facts of messages that are not remembered: the last value of each topic, unless the
/// user took it back.
fn mined(shown: &[Shown<'_>]) -> String {
    let mut last: BTreeMap<&str, &Shown<'_>> = BTreeMap::new();
    for one in shown.iter().filter(|one| !one.is_known) {
        if let Some(tuple) = one.tuple {
            last.insert(&tuple.topic, one);
        }
    }
    let is_known = |topic: &str, value: &str| {
        let mut known = shown.iter().filter(|one| one.is_known).filter_map(|one| one.tuple);
        known.any(|tuple| tuple.topic == topic && tuple.value == value)
    };
    let new = last.into_values().filter(|one| {
        let tuple = one.tuple;
        tuple.is_some_and(|tuple| tuple.role == Role::Fact && !is_known(&tuple.topic, &tuple.value))
    });
    json!({"toSave": new.map(|one| saved(Some(one.text), &[one])).collect::<Vec<_>>()}).to_string()
}

/// Returns habits and corrections that came at least twice.
fn repeated(shown: &[Shown<'_>]) -> String {
    let mut groups: BTreeMap<&str, Vec<&Shown<'_>>> = BTreeMap::new();
    for one in shown {
        if one
            .tuple
            .is_some_and(|tuple| matches!(tuple.role, Role::Habit | Role::Correction))
        {
            groups.entry(one.text).or_default().push(one);
        }
    }
    let groups = groups.into_iter().filter(|(_, group)| group.len() > 1);
    json!({"toSave": groups.map(|(text, group)| saved(Some(text), &group)).collect::<Vec<_>>()}).to_string()
}

fn saved(text: Option<&str>, sources: &[&Shown<'_>]) -> Value {
    let ids: Vec<_> = sources.iter().map(|one| one.id).collect();
    json!({"content": text.unwrap_or_default(), "sourceIds": ids})
}

/// Answers something wrong, in a form that fits each pass.
fn nonsense(shown: &[Shown<'_>], dice: usize) -> String {
    let ids: Vec<_> = shown.iter().take(6).map(|one| one.id).collect();
    let all: Vec<_> = shown.iter().take(6).map(|one| one.text).collect();
    let fact = shown
        .iter()
        .find_map(|one| one.tuple.map(|tuple| one.text.replace(&tuple.value, MADE_UP)));
    let injected = shown.iter().find(|one| one.text.contains(INJECTED));
    let content = match dice % 3 {
        0 => injected.map(|one| one.text.to_owned()).or(fact).unwrap_or_default(),
        1 => fact.unwrap_or_default(),
        _ => all.join(" "),
    };
    match dice % 5 {
        0 => "Certainly! {".to_owned(),
        1 => json!({"toDelete": ids, "contradictions": []}).to_string(),
        _ => {
            let pair = &ids[..ids.len().min(2)];
            json!({
                "toSave": [{"content": content, "sourceIds": ids}],
                "contradictions": [{"ids": pair, "reason": "both"}],
            })
            .to_string()
        }
    }
}
