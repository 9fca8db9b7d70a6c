//! The suite through a loop as a program writes it by hand: ask, run the calls, ask again.

use reqwest::Client;
use serde_json::{Value, json};

use super::sample::Sample;
use super::{CallForm, Called, INSTRUCTIONS, MAX_MODEL_CALLS, MAX_TOKENS, RESULT};

/// A server that speaks Chat Completions.
#[derive(Debug, Clone)]
pub struct Server {
    client: Client,
    url: String,
    model: String,
}

impl Server {
    /// Creates a client of the server at `base`, such as `http://127.0.0.1:8080/v1`.
    pub fn new(base: &str, model: &str) -> Self {
        Self {
            client: Client::new(),
            url: format!("{}/chat/completions", base.trim_end_matches('/')),
            model: model.to_owned(),
        }
    }

    /// Asks the model in a bare loop, and returns its calls.
    ///
    /// # Errors
    ///
    /// Returns an error if the server cannot be reached or its answer has another form.
    pub async fn calls(&self, sample: &Sample, form: CallForm) -> Result<Vec<Called>, String> {
        let tools: Vec<_> = sample.functions.iter().map(definition).collect();
        let (system, tools) = match form {
            CallForm::Native => (INSTRUCTIONS.to_owned(), Some(tools)),
            CallForm::Text => (format!("{INSTRUCTIONS}\n\n{}", in_text(&tools)), None),
        };
        let mut messages = vec![
            json!({"role": "system", "content": system}),
            json!({"role": "user", "content": sample.question}),
        ];
        let mut calls = Vec::new();
        for _ in 0..MAX_MODEL_CALLS {
            let answer = self.ask(&messages, tools.as_deref()).await?;
            let made = match form {
                CallForm::Native => native(&answer),
                CallForm::Text => written(answer["content"].as_str().unwrap_or_default()),
            };
            if made.is_empty() {
                break;
            }
            calls.extend(made);
            messages.extend(results(&answer, form));
        }
        Ok(calls)
    }

    async fn ask(&self, messages: &[Value], tools: Option<&[Value]>) -> Result<Value, String> {
        let mut body = json!({"model": self.model, "messages": messages, "temperature": 0, "max_tokens": MAX_TOKENS});
        if let Some(tools) = tools {
            body["tools"] = json!(tools);
        }
        let sent = self.client.post(&self.url).header("content-type", "application/json");
        let answer = sent
            .body(body.to_string())
            .send()
            .await
            .map_err(|error| error.to_string())?;
        let text = answer.text().await.map_err(|error| error.to_string())?;
        let mut answer: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        match answer.pointer_mut("/choices/0/message") {
            Some(message) => Ok(message.take()),
            None => Err(format!("the server answered {text}")),
        }
    }
}

fn definition(function: &super::sample::Function) -> Value {
    json!({"type": "function", "function": {
        "name": function.name, "description": function.description, "parameters": function.schema,
    }})
}

fn in_text(tools: &[Value]) -> String {
    let listed: Vec<_> = tools.iter().map(|tool| tool["function"].to_string()).collect();
    format!(
        "You can call these functions:\n{}\n\nTo call one, answer with nothing but a JSON object \
         {{\"name\": \"function\", \"arguments\": {{…}}}} for each call, each on its own line.",
        listed.join("\n")
    )
}

fn native(answer: &Value) -> Vec<Called> {
    let calls = answer["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
    let called = |call: &Value| {
        let arguments = call["function"]["arguments"].as_str()?;
        Some(Called {
            name: call["function"]["name"].as_str()?.to_owned(),
            arguments: serde_json::from_str(arguments).ok()?,
        })
    };
    calls.iter().filter_map(called).collect()
}

/// Returns the JSON objects in a text that are calls, as a hand-written parser finds them.
fn written(text: &str) -> Vec<Called> {
    let start = text.find(['{', '[']).unwrap_or(text.len());
    let values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
    let each = values.map_while(Result::ok).flat_map(|value| match value {
        Value::Array(values) => values,
        value => vec![value],
    });
    let called = |value: Value| {
        Some(Called {
            name: value["name"].as_str()?.to_owned(),
            arguments: value["arguments"].as_object()?.clone(),
        })
    };
    each.filter_map(called).collect()
}

fn results(answer: &Value, form: CallForm) -> Vec<Value> {
    let mut messages = vec![answer.clone()];
    match form {
        CallForm::Text => messages.push(json!({"role": "user", "content": format!("Results: {RESULT}")})),
        CallForm::Native => {
            let calls = answer["tool_calls"].as_array().into_iter().flatten();
            messages.extend(calls.map(|call| json!({"role": "tool", "tool_call_id": call["id"], "content": RESULT})));
        }
    }
    messages
}
