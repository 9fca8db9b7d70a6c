//! Validation of a value against a compiled schema, with a bound on the work.

use std::cmp::Ordering;
use std::collections::HashSet;

use crate::did_you_mean;
use serde_json::{Map, Number, Value};

use super::error::shorten;
use super::kind::{Kind, Kinds, compare, describe};
use super::schema::{Choices, Counts, Id, Limits, Node, Rules, Schema};
use super::signature;

/// Maximum number of reported problems. The model corrects these and learns of the rest from its
/// next attempt.
const MAX_PROBLEMS: usize = 5;
/// Maximum number of steps of a validation, and how many more for each byte of the arguments. A
/// hostile schema (nested `anyOf`) could otherwise need exponential time.
const MAX_STEPS: usize = 100_000;
const STEPS_PER_BYTE: usize = 2;
/// Maximum nesting of entered subschemas. A `$ref` to itself would otherwise overflow the stack.
const MAX_DEPTH: usize = 256;

/// Returns the first few problems of `value`, or nothing if it matches.
pub(super) fn problems(schema: &Schema, value: &Value, bytes: usize) -> Vec<String> {
    let mut check = Validation {
        schema,
        steps_left: MAX_STEPS + STEPS_PER_BYTE * bytes,
        is_exhausted: false,
        depth: 0,
        path: Vec::new(),
        problems: Vec::new(),
        is_quiet: false,
    };
    check.fits(Schema::ROOT, value);
    if check.is_exhausted {
        return vec!["the arguments are too intricate to be checked: send fewer or simpler values".to_owned()];
    }
    check.problems
}

struct Validation<'a> {
    schema: &'a Schema,
    steps_left: usize,
    /// `true` if the validation needed too many steps. Problems found until then do not count.
    is_exhausted: bool,
    depth: usize,
    path: Vec<PathSegment<'a>>,
    problems: Vec<String>,
    /// `true` if problems are noticed but not recorded, because a shape among several is being
    /// tried.
    is_quiet: bool,
}

#[derive(Clone, Copy)]
enum PathSegment<'a> {
    Member(&'a str),
    Item(usize),
}

impl<'a> Validation<'a> {
    fn fits(&mut self, id: Id, value: &'a Value) -> bool {
        self.spend(1);
        self.is_exhausted |= self.depth == MAX_DEPTH;
        if self.is_exhausted {
            return false;
        }
        self.depth += 1;
        let fits = match self.schema.node(id) {
            Node::Constant(true) => true,
            Node::Constant(false) => self.refuse(|| "is not allowed".to_owned()),
            Node::Rules(rules) => self.follows(rules, value),
        };
        self.depth -= 1;
        fits
    }

    fn follows(&mut self, rules: &'a Rules, value: &'a Value) -> bool {
        if rules.nullable && value.is_null() {
            return true;
        }
        // A value of the wrong type has this problem alone; its other keywords would only repeat
        // it.
        if !rules.kinds.is_none_or(|kinds| kinds.accepts(Kind::of(value))) {
            return self.refuse(|| wrong_kind(rules, value));
        }
        let by_kind = match value {
            Value::Number(number) => self.number(&rules.number, number),
            Value::String(text) => self.text(&rules.length, text),
            Value::Array(items) => self.array(rules, items),
            Value::Object(members) => self.object(rules, members),
            Value::Null | Value::Bool(_) => true,
        };
        by_kind & self.choice(rules.choices.as_ref(), value) & self.composed(rules, value)
    }

    fn number(&mut self, limits: &Limits, number: &Number) -> bool {
        use Ordering::{Equal, Greater, Less};
        let bounds: [(&str, &Option<Number>, &[Ordering]); 4] = [
            ("at least", &limits.at_least, &[Greater, Equal]),
            ("at most", &limits.at_most, &[Less, Equal]),
            ("greater than", &limits.above, &[Greater]),
            ("less than", &limits.below, &[Less]),
        ];
        let mut fits = true;
        for (words, limit, allowed) in bounds {
            if let Some(limit) = limit
                && compare(number, limit).is_some_and(|order| !allowed.contains(&order))
            {
                fits = self.refuse(|| format!("must be {words} {limit}, got {number}"));
            }
        }
        if let Some(factor) = &limits.multiple_of
            && !is_multiple(number, factor)
        {
            fits = self.refuse(|| format!("must be a multiple of {factor}, got {number}"));
        }
        fits
    }

    fn text(&mut self, length: &Counts, text: &str) -> bool {
        if length.at_least.is_none() && length.at_most.is_none() {
            return true;
        }
        self.spend(text.len() / 64);
        self.count(length, text.chars().count(), "character")
    }

