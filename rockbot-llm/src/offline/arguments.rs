//! Arguments found in a question, according to the schema.

use rockbot_core::tool::ToolRegistration;
use serde_json::{Map, Number, Value};

use super::words;

/// The kind of evidence that an argument found in the question is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evidence {
    /// An arithmetic expression for an argument that wants one.
    Expression,
    /// Anything else, or nothing.
    Other,
}

/// Names of optional arguments that a quoted text is for, when several arguments are texts.
const QUERIES: [&str; 6] = ["query", "search", "text", "words", "question", "content"];

/// Takes the arguments of `tool` from `question`, as JSON text: the required arguments, and the
/// optional ones that the question has words for. Returns the name of the first missing required
/// argument as the error.
pub(super) fn fill(question: &str, tool: &ToolRegistration) -> Result<(String, Evidence), String> {
    let required = tool.parameters_schema["required"].as_array();
    let mut source = Source::new(question, tool);
    let mut arguments = Map::new();
    for name in required.into_iter().flatten().filter_map(Value::as_str) {
        let schema = &tool.parameters_schema["properties"][name];
        let value = source.take(name, schema).ok_or_else(|| name.to_owned())?;
        arguments.insert(name.to_owned(), value);
    }
    source.take_optional(&mut arguments);
    Ok((Value::Object(arguments).to_string(), source.evidence))
}

/// Returns the name of the argument without a value that a quoted text is for: the argument named
/// as a query, or the only text.
fn optional_text<'a>(tool: &'a ToolRegistration, arguments: &Map<String, Value>) -> Option<&'a str> {
    let properties = tool.parameters_schema["properties"].as_object()?;
    let is_free = |(name, schema): &(&String, &Value)| {
        !arguments.contains_key(*name) && has_type(schema, "string") && schema["enum"].is_null()
    };
    let free: Vec<&str> = properties
        .iter()
        .filter(is_free)
        .map(|(name, _)| name.as_str())
        .collect();
    let query = QUERIES.iter().find_map(|query| free.iter().find(|name| *name == query));
    match (query, free.as_slice()) {
        (Some(query), _) => Some(query),
        (None, [only]) => Some(only),
        (None, _) => None,
    }
}

/// A question, and its parts that are used up.
struct Source<'a> {
    question: &'a str,
    tool: &'a ToolRegistration,
    numbers: std::vec::IntoIter<Number>,
    quotes: std::vec::IntoIter<&'a str>,
    is_rest_taken: bool,
    evidence: Evidence,
}

impl<'a> Source<'a> {
    fn new(question: &'a str, tool: &'a ToolRegistration) -> Self {
        Self {
            question,
            tool,
            numbers: numbers(question).into_iter(),
            quotes: quotes(question).into_iter(),
            is_rest_taken: false,
            evidence: Evidence::Other,
        }
    }

    fn take(&mut self, name: &str, schema: &Value) -> Option<Value> {
        if let Some(values) = schema["enum"].as_array() {
            return self.listed(values);
        }
        if has_type(schema, "integer") {
            return self.numbers.find(|number| !number.is_f64()).map(Value::Number);
        }
        if has_type(schema, "number") {
            return self.numbers.next().map(Value::Number);
        }
        if !has_type(schema, "string") {
            return None;
        }
        let hints = words::all(&format!(
            "{name} {}",
            schema["description"].as_str().unwrap_or_default()
        ));
        self.text(&hints).map(Value::String)
    }

