//! Compiled schemas: a flat list of subschemas that refer to each other by index, so that a
//! `$ref` costs nothing and may form cycles.

use std::collections::{BTreeMap, HashMap, VecDeque};

use serde_json::{Map, Number, Value};

use super::error::shorten;
use super::kind::{Kind, Kinds, same, size};
use super::limits;

/// Maximum length of a schema, in bytes of its JSON text.
const MAX_BYTES: usize = 64 * 1024;
/// Maximum nesting of subschemas.
const MAX_DEPTH: usize = 64;
/// Maximum number of subschemas.
const MAX_SUBSCHEMAS: usize = 2_000;

/// Keywords that may refuse a value and are not validated.
const UNCHECKED: [&str; 15] = [
    "$dynamicRef",
    "$recursiveRef",
    "additionalItems",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "extends",
    "format",
    "if",
    "pattern",
    "patternProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords whose value is a number.
const NUMERIC: [&str; 11] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];

/// An error of a schema that cannot be compiled for validating arguments.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SchemaError(String);

/// The index of a subschema in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Id(usize);

/// A compiled schema.
#[derive(Debug)]
pub(super) struct Schema {
    nodes: Vec<Node>,
    /// `true` if every keyword is validated. If not, a subschema may accept too much, and a keyword
    /// that turns acceptance into a refusal (`not`, `oneOf`) would refuse valid values; such keywords
    /// are then not enforced.
    pub(super) is_exact: bool,
    /// `true` if a subschema has constraints beyond the constraints of a Rust type.
    pub(super) adds_to_types: bool,
}

/// A subschema.
#[derive(Debug)]
pub(super) enum Node {
    /// `true` or `false`: every value or none.
    Constant(bool),
    Rules(Box<Rules>),
}

/// The keywords of a subschema.
#[derive(Debug, Default)]
pub(super) struct Rules {
    pub(super) reference: Option<Id>,
    pub(super) kinds: Option<Kinds>,
    pub(super) nullable: bool,
    pub(super) choices: Option<Choices>,
    pub(super) number: Limits,
    pub(super) length: Counts,
    pub(super) item_count: Counts,
    pub(super) member_count: Counts,
    pub(super) unique_items: bool,
    pub(super) properties: BTreeMap<String, Id>,
    pub(super) required: Vec<String>,
    pub(super) additional: Option<Id>,
    pub(super) prefix_items: Vec<Id>,
    pub(super) items: Option<Id>,
    pub(super) all_of: Vec<Id>,
    pub(super) any_of: Vec<Id>,
    pub(super) one_of: Vec<Id>,
    pub(super) not: Option<Id>,
}

/// The limits of a number.
#[derive(Debug, Default)]
pub(super) struct Limits {
    pub(super) at_least: Option<Number>,
    pub(super) at_most: Option<Number>,
    pub(super) above: Option<Number>,
    pub(super) below: Option<Number>,
    pub(super) multiple_of: Option<Number>,
}

/// The limits of a number of characters, items or members.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) at_least: Option<u64>,
    pub(super) at_most: Option<u64>,
}

/// The values of `enum` or `const`.
#[derive(Debug)]
pub(super) struct Choices {
    pub(super) values: Vec<Value>,
    /// The cost of comparing a value with all of them, in steps.
    pub(super) size: usize,
}

impl Choices {
    fn new(values: Vec<Value>) -> Self {
        let size = values.iter().map(size).sum();
        Self { values, size }
    }

    pub(super) fn have(&self, value: &Value) -> bool {
        self.values.iter().any(|choice| same(choice, value))
    }
}

impl Schema {
    pub(super) const ROOT: Id = Id(0);

    pub(super) fn compile(schema: &Value) -> Result<Self, SchemaError> {
        // A subschema stands at most two levels of JSON below its parent.
        if is_deeper_than(schema, 2 * MAX_DEPTH) {
            return Err(too_deep());
        }
        let bytes = schema.to_string().len();
        if bytes > MAX_BYTES {
            return Err(SchemaError(format!(
                "it is {bytes} bytes long, {MAX_BYTES} are allowed: shorten its texts"
            )));
        }
        check_root(schema)?;
        Compiler::new(schema).compile()
    }

    pub(super) fn node(&self, id: Id) -> &Node {
        &self.nodes[id.0]
    }

    /// Returns the keywords of a subschema, following references, at most [`MAX_DEPTH`] of them.
    pub(super) fn rules(&self, mut id: Id) -> Option<&Rules> {
        for _ in 0..MAX_DEPTH {
            match self.node(id) {
                Node::Rules(rules) => match rules.reference {
                    Some(next) => id = next,
                    None => return Some(rules),
                },
                Node::Constant(_) => return None,
            }
        }
        None
    }
}