    fn array(&mut self, rules: &'a Rules, items: &'a [Value]) -> bool {
        let mut fits = self.count(&rules.item_count, items.len(), "item");
        for (index, item) in items.iter().enumerate() {
            if let Some(id) = rules.prefix_items.get(index).copied().or(rules.items) {
                fits &= self.at(PathSegment::Item(index), |check| check.fits(id, item));
            }
        }
        fits & (!rules.unique_items || self.unique(items))
    }

    fn unique(&mut self, items: &[Value]) -> bool {
        let mut seen = HashSet::new();
        for (index, item) in items.iter().enumerate() {
            let text = item.to_string();
            self.spend(text.len() / 64 + 1);
            if !seen.insert(text) {
                return self
                    .refuse(|| format!("must not have the same item twice, item {index} repeats an earlier one"));
            }
        }
        true
    }

    fn object(&mut self, rules: &'a Rules, members: &'a Map<String, Value>) -> bool {
        self.spend(rules.required.len() + members.len());
        let missing = rules.required.iter().filter(|name| !members.contains_key(*name));
        let mut fits = missing.fold(true, |_, name| self.missing(rules, name, members));
        for (name, value) in members {
            let is_optional_null = value.is_null() && !rules.required.contains(name);
            fits &= match (rules.properties.get(name), rules.additional) {
                (Some(id), _) if is_optional_null => self.optional_null(*id, name, value),
                (Some(id), _) => self.at(PathSegment::Member(name), |check| check.fits(*id, value)),
                (None, Some(id)) => self.additional(rules, id, name, value),
                (None, None) => true,
            };
        }
        fits & self.count(&rules.member_count, members.len(), "member")
    }

    /// Checks a `null` for an optional member. A problem with it says that the member may be left out.
    fn optional_null(&mut self, id: Id, name: &'a str, value: &'a Value) -> bool {
        let known = self.problems.len();
        let fits = self.at(PathSegment::Member(name), |check| check.fits(id, value));
        let found = self.problems.iter_mut().skip(known);
        found.for_each(|problem| problem.push_str("; leave it out instead"));
        fits
    }

    fn missing(&mut self, rules: &Rules, name: &'a str, members: &'a Map<String, Value>) -> bool {
        self.at(PathSegment::Member(name), |check| {
            check.refuse(|| {
                let unknown = members.keys().filter(|given| !rules.properties.contains_key(*given));
                match did_you_mean(name, unknown.map(String::as_str)) {
                    Some(given) => format!("is required and missing; did you mean it by `{}`?", shorten(given, 64)),
                    None => "is required and missing".to_owned(),
                }
            })
        })
    }

    fn additional(&mut self, rules: &'a Rules, id: Id, name: &'a str, value: &'a Value) -> bool {
        self.at(PathSegment::Member(name), |check| match check.schema.node(id) {
            Node::Constant(false) => check.refuse(|| {
                let known = rules.properties.keys().map(String::as_str);
                match did_you_mean(name, known) {
                    Some(meant) => format!("is not a known argument; did you mean `{meant}`?"),
                    None => "is not a known argument".to_owned(),
                }
            }),
            Node::Constant(true) | Node::Rules(_) => check.fits(id, value),
        })
    }

    fn choice(&mut self, choices: Option<&Choices>, value: &Value) -> bool {
        let Some(choices) = choices else { return true };
        self.spend(choices.size);
        choices.have(value) || self.refuse(|| wrong_choice(choices, value))
    }

    fn composed(&mut self, rules: &'a Rules, value: &'a Value) -> bool {
        let every = rules.reference.iter().chain(&rules.all_of);
        let fits_every = every.fold(true, |fits, id| fits & self.fits(*id, value));
        fits_every
            & (rules.any_of.is_empty() || self.any_of(&rules.any_of, value))
            & (rules.one_of.is_empty() || self.one_of(&rules.one_of, value))
            & rules.not.is_none_or(|id| self.not(id, value))
    }

    fn any_of(&mut self, shapes: &'a [Id], value: &'a Value) -> bool {
        self.quietly(|check| shapes.iter().any(|id| check.fits(*id, value))) || self.fits_none(shapes, value)
    }

    fn one_of(&mut self, shapes: &'a [Id], value: &'a Value) -> bool {
        let fitting = self.quietly(|check| shapes.iter().filter(|id| check.fits(**id, value)).count());
        match fitting {
            0 => self.fits_none(shapes, value),
            1 => true,
            _ if !self.schema.is_exact => true,
            _ => self.refuse(|| "fits more than one of the allowed shapes, only one may fit".to_owned()),
        }
    }

