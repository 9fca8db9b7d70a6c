//! Chat templates, and what model servers make of a request before they render one.

use std::fmt;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, Value as TemplateValue};
use minijinja::{Environment, Error, ErrorKind, context};
use serde::Serialize;
use serde_json::{Value, json};

use super::requests::Sent;

/// The text that stands for an image in a prompt.
const IMAGE: &str = "<__image__>";

/// The chat template of a family of models, with the form in which its servers give it the
/// messages.
pub(super) struct Family {
    environment: Environment<'static>,
    form: Form,
}

/// The form in which servers give messages to a template. They find it by a look at the template.
#[derive(Debug, Clone, Copy, Default)]
struct Form {
    /// `true` if a content is a list of parts, `false` if it is a text.
    has_parts: bool,
    /// `true` if the content of calls without words is an empty text, `false` if it is null.
    has_empty_text: bool,
    /// `true` if the arguments of a call are JSON text, `false` if they are parsed.
    has_text_arguments: bool,
    /// `true` if the system message stands in the first message of the user: the template refuses or
    /// drops it.
    joins_system: bool,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.has_parts { "parts" } else { "text" })?;
        f.write_str(if self.has_text_arguments {
            ", arguments as text"
        } else {
            ""
        })?;
        f.write_str(if self.joins_system {
            ", system message joined by the server"
        } else {
            ""
        })
    }
}

impl Family {
    /// Reads a template, and finds the form that it wants.
    ///
    /// # Errors
    ///
    /// Returns the reason if the template engine cannot parse it.
    pub(super) fn new(name: &str, template: &str) -> Result<Self, String> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.expect("the usual delimiters"));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |why: String| -> Result<String, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, why))
        });
        environment.add_function("strftime_now", |_: String| "2026-06-21");
        environment.add_filter("tojson", to_json);
        // A mark for training, which renders what it encloses.
        let template = template
            .replace("{% generation %}", "")
            .replace("{% endgeneration %}", "");
        let template = template
            .replace("{%- generation -%}", "")
            .replace("{%- endgeneration -%}", "");
        environment
            .add_template_owned("chat", template)
            .map_err(|error| format!("{name}: {error:#}"))?;
        let mut family = Self {
            environment,
            form: Form::default(),
        };
        // Of forms that serve equally well the last one counts.
        let best = Form::all().max_by_key(|form| {
            family.form = *form;
            family.probe()
        });
        family.form = best.unwrap_or_default();
        Ok(family)
    }

    pub(super) fn form(&self) -> impl fmt::Display {
        self.form
    }

    /// Returns what is missing of `shapes`: the reason, the shape, and the number of the request in it.
    pub(super) fn check(&self, shapes: &[Sent]) -> Vec<String> {
        let mut failures = Vec::new();
        let mut number = 0;
        for (at, sent) in shapes.iter().enumerate() {
            number = if at > 0 && shapes[at - 1].shape == sent.shape {
                number + 1
            } else {
                1
            };
            if let Err(why) = self.check_one(sent) {
                failures.push(format!("{} {number}: {why}", sent.shape));
            }
        }
        failures
    }

    fn check_one(&self, sent: &Sent) -> Result<(), String> {
        let prompt = self.render(&sent.body).map_err(|why| format!("refused: {why}"))?;
        if let Some(lost) = sent.anywhere.iter().find(|text| !prompt.contains(**text)) {
            return Err(format!("lacks {lost:?}"));
        }
        let mut rest = prompt.as_str();
        for text in &sent.in_order {
            let at = rest.find(text).ok_or_else(|| format!("lacks {text:?} in its place"))?;
            rest = &rest[at + text.len()..];
        }
        match prompt.matches(IMAGE).count() {
            count if count == sent.images => Ok(()),
            count => Err(format!("has {count} images")),
        }
    }

    /// Returns how much of a conversation of each role the template renders in its present form.
    fn probe(&self) -> usize {
        let call = json!({"id": "abcdefgh1", "type": "function", "function": {"name": "fn-p", "arguments": "{\"a\":\"arg-q\"}"}});
        let all = [
            json!({"role": "system", "content": "sys-r"}),
            json!({"role": "user", "content": "user-s"}),
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
            json!({"role": "tool", "content": "result-t", "tool_call_id": "abcdefgh1"}),
            json!({"role": "assistant", "content": "answer-u"}),
            json!({"role": "user", "content": "user-v"}),
        ];
        let plain = [&all[..2], &all[4..]].concat();
        let count = |messages: &[Value]| {
            let prompt = self.render(&json!({"messages": messages})).unwrap_or_default();
            let words = ["sys-r", "user-s", "fn-p", "arg-q", "result-t", "answer-u", "user-v"];
            let clean = !prompt.contains("'type'") && !prompt.contains("\"text\"") && !prompt.contains("None");
            words.iter().filter(|word| prompt.contains(**word)).count() * 2 + usize::from(clean)
        };
        count(&plain) + count(&all)
    }

    fn render(&self, body: &Value) -> Result<String, String> {
        let mut messages = body["messages"].as_array().expect("messages").clone();
        self.form.adapt(&mut messages);
        let template = self.environment.get_template("chat").expect("the template was added");
        let tools = body.get("tools");
        let tools = tools.map_or(TemplateValue::UNDEFINED, ordered);
        let context = context! {
            messages => messages.iter().map(ordered).collect::<Vec<_>>(),
            // The servers of one family give its template the tools as text.
            functions => body["tools"].to_string(),
            tools,
            add_generation_prompt => true,
            datetime => "2026-06-21",
            bos_token => "<s>",
            eos_token => "</s>",
        };
        template
            .render(context)
            .map_err(|error| error.detail().map_or_else(|| error.to_string(), str::to_owned))
    }
}