fn check_root(schema: &Value) -> Result<(), SchemaError> {
    let Some(members) = schema.as_object() else {
        return Err(SchemaError(
            "it must be a JSON object such as `{\"type\": \"object\"}`".to_owned(),
        ));
    };
    let describes_object = match members.get("type") {
        None | Some(Value::Null) => true,
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(kind) => kind == "object",
    };
    if !describes_object {
        let kind = shorten(&members["type"].to_string(), 40);
        return Err(SchemaError(format!(
            "arguments are an object, so its `type` must be `object`, not {kind}"
        )));
    }
    Ok(())
}

/// Checks the value of a keyword that a model gets as it is. A provider that does not accept it
/// refuses the whole request, and with it the tools that are well described.
fn check_value(keyword: &str, value: &Value) -> Result<(), SchemaError> {
    let expected = match keyword {
        "type" if kinds(value).is_none() => {
            "one or a list of `object`, `array`, `string`, `integer`, `number`, `boolean` and `null`"
        }
        "enum" if !value.is_array() => "a list",
        "required" if strings(value).is_none() => "a list of names",
        // Booleans are the form of draft 4: see `adjust`.
        "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() => return Ok(()),
        _ if NUMERIC.contains(&keyword) && !value.is_number() => "a number",
        _ => return Ok(()),
    };
    let value = shorten(&value.to_string(), 40);
    Err(SchemaError(format!("`{keyword}` must be {expected}, not {value}")))
}

fn too_deep() -> SchemaError {
    SchemaError(format!("it is nested deeper than {MAX_DEPTH} levels: flatten it"))
}