    /// Records the problems of the one shape that was probably meant, or names all shapes.
    fn fits_none(&mut self, shapes: &'a [Id], value: &'a Value) -> bool {
        if self.is_quiet {
            return false;
        }
        let mut meant = shapes.iter().filter(|id| is_meant(self.schema, **id, value));
        match (meant.next(), meant.next()) {
            (Some(only), None) => self.fits(*only, value),
            _ => self.refuse(|| {
                let shapes = signature::of_any(self.schema, shapes);
                format!("must be {shapes}, got {}", describe(value))
            }),
        }
    }

    fn not(&mut self, id: Id, value: &'a Value) -> bool {
        let is_refused = self.schema.is_exact && self.quietly(|check| check.fits(id, value));
        !is_refused || self.refuse(|| "has a value that is not allowed".to_owned())
    }

    fn count(&mut self, counts: &Counts, count: usize, what: &str) -> bool {
        let given = count as u64;
        let (words, limit) = match (counts.at_least, counts.at_most) {
            (Some(least), _) if given < least => ("at least", least),
            (_, Some(most)) if given > most => ("at most", most),
            _ => return true,
        };
        let plural = if limit == 1 { "" } else { "s" };
        self.refuse(|| format!("must have {words} {limit} {what}{plural}, got {count}"))
    }

    fn at<T>(&mut self, segment: PathSegment<'a>, check: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(segment);
        let result = check(self);
        self.path.pop();
        result
    }

    fn quietly<T>(&mut self, check: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.is_quiet, true);
        let result = check(self);
        self.is_quiet = before;
        result
    }

    fn spend(&mut self, steps: usize) {
        self.is_exhausted |= self.steps_left < steps;
        self.steps_left = self.steps_left.saturating_sub(steps);
    }

    /// Records a problem with the value at the current path. Returns `false`, the result of the
    /// failed check.
    fn refuse(&mut self, problem: impl FnOnce() -> String) -> bool {
        if !self.is_quiet && self.problems.len() < MAX_PROBLEMS {
            let problem = format!("{} {}", self.path_text(), problem());
            self.problems.push(problem);
        }
        false
    }

    /// Returns the current path for a message, such as `` `stops/0/city` ``.
    fn path_text(&self) -> String {
        if self.path.is_empty() {
            return "the arguments object".to_owned();
        }
        let names = self.path.iter().map(|segment| match segment {
            PathSegment::Member(name) => shorten(name, 64),
            PathSegment::Item(index) => index.to_string(),
        });
        let path = names.collect::<Vec<_>>().join("/");
        format!("`{}`", shorten(&path, 200))
    }
}

/// Returns `true` if the shape has the type of the value and, if both are objects, the same tags.
fn is_meant(schema: &Schema, id: Id, value: &Value) -> bool {
    let Some(rules) = schema.rules(id) else { return false };
    let tag_fits = |(name, id): (&String, &Id)| match (schema.node(*id), value.get(name)) {
        (Node::Rules(rules), Some(value)) => rules.choices.as_ref().is_none_or(|choices| choices.have(value)),
        _ => true,
    };
    let kind_fits = rules.kinds.is_none_or(|kinds| kinds.accepts(Kind::of(value)));
    kind_fits && rules.choices.is_none() && rules.properties.iter().all(tag_fits)
}

fn is_multiple(number: &Number, factor: &Number) -> bool {
    match (number.as_i128(), factor.as_i128()) {
        (_, Some(0)) => true,
        (Some(number), Some(factor)) => number % factor == 0,
        _ => {
            let (Some(number), Some(factor)) = (number.as_f64(), factor.as_f64()) else {
                return true;
            };
            let quotient = number / factor;
            // Binary floating point is not exact for decimal fractions: 0.3 must count as a multiple of 0.1.
            !quotient.is_finite() || (quotient - quotient.round()).abs() <= 1e-9 * quotient.abs().max(1.0)
        }
    }
}

fn wrong_kind(rules: &Rules, value: &Value) -> String {
    let kinds = rules.kinds.iter().copied().flat_map(Kinds::iter);
    let kinds: Vec<_> = kinds.map(Kind::with_article).collect();
    format!("must be {}, got {}", kinds.join(" or "), describe(value))
}

fn wrong_choice(choices: &Choices, value: &Value) -> String {
    let allowed = signature::choices(choices);
    let given = describe(value);
    let names = choices.values.iter().filter_map(Value::as_str);
    match value.as_str().and_then(|text| did_you_mean(text, names)) {
        Some(meant) => format!("must be {allowed}, got {given}; did you mean \"{meant}\"?"),
        None => format!("must be {allowed}, got {given}"),
    }
}
