//! The signature of a schema: the expected shape in one line, in the notation that models know
//! from TypeScript.

use super::error::shorten;
use super::kind::{Kind, Kinds};
use super::schema::{Choices, Counts, Id, Limits, Node, Rules, Schema};

/// Maximum length of a signature, in bytes; a long last name may exceed it a little.
const MAX_BYTES: usize = 600;
/// Maximum depth of the shown shape.
const MAX_DEPTH: usize = 6;
/// Maximum number of shown values of an enumeration.
const MAX_CHOICES: usize = 12;

pub(super) fn of(schema: &Schema) -> String {
    of_any(schema, &[Schema::ROOT])
}

/// Returns the signature of a value that may have any of several shapes.
pub(super) fn of_any(schema: &Schema, shapes: &[Id]) -> String {
    let mut signature = Signature {
        schema,
        text: String::new(),
    };
    signature.shapes(shapes, " | ", 0);
    signature.text
}

/// Returns the values of an enumeration, separated by ` | `.
pub(super) fn choices(choices: &Choices) -> String {
    let shown = choices
        .values
        .iter()
        .take(MAX_CHOICES)
        .map(|value| shorten(&value.to_string(), 40));
    let more = (choices.values.len() > MAX_CHOICES).then(|| "…".to_owned());
    shown.chain(more).collect::<Vec<_>>().join(" | ")
}

struct Signature<'a> {
    schema: &'a Schema,
    text: String,
}

impl<'a> Signature<'a> {
    fn shape(&mut self, id: Id, depth: usize) {
        match self.schema.node(id) {
            Node::Constant(true) => self.text.push_str("any"),
            Node::Constant(false) => self.text.push_str("never"),
            Node::Rules(_) if depth == MAX_DEPTH => self.text.push('…'),
            Node::Rules(rules) => self.rules(rules, depth),
        }
    }

    fn rules(&mut self, rules: &'a Rules, depth: usize) {
        let start = self.text.len();
        self.own(rules, depth);
        for shapes in [rules.reference.as_slice(), &rules.all_of] {
            self.also(start, shapes, " & ", depth);
        }
        for shapes in [&rules.any_of, &rules.one_of] {
            self.also(start, shapes, " | ", depth);
        }
        if self.text.len() == start {
            self.text.push_str("any");
        }
        if rules.nullable {
            self.text.push_str(" | null");
        }
    }

    /// Writes the keywords' own constraints, without the subschemas that the same value must match.
    fn own(&mut self, rules: &'a Rules, depth: usize) {
        if let Some(values) = &rules.choices {
            self.text.push_str(&choices(values));
            return;
        }
        let kinds = rules
            .kinds
            .map_or_else(|| implied(rules), |kinds| kinds.iter().collect());
        for (index, kind) in kinds.into_iter().enumerate() {
            if index > 0 {
                self.text.push_str(" | ");
            }
            self.kind(kind, rules, depth);
        }
    }

    fn also(&mut self, start: usize, shapes: &[Id], separator: &str, depth: usize) {
        if shapes.is_empty() {
            return;
        }
        if self.text.len() > start {
            self.text.push_str(" & ");
        }
        self.shapes(shapes, separator, depth + 1);
    }

    fn shapes(&mut self, shapes: &[Id], separator: &str, depth: usize) {
        for (index, id) in shapes.iter().enumerate() {
            if index > 0 {
                self.text.push_str(separator);
            }
            if self.is_full() {
                return;
            }
            self.shape(*id, depth);
        }
    }

    fn kind(&mut self, kind: Kind, rules: &'a Rules, depth: usize) {
        match kind {
            Kind::Object => self.object(rules, depth + 1),
            Kind::Array => self.array(rules, depth + 1),
            Kind::String => {
                self.text.push_str("string");
                self.range(&counts(&rules.length, " characters"));
            }
            Kind::Integer | Kind::Number => {
                self.text.push_str(kind.name());
                self.range(&limits(&rules.number));
            }
            Kind::Boolean | Kind::Null => self.text.push_str(kind.name()),
        }
    }

    fn object(&mut self, rules: &'a Rules, depth: usize) {
        let rest = rules
            .additional
            .filter(|id| matches!(self.schema.node(*id), Node::Rules(_)));
        if rules.properties.is_empty() && rest.is_none() {
            let is_empty = rules
                .additional
                .is_some_and(|id| matches!(self.schema.node(id), Node::Constant(false)));
            self.text.push_str(if is_empty { "{}" } else { "object" });
            return;
        }
        let properties = rules.properties.iter().map(|(name, id)| {
            let optional = if rules.required.contains(name) { "" } else { "?" };
            (format!("\"{}\"{optional}", shorten(name, 64)), *id)
        });
        let rest = rest.map(|id| ("[key: string]".to_owned(), id));
        self.text.push('{');
        for (index, (name, id)) in properties.chain(rest).enumerate() {
            if index > 0 {
                self.text.push_str(", ");
            }
            if self.is_full() {
                break;
            }
            self.text.push_str(&name);
            self.text.push_str(": ");
            self.shape(id, depth);
        }
        self.text.push('}');
    }

    fn array(&mut self, rules: &'a Rules, depth: usize) {
        let Some(items) = rules.items else {
            self.text.push('[');
            self.shapes(&rules.prefix_items, ", ", depth);
            self.text
                .push_str(if rules.prefix_items.is_empty() { "…]" } else { "]" });
            return;
        };
        let start = self.text.len();
        self.shape(items, depth);
        if self.text[start..].contains(" | ") || self.text[start..].contains(" & ") {
            self.text.insert(start, '(');
            self.text.push(')');
        }
        self.text.push_str("[]");
        self.range(&counts(&rules.item_count, " items"));
    }

    fn range(&mut self, range: &str) {
        if !range.is_empty() {
            self.text.push_str(&format!(" ({range})"));
        }
    }

    /// Returns `true` if the signature has its maximum length; it then ends in `…`.
    fn is_full(&mut self) -> bool {
        let is_full = self.text.len() >= MAX_BYTES;
        if is_full {
            self.text.push('…');
        }
        is_full
    }
}

/// Returns the types that a schema without `type` implies.
fn implied(rules: &Rules) -> Vec<Kind> {
    let mut kinds = Kinds::default();
    if !rules.properties.is_empty() || !rules.required.is_empty() {
        kinds.add(Kind::Object);
    }
    if rules.items.is_some() || !rules.prefix_items.is_empty() {
        kinds.add(Kind::Array);
    }
    kinds.iter().collect()
}

fn limits(limits: &Limits) -> String {
    let parts = match (&limits.at_least, &limits.at_most) {
        (Some(least), Some(most)) => vec![format!("{least}..={most}")],
        (least, most) => [(">=", least), ("<=", most)].into_iter().filter_map(bound).collect(),
    };
    let exclusive = [
        (">", &limits.above),
        ("<", &limits.below),
        ("multiple of", &limits.multiple_of),
    ];
    let parts: Vec<_> = parts
        .into_iter()
        .chain(exclusive.into_iter().filter_map(bound))
        .collect();
    parts.join(", ")
}

fn bound<T: std::fmt::Display>((words, limit): (&str, &Option<T>)) -> Option<String> {
    limit.as_ref().map(|limit| format!("{words} {limit}"))
}

fn counts(counts: &Counts, what: &str) -> String {
    let range = match (counts.at_least, counts.at_most) {
        (None | Some(0), None) => return String::new(),
        (Some(least), Some(most)) => format!("{least}..={most}"),
        (Some(least), None) => format!(">= {least}"),
        (None, Some(most)) => format!("<= {most}"),
    };
    format!("{range}{what}")
}
