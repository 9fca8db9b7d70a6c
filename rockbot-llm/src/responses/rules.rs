//! The rules of the Responses API for refusing requests, for servers of tests. As strict as the
//! API, or stricter.

use std::collections::BTreeSet;

use serde_json::Value;

/// Returns the refusal of `request`, a head and a body as they came, or `None` if the API accepts
/// it.
pub(crate) fn refusal(request: &str) -> Option<String> {
    check(request).err()
}

type Checked = Result<(), String>;

fn check(request: &str) -> Checked {
    let (head, body) = request.split_once("\r\n\r\n").ok_or("no body")?;
    ensure(head.starts_with("POST /v1/responses HTTP/1.1"), "unknown path")?;
    ensure(head.contains("\r\nauthorization: Bearer "), "no key")?;
    let body: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
    settings(&body)?;
    let tools = tools(&body["tools"])?;
    choice(&body, &tools)?;
    format(&body["text"])?;
    Input::default().check(&body["input"])
}

fn ensure(holds: bool, refusal: impl Into<String>) -> Checked {
    if holds { Ok(()) } else { Err(refusal.into()) }
}

fn known(place: &str, value: &Value, members: &str) -> Checked {
    let object = value.as_object().ok_or(format!("{place}: expected an object"))?;
    let extra = object.keys().find(|key| !members.split(' ').any(|known| known == *key));
    extra.map_or(Ok(()), |key| Err(format!("Unknown parameter: '{place}.{key}'")))
}

fn settings(body: &Value) -> Checked {
    let all = "model store include instructions input tools tool_choice parallel_tool_calls max_output_tokens temperature top_p reasoning text stream metadata verbosity";
    known("body", body, all)?;
    let model = body["model"].as_str().unwrap_or_default();
    ensure(!model.is_empty(), "Missing required parameter: 'model'")?;
    ensure(body["store"] == false, "store: this organization stores nothing")?;
    let include = body["include"].as_array().map_or(&[][..], Vec::as_slice);
    ensure(
        include.iter().all(|entry| entry == "reasoning.encrypted_content"),
        "include: unknown",
    )?;
    let reasons = !model.starts_with("gpt-4");
    ensure(
        reasons || include.is_empty(),
        "Encrypted content is not supported with this model",
    )?;
    ensure(
        reasons || body["reasoning"].is_null(),
        "Unsupported parameter: 'reasoning.effort'",
    )?;
    let limit = body.get("max_output_tokens");
    ensure(
        limit.is_none_or(|limit| limit.as_u64() >= Some(16)),
        "max_output_tokens: expected a value >= 16",
    )?;
    let within = |name: &str, max: f64| {
        let number = body.get(name).map(|number| number.as_f64().unwrap_or(-1.0));
        ensure(
            number.is_none_or(|number| (0.0..=max).contains(&number)),
            format!("{name}: out of range"),
        )
    };
    within("temperature", 2.0)?;
    within("top_p", 1.0)?;
    if let Some(reasoning) = body.get("reasoning") {
        known("reasoning", reasoning, "effort summary")?;
        let efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
        ensure(
            efforts.iter().any(|effort| reasoning["effort"] == *effort),
            "reasoning.effort: unknown",
        )?;
    }
    let instructions = body.get("instructions");
    ensure(
        instructions.is_none_or(|text| text.as_str().is_some_and(|text| !text.is_empty())),
        "instructions: empty",
    )
}

fn is_name(text: &Value) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.as_str()
        .is_some_and(|text| (1..=64).contains(&text.len()) && text.chars().all(allowed))
}

fn tools(tools: &Value) -> Result<BTreeSet<String>, String> {
    let mut names = BTreeSet::new();
    for tool in tools.as_array().into_iter().flatten() {
        known("tools", tool, "type name description parameters strict")?;
        ensure(tool["type"] == "function", "tools.type: unknown")?;
        ensure(is_name(&tool["name"]), "tools.name: pattern")?;
        ensure(names.insert(tool["name"].to_string()), "tools: names must be unique")?;
        ensure(tool["strict"].is_boolean(), "tools.strict: the default is true")?;
        ensure(
            tool["strict"] == false || is_strict(&tool["parameters"]),
            "Invalid schema for function",
        )?;
        ensure(tool["parameters"]["type"] == "object", "schema must be of type object")?;
    }
    Ok(names)
}

/// Returns `true` if all objects in a schema are closed and require all their properties.
fn is_strict(schema: &Value) -> bool {
    let is_closed = schema.get("properties").is_none_or(|properties| {
        let names = properties
            .as_object()
            .into_iter()
            .flat_map(|properties| properties.keys());
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        schema["additionalProperties"] == false
            && names.eq(required.iter().filter_map(Value::as_str).collect::<BTreeSet<_>>())
    });
    let mut parts: Box<dyn Iterator<Item = &Value>> = match schema {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => return true,
    };
    is_closed && parts.all(is_strict)
}

fn choice(body: &Value, tools: &BTreeSet<String>) -> Checked {
    let has_tools = !tools.is_empty();
    ensure(
        has_tools || body.get("parallel_tool_calls").is_none(),
        "parallel_tool_calls: only with tools",
    )?;
    let Some(choice) = body.get("tool_choice") else {
        return Ok(());
    };
    ensure(has_tools, "tool_choice: must be specified with 'tools'")?;
    match choice.as_str() {
        Some("none" | "auto" | "required") => Ok(()),
        Some(_) => Err("tool_choice: unknown".into()),
        None => {
            known("tool_choice", choice, "type name")?;
            let is_known = choice["type"] == "function" && tools.contains(&choice["name"].to_string());
            ensure(is_known, "tool_choice: not found in 'tools'")
        }
    }
}

