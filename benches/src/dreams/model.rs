//! The scripted model that dreams: it answers by the tuples behind the sentences that it is shown,
//! and on request a part of its answers is nonsense.

use std::collections::BTreeMap;

use async_trait::async_trait;
use rockbot_core::Digest;
use rockbot_core::chat::{ChatCall, ChatClient, ChatError, ChatResponse, ModelInfo, ModelTier};
use serde_json::{Value, json};

use super::grammar::{INJECTED, MADE_UP};
use super::library::{Library, Tuple};

/// The scripted model.
#[derive(Debug)]
pub struct Scripted {
    tuples: BTreeMap<String, Tuple>,
    /// Percentage of answers that are nonsense.
    nonsense: usize,
}

/// A text of a question, and its tuple.
struct Shown<'a> {
    id: &'a str,
    text: &'a str,
    tuple: Option<&'a Tuple>,
    /// `true` for a memory among messages.
    is_known: bool,
}

impl Scripted {
    /// Creates a model that knows the tuples of a library.
    pub fn new(library: &Library, nonsense: usize) -> Self {
        let tuples = library.tuples.clone();
        Self { tuples, nonsense }
    }

    fn shown<'a>(&'a self, line: &'a str) -> Option<Shown<'a>> {
        let (id, text) = line.strip_prefix('[')?.split_once("] ")?;
        let is_known = text.starts_with("(remembered) ");
        let bare = text.strip_prefix('(').and_then(|rest| rest.split_once(") "));
        let text = bare.map_or(text, |(_, text)| text);
        // A correction stands in quotation marks behind the summary of the feedback.
        let text = text.split('"').nth(1).unwrap_or(text);
        let tuple = self.tuples.get(text);
        Some(Shown {
            id,
            text,
            tuple,
            is_known,
        })
    }
}

#[async_trait]
impl ChatClient for Scripted {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        let asked = call.request.messages[1].text();
        let shown: Vec<_> = asked.lines().filter_map(|line| self.shown(line)).collect();
        let dice = Digest::of([&*asked])
            .short()
            .bytes()
            .fold(7, |sum, byte| sum * 31 % 10_007 + usize::from(byte));
        Ok(ChatResponse::text(if dice % 100 < self.nonsense {
            nonsense(&shown, dice / 100)
        } else if asked.contains("\"contradictions\"") {
            contradictions(&shown)
        } else if asked.contains("the merged text") {
            groups(&shown, 2, |one, tuple| {
                (!one.is_known).then(|| format!("{} {:?}", tuple.topic, tuple.value))
            })
        } else if asked.starts_with("What the user said, and") {
            mined(&shown)
        } else {
            groups(&shown, 2, |one, tuple| {
                (tuple.group != "fact").then(|| one.text.to_owned())
            })
        }))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

fn contradictions(shown: &[Shown<'_>]) -> String {
    let mut found = Vec::new();
    for (at, a) in shown.iter().enumerate() {
        for b in &shown[at + 1..] {
            if let (Some(one), Some(other)) = (a.tuple, b.tuple)
                && one.contradicts(other)
            {
                found.push(json!({"ids": [a.id, b.id], "reason": "two values"}));
            }
        }
    }
    let rests = |a: &Shown<'_>, b: &Shown<'_>| Some(a.tuple?.rests_on(b.tuple?));
    let pairs = shown.iter().flat_map(|a| shown.iter().map(move |b| (a, b)));
    let stale = pairs.filter(|(a, b)| rests(a, b) == Some(true));
    let stale: Vec<_> = stale.map(|(a, b)| json!({"id": a.id, "restsOn": b.id})).collect();
    json!({"contradictions": found, "stale": stale}).to_string()
}

/// Saves the longest text of each group with at least `min` members.
fn groups<'a>(shown: &[Shown<'a>], min: usize, key: impl Fn(&Shown<'a>, &Tuple) -> Option<String>) -> String {
    let mut groups: BTreeMap<_, Vec<&Shown<'_>>> = BTreeMap::new();
    for one in shown {
        if let Some(key) = one.tuple.and_then(|tuple| key(one, tuple)) {
            groups.entry(key).or_default().push(one);
        }
    }
    let saved = groups.into_values().filter(|group| group.len() >= min).map(|group| {
        let ids: Vec<_> = group.iter().map(|one| one.id).collect();
        let content = group.iter().map(|one| one.text).max_by_key(|text| text.len());
        json!({"content": content, "sourceIds": ids})
    });
    json!({"toSave": saved.collect::<Vec<Value>>()}).to_string()
}

/// Saves the last value of each topic, unless it is remembered, or the user took it back.
fn mined(shown: &[Shown<'_>]) -> String {
    let said = shown.iter().filter(|one| !one.is_known);
    let last: BTreeMap<_, _> = said.filter_map(|one| Some((&one.tuple?.topic, one.text))).collect();
    let is_known = |tuple: &Tuple| shown.iter().any(|one| one.is_known && one.tuple == Some(tuple));
    groups(shown, 1, |one, tuple| {
        let is_new = tuple.group == "fact" && tuple.value.is_some() && !is_known(tuple);
        let is_last = !one.is_known && last.get(&tuple.topic) == Some(&one.text);
        (is_new && is_last).then(|| tuple.topic.clone())
    })
}

/// Answers something wrong, in a form that fits each pass.
fn nonsense(shown: &[Shown<'_>], dice: usize) -> String {
    let ids: Vec<_> = shown.iter().take(6).map(|one| one.id).collect();
    let valued = shown
        .iter()
        .find_map(|one| Some((one.text, one.tuple?.value.as_deref()?)));
    let made_up = valued
        .map(|(text, value)| text.replace(value, MADE_UP))
        .unwrap_or_default();
    let injected = shown.iter().map(|one| one.text).find(|text| text.contains(INJECTED));
    let content = match dice % 3 {
        0 => injected.map_or(made_up, str::to_owned),
        1 => made_up,
        _ => shown.iter().take(6).map(|one| one.text).collect::<Vec<_>>().join(" "),
    };
    match dice % 5 {
        0 => "Certainly! {".to_owned(),
        1 => json!({"toDelete": ids, "contradictions": []}).to_string(),
        _ => {
            let pair = json!({"ids": ids.iter().take(2).collect::<Vec<_>>()});
            json!({"toSave": [{"content": content, "sourceIds": ids}], "contradictions": [pair]}).to_string()
        }
    }
}
