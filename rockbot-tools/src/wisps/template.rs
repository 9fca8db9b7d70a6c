//! Templates in the texts of a definition: `{{steps.ID.result}}`, with a path into a result that
//! is JSON.

use serde_json::{Map, Value};

use super::output::Outputs;

/// Maximum size of a text with its templates replaced, and of all texts of a step together, in
/// bytes.
pub(super) const MAX_RESOLVED: usize = 200 << 10;

/// Maximum number of keys in the path of a template.
const MAX_PATH: usize = 32;

/// The beginning of a template; other text in double braces is no template and stays as it is.
const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// An error of a template, in words that name the correction.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TemplateError {
    /// The template does not end.
    #[error("the template `{0}` does not end: close it with `}}}}`")]
    Open(String),
    /// The template has none of the known forms.
    #[error(
        "`{{{{{0}}}}}` is no template: write `{{{{steps.ID.result}}}}`, with a path behind it if the result is JSON"
    )]
    Form(String),
    /// No step before has this id.
    #[error("`{{{{{reference}}}}}` refers to no earlier step: {known}")]
    Step { reference: String, known: String },
    /// The step did not run, or its result has no such value.
    #[error("`{{{{{reference}}}}}` has no value: {why}")]
    Value { reference: String, why: &'static str },
    /// The text would be too long.
    #[error(
        "with its templates replaced the step has more than {MAX_RESOLVED} bytes: refer to a part of the result by a path, or use an Llm step"
    )]
    Size,
}

/// A template, as a reference to a value of an earlier step.
#[derive(Debug, PartialEq, Eq)]
struct Reference<'a> {
    /// The text between the braces.
    text: &'a str,
    step: &'a str,
    value: Part<'a>,
}

#[derive(Debug, PartialEq, Eq)]
enum Part<'a> {
    Result(Vec<&'a str>),
    OutputTo,
}

enum Piece<'a> {
    Text(&'a str),
    Reference(Reference<'a>),
}

/// Splits a text at its templates.
fn pieces(text: &str) -> impl Iterator<Item = Result<Piece<'_>, TemplateError>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        match template_at(rest) {
            Some(0) => {
                let Some(end) = rest.find(CLOSE) else {
                    let open = rest.chars().take(40).collect();
                    rest = "";
                    return Some(Err(TemplateError::Open(open)));
                };
                let inner = rest[OPEN.len()..end].trim();
                rest = &rest[end + CLOSE.len()..];
                Some(reference(inner).map(Piece::Reference))
            }
            at => {
                let (text, behind) = rest.split_at(at.unwrap_or(rest.len()));
                rest = behind;
                Some(Ok(Piece::Text(text)))
            }
        }
    })
}

/// Returns the position of the first template.
fn template_at(text: &str) -> Option<usize> {
    let begins = |at: &usize| text[at + OPEN.len()..].trim_start().starts_with("steps.");
    text.match_indices(OPEN).map(|(at, _)| at).find(begins)
}

/// Parses the text between the braces. Keys are separated by dots; `[0]` is the key `0`.
fn reference(text: &str) -> Result<Reference<'_>, TemplateError> {
    let wrong = || TemplateError::Form(text.chars().take(80).collect());
    let keys: Vec<&str> = text
        .split(['.', '['])
        .map(|key| key.strip_suffix(']').unwrap_or(key))
        .collect();
    let is_whole = keys.iter().all(|key| !key.is_empty()) && keys.len() <= MAX_PATH;
    let value = match keys.get(2..) {
        Some(["result" | "output", path @ ..]) if is_whole => Part::Result(path.to_vec()),
        Some(["output_to"]) if is_whole => Part::OutputTo,
        _ => return Err(wrong()),
    };
    let step = keys.get(1).copied().ok_or_else(wrong)?;
    Ok(Reference { text, step, value })
}

/// Checks that all templates of `text` are well formed and refer to `earlier` steps.
pub(super) fn check(text: &str, earlier: &[&str]) -> Result<(), TemplateError> {
    for piece in pieces(text) {
        let Piece::Reference(reference) = piece? else { continue };
        if !earlier.iter().any(|id| id.eq_ignore_ascii_case(reference.step)) {
            return Err(TemplateError::Step {
                reference: reference.text.to_owned(),
                known: known(earlier),
            });
        }
    }
    Ok(())
}