fn format(text: &Value) -> Checked {
    if text.is_null() {
        return Ok(());
    }
    known("text", text, "format verbosity")?;
    known("text.format", &text["format"], "type name schema strict description")?;
    ensure(text["format"]["type"] == "json_schema", "text.format.type: unknown")?;
    ensure(is_name(&text["format"]["name"]), "text.format.name: pattern")?;
    ensure(
        text["format"]["schema"].is_object(),
        "text.format.schema: expected an object",
    )
}

/// The items of a request while they are checked.
#[derive(Default)]
struct Input {
    /// Calls without an output so far.
    open: BTreeSet<String>,
    calls: BTreeSet<String>,
    ids: BTreeSet<String>,
    /// `true` behind reasoning that lacks the item that followed it.
    is_reasoning: bool,
    last_role: String,
}

impl Input {
    fn check(mut self, input: &Value) -> Checked {
        let items = input.as_array().filter(|items| !items.is_empty());
        for item in items.ok_or("One of 'input' or 'previous_response_id' must be provided")? {
            let is_followed = item["type"] == "function_call" || item["role"] == "assistant";
            let is_more = is_followed || item["type"] == "reasoning";
            ensure(
                !self.is_reasoning || is_more,
                "reasoning was provided without its required following item",
            )?;
            if let Some(id) = item.get("id") {
                let id = id.as_str().filter(|id| id.len() <= 64).ok_or("id: string too long")?;
                ensure(self.ids.insert(id.to_owned()), "Duplicate item found")?;
            }
            self.item(item)?;
        }
        ensure(
            !self.is_reasoning,
            "reasoning was provided without its required following item",
        )?;
        ensure(self.open.is_empty(), "No tool output found for function call")
    }

    fn item(&mut self, item: &Value) -> Checked {
        let has_id = |start: &str| item["id"].as_str().is_none_or(|id| id.starts_with(start));
        match item["type"].as_str() {
            Some("message") => {
                ensure(has_id("msg"), "Expected an ID that begins with 'msg'")?;
                self.message(item)?;
            }
            Some("function_call") => {
                known("function_call", item, "type id call_id name arguments")?;
                ensure(has_id("fc"), "Expected an ID that begins with 'fc'")?;
                ensure(
                    is_name(&item["name"]) && item["arguments"].is_string(),
                    "function_call: pattern",
                )?;
                let id = item["call_id"].as_str().filter(|id| (1..=64).contains(&id.len()));
                let id = id.ok_or("call_id: string too long")?.to_owned();
                ensure(self.calls.insert(id.clone()), "call_id: must be unique")?;
                self.open.insert(id);
            }
            Some("function_call_output") => {
                known("function_call_output", item, "type call_id output")?;
                if !item["output"].is_string() {
                    parts(&item["output"], "input_text")?;
                }
                let call = item["call_id"].as_str().unwrap_or_default();
                ensure(self.open.remove(call), "No tool call found for function call output")?;
            }
            Some("reasoning") => {
                known("reasoning", item, "type id summary encrypted_content")?;
                ensure(has_id("rs"), "Expected an ID that begins with 'rs'")?;
                ensure(item["summary"].is_array(), "Missing required parameter: 'summary'")?;
                let is_found = item["encrypted_content"].as_str().is_some_and(|text| !text.is_empty());
                ensure(is_found, "Items are not persisted when `store` is set to false")?;
            }
            _ => return Err("input.type: unknown".into()),
        }
        self.is_reasoning = item["type"] == "reasoning";
        self.last_role = item["role"].as_str().unwrap_or_default().to_owned();
        Ok(())
    }

    fn message(&self, item: &Value) -> Checked {
        known("message", item, "type id role status content")?;
        let kind = match item["role"].as_str() {
            Some("user") => "input_text",
            Some("assistant") => "output_text",
            _ => return Err("role: unknown".into()),
        };
        // The API accepts neighbours of one role; the templates behind servers that resemble it do not.
        ensure(item["role"] != self.last_role.as_str(), "roles must alternate")?;
        if kind == "output_text" && item["content"].is_string() {
            return ensure(item.get("id").is_none(), "content: expected an array beside an id");
        }
        parts(&item["content"], kind)
    }
}

/// Checks the parts of a message or of an output, whose texts are of type `kind`.
fn parts(list: &Value, kind: &str) -> Checked {
    let list = list.as_array().filter(|parts| !parts.is_empty());
    for part in list.ok_or("content: expected an array")? {
        let is_of_user = kind == "input_text";
        let has = |name: &str| part[name].as_str().is_some_and(|text| !text.is_empty());
        match part["type"].as_str() {
            Some("input_image") if is_of_user => {
                known("content", part, "type image_url detail")?;
                ensure(has("image_url"), "image_url: expected a URL")?;
            }
            Some("input_file") if is_of_user => {
                known("content", part, "type filename file_data file_url")?;
                let is_whole = has("file_url") || (has("filename") && has("file_data"));
                ensure(is_whole, "input_file: expected a URL, or a name and data")?;
            }
            _ => {
                known("content", part, "type text annotations")?;
                ensure(
                    part["type"] == kind,
                    format!("Invalid value. Supported values are: '{kind}'"),
                )?;
                ensure(part["text"].is_string(), "text: expected a string")?;
            }
        }
    }
    Ok(())
}