impl Form {
    /// Returns all forms, the plainest last.
    fn all() -> impl Iterator<Item = Self> {
        (0..16).rev().map(|bits| Self {
            has_parts: bits & 2 != 0,
            has_empty_text: bits & 1 != 0,
            has_text_arguments: bits & 4 != 0,
            joins_system: bits & 8 != 0,
        })
    }

    /// Brings messages into this form.
    fn adapt(self, messages: &mut Vec<Value>) {
        if self.joins_system && messages.first().is_some_and(|first| first["role"] == "system") {
            let system = messages.remove(0);
            let system = text_of(&system["content"]);
            let first = messages
                .iter_mut()
                .find(|message| message["role"] == "user")
                .expect("a user's message");
            first["content"] = format!("{system}\n\n{}", text_of(&first["content"])).into();
        }
        for message in messages {
            for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
                let arguments = &mut call["function"]["arguments"];
                if !self.has_text_arguments {
                    *arguments = serde_json::from_str(arguments.as_str().expect("a text")).expect("JSON");
                }
            }
            if message["tool_calls"].is_null() {
                message.as_object_mut().expect("an object").remove("tool_calls");
            }
            let content = &mut message["content"];
            *content = match (content.is_null(), self.has_parts) {
                (true, _) if !self.has_empty_text => Value::Null,
                (true, false) => "".into(),
                (true, true) => json!([]),
                (false, false) => text_of(content).into(),
                (false, true) => json!([{"type": "text", "text": text_of(content)}]),
            };
        }
    }
}

/// Returns JSON as templates get it, with names in front: `serde_json` sorts them.
fn ordered(value: &Value) -> TemplateValue {
    const FIRST: [&str; 5] = ["role", "type", "id", "name", "description"];
    match value {
        Value::Object(members) => {
            let first = FIRST.iter().filter_map(|name| members.get_key_value(*name));
            let others = members.iter().filter(|(name, _)| !FIRST.contains(&name.as_str()));
            let members = first.chain(others);
            TemplateValue::from_pairs(members.map(|(name, value)| (name.clone(), ordered(value))))
        }
        Value::Array(items) => items.iter().map(ordered).collect(),
        value => TemplateValue::from(Serde(value)),
    }
}

/// Returns a content as one text, with a mark for each image.
fn text_of(content: &Value) -> String {
    match content {
        Value::Array(parts) => {
            let parts = parts.iter().map(|part| part["text"].as_str().unwrap_or(IMAGE));
            parts.collect::<Vec<_>>().join("\n")
        }
        content => content.as_str().unwrap_or_default().to_owned(),
    }
}

/// Writes JSON as Python does: with a space behind commas and colons.
#[expect(clippy::needless_pass_by_value, reason = "a filter gets its options by value")]
fn to_json(value: &TemplateValue, options: Kwargs) -> Result<TemplateValue, Error> {
    let indent: Option<usize> = options.get("indent")?;
    // Sorting and escapes change no part of what arrives.
    let _: (Option<bool>, Option<bool>) = (options.get("sort_keys")?, options.get("ensure_ascii")?);
    let _: Option<TemplateValue> = options.get("separators")?;
    options.assert_all_used()?;
    let mut json = Vec::new();
    let written = match indent {
        Some(spaces) => {
            let spaces = " ".repeat(spaces);
            let form = serde_json::ser::PrettyFormatter::with_indent(spaces.as_bytes());
            value.serialize(&mut serde_json::Serializer::with_formatter(&mut json, form))
        }
        None => value.serialize(&mut serde_json::Serializer::new(&mut json)),
    };
    written.map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))?;
    Ok(TemplateValue::from_safe_string(
        String::from_utf8_lossy(&json).into_owned(),
    ))
}