    /// Takes optional arguments: listed values and numbers that are said, and a text for the query.
    fn take_optional(&mut self, arguments: &mut Map<String, Value>) {
        let asked = words::all(self.question);
        let properties = self.tool.parameters_schema["properties"].as_object();
        for (name, schema) in properties.into_iter().flatten() {
            let is_text = has_type(schema, "string") && schema["enum"].is_null();
            // A number may mean anything, unless the argument is named beside it.
            let is_named = || words::all(name).iter().any(|word| asked.contains(word));
            if is_text || arguments.contains_key(name) || (schema["enum"].is_null() && !is_named()) {
                continue;
            }
            if let Some(value) = self.take(name, schema) {
                arguments.insert(name.clone(), value);
            }
        }
        let Some(name) = optional_text(self.tool, arguments) else {
            return;
        };
        let rest = || {
            let is_free = QUERIES.contains(&name) && !self.is_rest_taken;
            is_free.then(|| after_the_verb(self.question, self.tool)).flatten()
        };
        if let Some(text) = self.quotes.next().map(str::to_owned).or_else(rest) {
            arguments.insert(name.to_owned(), text.into());
        }
    }

    fn listed(&self, values: &[Value]) -> Option<Value> {
        let asked = words::all(self.question);
        let is_said = |value: &&Value| value.as_str().is_some_and(|text| asked.contains(&words::normal(text)));
        values.iter().find(is_said).cloned()
    }

    /// Takes a text of the kind that the argument's name and description hint at.
    fn text(&mut self, hints: &[String]) -> Option<String> {
        let hints_at = |kinds: &[&str]| hints.iter().any(|hint| kinds.contains(&hint.as_str()));
        if hints_at(&["expression", "arithmetic", "formula", "calculation", "math", "maths"]) {
            let found = expression(self.question)?;
            self.evidence = Evidence::Expression;
            return Some(found);
        }
        if hints_at(&["url", "link", "uri"]) {
            return token(self.question, |word| {
                word.starts_with("http://") || word.starts_with("https://")
            });
        }
        if let Some(quoted) = self.quotes.next() {
            return Some(quoted.to_owned());
        }
        if hints_at(&["file", "filename", "path"]) {
            return token(self.question, is_file_name);
        }
        if std::mem::replace(&mut self.is_rest_taken, true) {
            None
        } else {
            after_the_verb(self.question, self.tool)
        }
    }
}

fn has_type(schema: &Value, name: &str) -> bool {
    match &schema["type"] {
        Value::String(kind) => kind == name,
        Value::Array(kinds) => kinds.iter().any(|kind| kind == name),
        _ => false,
    }
}

fn token(text: &str, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
    let around = ['"', '\'', '`', '(', ')', '<', '>', ',', ';', ':', '?', '!'];
    let mut words = text
        .split_whitespace()
        .map(|word| word.trim_matches(around).trim_end_matches('.'));
    words.find(|word| is_wanted(word)).map(str::to_owned)
}

fn is_file_name(word: &str) -> bool {
    let has_extension = word.rsplit_once('.').is_some_and(|(stem, extension)| {
        let is_plain = extension.chars().all(|c| c.is_ascii_alphanumeric());
        let is_number = extension.chars().all(|c| c.is_ascii_digit());
        !stem.is_empty() && (1..=8).contains(&extension.len()) && is_plain && !is_number
    });
    has_extension || (word.len() > 1 && word.contains('/') && !word.contains("//"))
}

/// Returns the numbers that words begin with, as in `20-sided` and `2.5km`; dates are none.
fn numbers(text: &str) -> Vec<Number> {
    let is_digit = |c: char| c.is_ascii_digit() || c == '.' || c == '-';
    let words = text.split(|c: char| !is_digit(c) && !c.is_alphanumeric());
    let number = |word: &str| {
        let end = word.find(|c| !is_digit(c)).unwrap_or(word.len());
        let digits = word[..end].trim_end_matches(['.', '-']);
        let whole = digits.parse::<i64>().ok().map(Number::from);
        whole.or_else(|| Number::from_f64(digits.parse().ok()?))
    };
    words.filter_map(number).collect()
}

