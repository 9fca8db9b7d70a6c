//! References within a schema: inlined where that is bounded, else kept with the definitions that
//! they name.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::arguments::resolve;

/// Maximum number of subschemas when references are inlined; with more they all stay. A
/// definition that is named twice in each of 30 others would otherwise become a billion
/// subschemas.
const MAX_INLINED: usize = 500;
/// Maximum nesting of inlined references.
const MAX_DEPTH: usize = 16;
/// Maximum number of attempts: each finds further references that are recursive.
const MAX_ATTEMPTS: usize = 16;

/// A walk through a schema that resolves its references.
pub(super) struct Inliner<'a> {
    root: &'a Value,
    /// The references to inline.
    policy: Policy<'a>,
    /// References that are being inlined.
    path: Vec<&'a str>,
    subschemas: usize,
    null: NullForm,
}

/// The way a normalized schema says that it accepts `null` as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NullForm {
    /// In words, where the property is required.
    Words,
    /// By the keyword `nullable`.
    Keyword,
}

/// The references to inline.
enum Policy<'a> {
    /// References that do not lead back to themselves; here are the others.
    AllBut(BTreeSet<&'a str>),
    None,
}

/// Returns the members of the schema `root` for models.
pub(super) fn normalized(root: &Value, null: NullForm) -> Map<String, Value> {
    let mut recursive = BTreeSet::new();
    for _ in 0..MAX_ATTEMPTS {
        let known = recursive.len();
        let mut inliner = Inliner::new(root, Policy::AllBut(recursive), null);
        let members = inliner.whole();
        let is_bounded = inliner.subschemas <= MAX_INLINED;
        recursive = match inliner.policy {
            Policy::AllBut(found) if is_bounded && found.len() == known => return members,
            Policy::AllBut(found) if is_bounded => found,
            Policy::AllBut(_) | Policy::None => break,
        };
    }
    Inliner::new(root, Policy::None, null).whole()
}

impl<'a> Inliner<'a> {
    fn new(root: &'a Value, policy: Policy<'a>, null: NullForm) -> Self {
        Self {
            root,
            policy,
            path: Vec::new(),
            subschemas: 0,
            null,
        }
    }

    /// Returns the root with the definitions that it still refers to.
    fn whole(&mut self) -> Map<String, Value> {
        let mut members = match self.schema(self.root) {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        let mut pending = Vec::new();
        let own = members.get("$ref").and_then(Value::as_str);
        pending.extend(own.map(str::to_owned));
        members.values().for_each(|value| references(value, &mut pending));
        while let Some(reference) = pending.pop() {
            let Some((keyword, name, schema)) = self.definition(&reference) else {
                continue;
            };
            let definitions = members.entry(keyword).or_insert_with(|| Map::new().into());
            if definitions.get(&name).is_none() {
                let definition = self.schema(schema);
                references(&definition, &mut pending);
                definitions[name] = definition;
            }
        }
        members
    }

    /// Returns where the definition stands that `reference` leads to or into.
    fn definition(&self, reference: &str) -> Option<(&'static str, String, &'a Value)> {
        let root = self.root;
        ["$defs", "definitions"].into_iter().find_map(|keyword| {
            let pointer = reference.strip_prefix("#/")?.strip_prefix(keyword)?.strip_prefix('/')?;
            let name = pointer.split('/').next()?.replace("~1", "/").replace("~0", "~");
            let schema = root.get(keyword)?.get(&name)?;
            Some((keyword, name, schema))
        })
    }

    /// Returns the normalized members of the schema that `reference` leads to, unless the reference
    /// stays.
    pub(super) fn inlined(&mut self, reference: &'a Value) -> Option<Map<String, Value>> {
        let reference = reference.as_str()?;
        let Policy::AllBut(recursive) = &mut self.policy else {
            return None;
        };
        let is_circle = self.path.contains(&reference);
        if is_circle {
            recursive.insert(reference);
        }
        if is_circle || recursive.contains(reference) || self.path.len() == MAX_DEPTH {
            return None;
        }
        let schema = resolve(self.root, reference.strip_prefix('#')?)?;
        self.path.push(reference);
        let schema = self.schema(schema);
        self.path.pop();
        match schema {
            Value::Object(members) => Some(members),
            _ => None,
        }
    }

    /// Returns the way that schemas say that they accept `null` as well.
    pub(super) fn null_form(&self) -> NullForm {
        self.null
    }

    /// Counts a subschema. Returns `false` if there is no room for it.
    pub(super) fn spend(&mut self) -> bool {
        self.subschemas += 1;
        self.subschemas <= MAX_INLINED || matches!(self.policy, Policy::None)
    }
}

/// Adds all references in `value` to `found`.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|value| references(value, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