fn is_deeper_than(value: &Value, levels: usize) -> bool {
    let is_deeper = |inner: &Value| levels == 0 || is_deeper_than(inner, levels - 1);
    match value {
        Value::Array(items) => items.iter().any(is_deeper),
        Value::Object(members) => members.values().any(is_deeper),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// A compiler that works breadth first, without recursion, because references may form a long
/// chain.
struct Compiler<'a> {
    root: &'a Value,
    /// The ids of the subschemas seen so far. Subschemas are identified by their address, which is
    /// stable while `root` is borrowed.
    ids: HashMap<*const Value, Id>,
    pending: VecDeque<(&'a Value, usize)>,
    is_exact: bool,
    adds_to_types: bool,
}

impl<'a> Compiler<'a> {
    fn new(root: &'a Value) -> Self {
        Self {
            root,
            ids: HashMap::new(),
            pending: VecDeque::new(),
            is_exact: true,
            adds_to_types: false,
        }
    }

    fn compile(mut self) -> Result<Schema, SchemaError> {
        let mut nodes = Vec::new();
        self.id(self.root, 0)?;
        // Ids are assigned in the order of the queue, so each node lands at its index.
        while let Some((schema, depth)) = self.pending.pop_front() {
            nodes.push(self.node(schema, depth)?);
        }
        Ok(Schema {
            nodes,
            is_exact: self.is_exact,
            adds_to_types: self.adds_to_types,
        })
    }

    fn id(&mut self, schema: &'a Value, depth: usize) -> Result<Id, SchemaError> {
        let next = Id(self.ids.len());
        let id = *self.ids.entry(std::ptr::from_ref(schema)).or_insert(next);
        if id == next {
            if depth > MAX_DEPTH {
                return Err(too_deep());
            }
            if next.0 == MAX_SUBSCHEMAS {
                return Err(SchemaError(format!(
                    "it has more than {MAX_SUBSCHEMAS} subschemas: simplify it"
                )));
            }
            self.pending.push_back((schema, depth));
        }
        Ok(id)
    }

    fn node(&mut self, schema: &'a Value, depth: usize) -> Result<Node, SchemaError> {
        let members = match schema {
            Value::Bool(everything) => return Ok(Node::Constant(*everything)),
            Value::Object(members) => members,
            other => {
                let other = shorten(&other.to_string(), 40);
                return Err(SchemaError(format!(
                    "a subschema must be an object or a boolean, not {other}"
                )));
            }
        };
        let mut rules = Rules::default();
        for (keyword, value) in members {
            // Some generators write `null` for an absent keyword.
            if !value.is_null() || keyword == "const" {
                check_value(keyword, value)?;
                self.keyword(&mut rules, keyword, value, depth + 1)?;
            }
        }
        adjust(&mut rules, members);
        self.adds_to_types |= limits::adds_to_types(members);
        Ok(Node::Rules(Box::new(rules)))
    }

    fn keyword(&mut self, rules: &mut Rules, keyword: &str, value: &'a Value, depth: usize) -> Result<(), SchemaError> {
        match keyword {
            "$ref" => rules.reference = Some(self.reference(value, depth)?),
            "type" => rules.kinds = self.read(kinds(value)),
            "nullable" => rules.nullable = *value == true,
            "enum" => rules.choices = self.read(value.as_array().cloned().map(Choices::new)),
            "const" => rules.choices = Some(Choices::new(vec![value.clone()])),
            "minimum" => rules.number.at_least = self.read(number(value)),
            "maximum" => rules.number.at_most = self.read(number(value)),
            // Booleans are the form of draft 4: see `adjust`.
            "exclusiveMinimum" if !value.is_boolean() => rules.number.above = self.read(number(value)),
            "exclusiveMaximum" if !value.is_boolean() => rules.number.below = self.read(number(value)),
            "multipleOf" => rules.number.multiple_of = self.read(number(value)),
            "minLength" => rules.length.at_least = self.read(count(value)),
            "maxLength" => rules.length.at_most = self.read(count(value)),
            "minItems" => rules.item_count.at_least = self.read(count(value)),
            "maxItems" => rules.item_count.at_most = self.read(count(value)),
            "minProperties" => rules.member_count.at_least = self.read(count(value)),
            "maxProperties" => rules.member_count.at_most = self.read(count(value)),
            "uniqueItems" => rules.unique_items = *value == true,
            "required" => rules.required = self.read(strings(value)).unwrap_or_default(),
            "properties" => rules.properties = self.members(value, depth)?,
            "additionalProperties" => rules.additional = Some(self.id(value, depth)?),
            "prefixItems" => rules.prefix_items = self.list(value, depth)?,
            // An array is the older form of `prefixItems`.
            "items" if value.is_array() => rules.prefix_items = self.list(value, depth)?,
            "items" => rules.items = Some(self.id(value, depth)?),
            "allOf" => rules.all_of = self.list(value, depth)?,
            "anyOf" => rules.any_of = self.list(value, depth)?,
            "oneOf" => rules.one_of = self.list(value, depth)?,
            "not" => rules.not = Some(self.id(value, depth)?),
            keyword => self.is_exact &= !UNCHECKED.contains(&keyword),
        }
        Ok(())
    }

    /// Passes on the value of a keyword. A malformed value makes the schema inexact, like an unknown
    /// keyword.
    fn read<T>(&mut self, value: Option<T>) -> Option<T> {
        self.is_exact &= value.is_some();
        value
    }

    fn members(&mut self, value: &'a Value, depth: usize) -> Result<BTreeMap<String, Id>, SchemaError> {
        let members = self.read(value.as_object()).into_iter().flatten();
        members
            .map(|(name, schema)| Ok((name.clone(), self.id(schema, depth)?)))
            .collect()
    }

    fn list(&mut self, value: &'a Value, depth: usize) -> Result<Vec<Id>, SchemaError> {
        let schemas = self.read(value.as_array()).into_iter().flatten();
        schemas.map(|schema| self.id(schema, depth)).collect()
    }

    fn reference(&mut self, value: &'a Value, depth: usize) -> Result<Id, SchemaError> {
        let shown = shorten(&value.to_string(), 100);
        let pointer = value.as_str().and_then(|reference| reference.strip_prefix('#'));
        let Some(pointer) = pointer.filter(|pointer| pointer.is_empty() || pointer.starts_with('/')) else {
            let problem = format!("`$ref` {shown} leads outside the schema, which is not followed");
            return Err(SchemaError(format!(
                "{problem}: use `#/$defs/…` and put the definition there"
            )));
        };
        let schema = resolve(self.root, pointer)
            .ok_or_else(|| SchemaError(format!("`$ref` {shown} leads nowhere: add the definition")))?;
        self.id(schema, depth)
    }
}

/// Returns the part of a schema that the JSON pointer of a `$ref` leads to.
pub(crate) fn resolve<'a>(root: &'a Value, pointer: &str) -> Option<&'a Value> {
    root.pointer(pointer)
        .or_else(|| root.pointer(&percent_decoded(pointer)?))
}

/// Applies rules that follow from several keywords together.
fn adjust(rules: &mut Rules, members: &Map<String, Value>) {
    let limits = &mut rules.number;
    if members.get("exclusiveMinimum") == Some(&Value::Bool(true)) {
        limits.above = limits.at_least.take();
    }
    if members.get("exclusiveMaximum") == Some(&Value::Bool(true)) {
        limits.below = limits.at_most.take();
    }
    // Patterns are not validated, so any name may match.
    if members.contains_key("patternProperties") {
        rules.additional = None;
    }
}

fn kinds(value: &Value) -> Option<Kinds> {
    let mut kinds = Kinds::default();
    let names = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    for name in names {
        kinds.add(Kind::ALL.into_iter().find(|kind| *name == kind.name())?);
    }
    Some(kinds)
}

fn number(value: &Value) -> Option<Number> {
    value.as_number().cloned()
}

fn count(value: &Value) -> Option<u64> {
    value.as_u64()
}

fn strings(value: &Value) -> Option<Vec<String>> {
    let items = value.as_array()?.iter();
    items.map(|item| item.as_str().map(str::to_owned)).collect()
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}