/// Checks the templates of all texts in `value`.
pub(super) fn check_value(value: &Value, earlier: &[&str]) -> Result<(), TemplateError> {
    match value {
        Value::String(text) => check(text, earlier),
        Value::Array(items) => items.iter().try_for_each(|item| check_value(item, earlier)),
        Value::Object(members) => members.values().try_for_each(|member| check_value(member, earlier)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// Returns `true` if a text in `value` has a template.
pub(super) fn has_template(value: &Value) -> bool {
    match value {
        Value::String(text) => template_at(text).is_some(),
        Value::Array(items) => items.iter().any(has_template),
        Value::Object(members) => members.values().any(has_template),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns the words for the steps that a template can refer to.
fn known(earlier: &[&str]) -> String {
    match earlier {
        [] => "this step is the first one".to_owned(),
        earlier => format!("the steps before it are `{}`", earlier.join("`, `")),
    }
}

/// Returns `text` with its templates replaced.
pub(super) fn resolve(text: &str, outputs: &Outputs<'_>) -> Result<String, TemplateError> {
    resolve_text(text, outputs, &mut { MAX_RESOLVED })
}

/// Returns `params` with the templates of all texts replaced. A text that is one template with a
/// path becomes the value itself, such as a number; in other places a value is written as text.
pub(super) fn resolve_params(
    params: &Map<String, Value>,
    outputs: &Outputs<'_>,
) -> Result<Map<String, Value>, TemplateError> {
    resolve_members(params, outputs, &mut { MAX_RESOLVED })
}

fn resolve_members(
    members: &Map<String, Value>,
    outputs: &Outputs<'_>,
    room: &mut usize,
) -> Result<Map<String, Value>, TemplateError> {
    let resolved = members.iter();
    resolved
        .map(|(name, value)| Ok((name.clone(), resolve_value(value, outputs, room)?)))
        .collect()
}

// Values that serde_json parsed are not nested deeper than 128 levels.
fn resolve_value(value: &Value, outputs: &Outputs<'_>, room: &mut usize) -> Result<Value, TemplateError> {
    match value {
        Value::String(text) => match only_reference(text)? {
            Some(reference) => {
                let value = value_of(&reference, outputs)?;
                take(
                    room,
                    if let Value::String(text) = &value {
                        text.len()
                    } else {
                        value.to_string().len()
                    },
                )?;
                Ok(value)
            }
            None => resolve_text(text, outputs, room).map(Value::String),
        },
        Value::Array(items) => items.iter().map(|item| resolve_value(item, outputs, room)).collect(),
        Value::Object(members) => resolve_members(members, outputs, room).map(Value::Object),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(value.clone()),
    }
}

fn resolve_text(text: &str, outputs: &Outputs<'_>, room: &mut usize) -> Result<String, TemplateError> {
    let mut resolved = String::new();
    for piece in pieces(text) {
        let begin = resolved.len();
        match piece? {
            Piece::Text(text) => resolved.push_str(text),
            Piece::Reference(reference) => match value_of(&reference, outputs)? {
                Value::String(text) => resolved.push_str(&text),
                value => resolved.push_str(&value.to_string()),
            },
        }
        take(room, resolved.len() - begin)?;
    }
    Ok(resolved)
}

/// Returns the template that is the whole text, if the text is a template.
fn only_reference(text: &str) -> Result<Option<Reference<'_>>, TemplateError> {
    let mut pieces = pieces(text);
    match (pieces.next().transpose()?, pieces.next()) {
        (Some(Piece::Reference(reference)), None) => Ok(Some(reference)),
        _ => Ok(None),
    }
}

fn take(room: &mut usize, bytes: usize) -> Result<(), TemplateError> {
    *room = room.checked_sub(bytes).ok_or(TemplateError::Size)?;
    Ok(())
}

fn value_of(reference: &Reference<'_>, outputs: &Outputs<'_>) -> Result<Value, TemplateError> {
    let missing = |why| TemplateError::Value {
        reference: reference.text.to_owned(),
        why,
    };
    let output = outputs.get(reference.step);
    let path = match &reference.value {
        Part::OutputTo => {
            let name = outputs.output_to(reference.step);
            return name
                .map(Value::from)
                .ok_or_else(|| missing("the step has no `output_to`"));
        }
        Part::Result(path) => path,
    };
    let text = output.ok_or_else(|| missing("the step did not run, or failed"))?;
    if path.is_empty() {
        return Ok(Value::from(text));
    }
    if text.len() > 4 * MAX_RESOLVED {
        return Err(TemplateError::Size);
    }
    let root: Value = serde_json::from_str(text).map_err(|_| missing("the result of the step is no JSON"))?;
    let found = path.iter().try_fold(&root, |value, key| match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        value => value.get(key),
    });
    found
        .cloned()
        .ok_or_else(|| missing("the result of the step has no such member"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const OUTPUTS: [(&str, &str, Option<&str>); 2] = [
        (
            "find",
            r#"{"items":[{"name":"Ann","age":7}],"next":null}"#,
            Some("found.json"),
        ),
        ("say", "plain \"text\"", None),
    ];

    fn resolved(value: &Value) -> Result<Value, TemplateError> {
        let outputs = Outputs::of(&OUTPUTS);
        resolve_value(value, &outputs, &mut { MAX_RESOLVED })
    }

    #[test]
    fn a_template_becomes_the_value_that_its_path_leads_to() {
        for (template, expected) in [
            ("{{steps.find.result.items[0].name}}", json!("Ann")),
            ("{{ steps.FIND.output.items.0.age }}", json!(7)),
            ("{{steps.find.result.items}}", json!([{"name": "Ann", "age": 7}])),
            ("{{steps.find.result.next}}", Value::Null),
            ("{{steps.find.output_to}}", json!("found.json")),
            ("{{steps.say.result}}!", json!("plain \"text\"!")),
            (
                "{{steps.find.result.items[0].age}} and {{steps.say.result}}",
                json!("7 and plain \"text\""),
            ),
            ("{{name}} {{ {", json!("{{name}} {{ {")),
        ] {
            assert_eq!(
                resolved(&json!({"deep": [template]})),
                Ok(json!({"deep": [expected]})),
                "{template}"
            );
        }
    }

    #[test]
    fn a_template_without_a_value_is_an_error() {
        for (template, expected) in [
            ("{{steps.find.result.nobody}}", "has no such member"),
            ("{{steps.find.result.items[1]}}", "has no such member"),
            ("{{steps.say.result.a}}", "is no JSON"),
            ("{{steps.later.result}}", "did not run"),
            ("{{steps.say.output_to}}", "no `output_to`"),
            ("{{steps.say.status}}", "is no template"),
            ("{{steps.say..result}}", "is no template"),
            ("a {{steps.say.result", "does not end"),
        ] {
            let error = resolved(&json!(template)).unwrap_err().to_string();
            assert!(error.contains(expected), "{template}: {error}");
        }
    }

    #[test]
    fn a_reference_to_the_step_itself_or_a_later_one_is_found_before_anything_runs() {
        assert_eq!(check("{{steps.a.result}}", &["a", "b"]), Ok(()));
        let error = check("{{steps.c.result}}", &["a", "b"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "`{{steps.c.result}}` refers to no earlier step: the steps before it are `a`, `b`"
        );
        let value = json!({"x": [{"y": "{{steps.a.result}}"}]});
        assert!(has_template(&value) && check_value(&value, &[]).is_err());
    }

    #[test]
    fn a_text_that_grows_too_long_is_refused() {
        let outputs = [("big", "x".repeat(MAX_RESOLVED / 3))];
        let outputs: Vec<_> = outputs.iter().map(|(id, text)| (*id, text.as_str(), None)).collect();
        let text = "{{steps.big.result}}".repeat(4);
        assert_eq!(resolve(&text, &Outputs::of(&outputs)), Err(TemplateError::Size));
        let params = json!({"a": "{{steps.big.result}}", "b": ["{{steps.big.result}}", text]});
        let Value::Object(params) = params else { return };
        assert_eq!(
            resolve_params(&params, &Outputs::of(&outputs)),
            Err(TemplateError::Size)
        );
    }

    proptest! {
        #[test]
        fn no_text_panics_and_a_text_without_templates_stays(text in "[ -z{}\\[\\].é]{0,60}|\\{\\{steps\\.[a-z.\\[\\]0-9]{0,20}\\}\\}") {
            let outputs = Outputs::of(&OUTPUTS);
            let resolved = resolve(&text, &outputs);
            prop_assert!(template_at(&text).is_some() || resolved == Ok(text));
        }

        #[test]
        fn what_a_template_inserts_is_not_read_again(text in "\\PC{0,40}") {
            let inserted = format!("{text}{{{{steps.b.result}}}}");
            let outputs = [("a", inserted.as_str(), None), ("b", "no", None)];
            let outputs = Outputs::of(&outputs);
            prop_assert_eq!(resolve("<{{steps.a.result}}>", &outputs), Ok(format!("<{inserted}>")));
        }
    }
}