fn quotes(text: &str) -> Vec<&str> {
    const PAIRS: [(char, char); 5] = [('"', '"'), ('`', '`'), ('“', '”'), ('«', '»'), ('\'', '\'')];
    let mut found = Vec::new();
    let mut rest = text;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let inside = &rest[c.len_utf8()..];
        let pair = PAIRS.iter().find(|(open, _)| *open == c);
        // An apostrophe inside a word opens nothing.
        let pair = pair.filter(|_| !before.is_alphanumeric());
        let quoted = pair.and_then(|(_, close)| inside.split_once(*close));
        found.extend(quoted.map(|(quoted, _)| quoted));
        rest = quoted.map_or(inside, |(_, after)| after);
        before = c;
    }
    found.retain(|quoted| !quoted.is_empty());
    found
}

/// Finds the longest stretch of digits, operators and brackets that holds both a digit and an
/// operator.
fn expression(text: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_digit() || "+-*/^%(). ×÷".contains(c);
    let stretches = text
        .split(|c: char| !is_part(c))
        .map(|stretch| stretch.trim().trim_end_matches('.'));
    let is_expression = |stretch: &&str| {
        let has_operator = stretch
            .trim_start_matches('-')
            .contains(['+', '-', '*', '/', '^', '%', '×', '÷']);
        has_operator && stretch.contains(|c: char| c.is_ascii_digit())
    };
    let longest = stretches.filter(is_expression).max_by_key(|stretch| stretch.len())?;
    Some(longest.trim().replace('×', "*").replace('÷', "/"))
}

/// Takes the object of the tool's verb, or a run of capitals in it: `weather in Paris tomorrow?`
/// is about `Paris`.
fn after_the_verb(question: &str, tool: &ToolRegistration) -> Option<String> {
    const LINKS: &[&str] = &[
        "in", "for", "of", "at", "on", "about", "to", "the", "a", "an", "is", "like", "that", "me", "my", "your",
        "with",
    ];
    let known = [words::telling(tool.name.as_str()), words::telling(&tool.description)];
    let spoken: Vec<&str> = question.split_whitespace().collect();
    let place = |known: &[String]| {
        let is_known = |word: &&str| words::all(word).iter().any(|word| known.contains(word));
        spoken.iter().position(is_known)
    };
    let verb = place(&known[0]).or_else(|| place(&known[1]))?;
    let bare = |word: &str| word.trim_end_matches(['.', '?', '!', ',', ';', ':']).to_owned();
    let follows = spoken[verb + 1..].iter().skip_while(|word| {
        let word = words::normal(&bare(word));
        LINKS.contains(&word.as_str()) || known[0].contains(&word)
    });
    let mut taken = Vec::new();
    for word in follows {
        let is_capital = |word: &str| word.starts_with(char::is_uppercase);
        if taken.first().is_some_and(|first: &String| is_capital(first)) && !is_capital(word) {
            break;
        }
        taken.push(bare(word));
        if word.ends_with(['.', '?', '!', ',', ';']) {
            break;
        }
    }
    while taken
        .last()
        .is_some_and(|word| matches!(word.as_str(), "please" | "now" | ""))
    {
        taken.pop();
    }
    (!taken.is_empty()).then(|| taken.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_at_the_start_of_words() {
        let check = |text: &str, expected: &str| assert_eq!(serde_json::to_string(&numbers(text)).unwrap(), expected);
        check(
            "a 20-sided die, twice: 2, -3.5km and 1e9. GPT4 on 2026-11-21 - or not...",
            "[20,2,-3.5,1]",
        );
        check("none", "[]");
    }

    #[test]
    fn quotes_are_found_and_apostrophes_are_none() {
        let text = "what's \"in a\" it's `b` “c” '' and 'd'";
        assert_eq!(quotes(text), ["in a", "b", "c", "d"]);
    }

    #[test]
    fn the_longest_expression_is_found() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(expression(text).as_deref(), expected);
        check("What is (2 + 3) × 4?", Some("(2 + 3) * 4"));
        check("work out 10/4.", Some("10/4"));
        check("the 3rd of 4 people", None);
        check("-5", None);
    }
}
