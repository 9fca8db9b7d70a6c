//! The rules of the Messages API for refusing requests, for servers of tests. As strict as the
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
    ensure(head.starts_with("POST /v1/messages HTTP/1.1"), "unknown path")?;
    let header = |name: &str| {
        head.lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    };
    let version = header("anthropic-version").ok_or("anthropic-version: header is required")?;
    ensure(
        ["2023-06-01", "2026-10-21"].contains(&version),
        "anthropic-version: unknown",
    )?;
    ensure(header("x-api-key").is_some(), "x-api-key header is required")?;
    let body: Value = serde_json::from_str(body).map_err(|error| error.to_string())?;
    settings(&body, version)?;
    let tools = tools(&body)?;
    choice(&body, &tools)?;
    system(&body["system"])?;
    messages(&body)?;
    let marks = body
        .to_string()
        .matches(r#""cache_control":{"type":"ephemeral"}"#)
        .count();
    ensure(marks <= 4, "at most 4 blocks with cache_control may be provided")
}

fn ensure(holds: bool, refusal: impl Into<String>) -> Checked {
    if holds { Ok(()) } else { Err(refusal.into()) }
}

fn known(place: &str, value: &Value, members: &[&str]) -> Checked {
    let object = value.as_object().ok_or(format!("{place}: Input should be an object"))?;
    let extra = object.keys().find(|key| !members.contains(&key.as_str()));
    extra.map_or(Ok(()), |key| {
        Err(format!("{place}.{key}: Extra inputs are not permitted"))
    })
}

fn settings(body: &Value, version: &str) -> Checked {
    let all =
        "model max_tokens messages system tools tool_choice temperature top_p thinking stream stop_sequences metadata";
    known("body", body, &all.split(' ').collect::<Vec<_>>())?;
    ensure(
        body["model"].as_str().is_some_and(|model| !model.is_empty()),
        "model: Field required",
    )?;
    let limit = body["max_tokens"].as_u64().filter(|limit| *limit > 0);
    let limit = limit.ok_or("max_tokens: Field required")?;
    ensure(
        body["stream"].is_null() || body["stream"].is_boolean(),
        "stream: not a boolean",
    )?;
    if let Some(temperature) = body.get("temperature") {
        let in_range = temperature
            .as_f64()
            .is_some_and(|temperature| (0.0..=1.0).contains(&temperature));
        ensure(in_range && version < "2026-10-21", "temperature: refused")?;
    }
    if let Some(top_p) = body.get("top_p") {
        let in_range = top_p.as_f64().is_some_and(|top_p| (0.0..=1.0).contains(&top_p));
        ensure(in_range && version < "2026-10-21", "top_p: refused")?;
        ensure(body.get("thinking").is_none(), "top_p: not with thinking")?;
    }
    let is_sampled_twice = body.get("temperature").is_some() && body.get("top_p").is_some();
    ensure(
        !is_sampled_twice,
        "`temperature` and `top_p` cannot both be specified for this model",
    )?;
    if let Some(thinking) = body.get("thinking") {
        let budget = thinking["budget_tokens"].as_u64().unwrap_or(0);
        ensure((1024..limit).contains(&budget), "thinking.budget_tokens: out of range")?;
        ensure(body.get("temperature").is_none(), "temperature: not with thinking")?;
        let choice = body["tool_choice"]["type"].as_str().unwrap_or("auto");
        ensure(
            choice == "auto" || choice == "none",
            "tool_choice: forced with thinking",
        )?;
    }
    Ok(())
}

fn is_name(text: &Value, max: usize) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.as_str()
        .is_some_and(|text| (1..=max).contains(&text.len()) && text.chars().all(allowed))
}

fn tools(body: &Value) -> Result<BTreeSet<String>, String> {
    let mut names = BTreeSet::new();
    for tool in body["tools"].as_array().into_iter().flatten() {
        known("tools", tool, &["name", "description", "input_schema", "cache_control"])?;
        ensure(is_name(&tool["name"], 128), "tools.name: pattern")?;
        ensure(names.insert(tool["name"].to_string()), "tools: names must be unique")?;
        ensure(
            tool["input_schema"]["type"] == "object",
            "tools.input_schema.type: Field required",
        )?;
        let combined = ["oneOf", "anyOf", "allOf"]
            .iter()
            .any(|key| tool["input_schema"].get(key).is_some());
        ensure(
            !combined,
            "tools.input_schema: no oneOf, allOf, or anyOf at the top level",
        )?;
    }
    Ok(names)
}

fn choice(body: &Value, tools: &BTreeSet<String>) -> Checked {
    let Some(choice) = body.get("tool_choice") else {
        return Ok(());
    };
    known("tool_choice", choice, &["type", "name", "disable_parallel_tool_use"])?;
    ensure(
        !tools.is_empty(),
        "tool_choice: may only be specified while providing tools",
    )?;
    match choice["type"].as_str() {
        Some("auto" | "any" | "none") => ensure(choice.get("name").is_none(), "tool_choice.name: not permitted"),
        Some("tool") => ensure(
            tools.contains(&choice["name"].to_string()),
            "tool_choice: tool not found",
        ),
        _ => Err("tool_choice.type: unknown".into()),
    }
}

fn system(system: &Value) -> Checked {
    system.as_array().into_iter().flatten().try_for_each(text)
}

fn text(block: &Value) -> Checked {
    known("text", block, &["type", "text", "cache_control"])?;
    ensure(block["type"] == "text", "text: type")?;
    let is_blank = block["text"].as_str().is_none_or(|text| text.trim().is_empty());
    ensure(!is_blank, "text content blocks must be non-empty")
}

/// Checks a block that a user's message or a result may have: a text, an image or a document.
fn block_of_user(block: &Value) -> Checked {
    let source = &block["source"];
    match (block["type"].as_str(), source["type"].as_str()) {
        (Some("image" | "document"), Some("base64")) => {
            known("source", source, &["type", "media_type", "data"])?;
            let types = ["image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"];
            let is_known = source["media_type"].as_str().is_some_and(|kind| types.contains(&kind));
            ensure(is_known, "source.media_type: unknown")?;
            ensure(
                source["data"].as_str().is_some_and(|data| !data.is_empty()),
                "source.data: empty",
            )
        }
        (Some("image" | "document"), Some("url")) => known("source", source, &["type", "url"]),
        (Some("image" | "document"), _) => Err("source.type: unknown".into()),
        _ => text(block),
    }
}

fn messages(body: &Value) -> Checked {
    let messages = body["messages"].as_array().ok_or("messages: Field required")?;
    ensure(!messages.is_empty(), "messages: at least one message is required")?;
    let mut open = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, message) in messages.iter().enumerate() {
        known("messages", message, &["role", "content"])?;
        let role = ["user", "assistant"][index % 2];
        ensure(
            message["role"] == role,
            "messages: roles must alternate, beginning with user",
        )?;
        let blocks = message["content"].as_array().filter(|blocks| !blocks.is_empty());
        let blocks = blocks.ok_or("messages.content: at least one block")?;
        if role == "user" {
            results(blocks, std::mem::take(&mut open))?;
        } else {
            open = calls(blocks, &mut seen)?;
        }
    }
    ensure(
        open.is_empty(),
        "`tool_use` ids were found without `tool_result` blocks",
    )?;
    ensure(messages.len() % 2 == 1, "messages: must end with a user message")?;
    ensure(
        seen.is_empty() || body.get("tools").is_some(),
        "tools: required with tool blocks",
    )?;
    let [.., last_answer, last] = messages.as_slice() else {
        return Ok(());
    };
    let is_loop = last["content"][0]["type"] == "tool_result";
    let has_thought = last_answer["content"][0]["type"]
        .as_str()
        .is_some_and(|kind| kind.contains("thinking"));
    let is_wanted = body.get("thinking").is_some() && is_loop;
    ensure(!is_wanted || has_thought, "Expected `thinking`, but found `tool_use`")
}

fn results(blocks: &[Value], mut open: Vec<String>) -> Checked {
    let mut only_results = true;
    for block in blocks {
        if block["type"] != "tool_result" {
            only_results = false;
            block_of_user(block)?;
            continue;
        }
        known(
            "tool_result",
            block,
            &["type", "tool_use_id", "content", "is_error", "cache_control"],
        )?;
        let is_empty = block["content"].as_str().is_none_or(str::is_empty) && !block["content"].is_array();
        ensure(
            block["is_error"] != true || !is_empty,
            "content cannot be empty if `is_error` is true",
        )?;
        ensure(only_results, "tool_result blocks must stand first")?;
        block["content"]
            .as_array()
            .into_iter()
            .flatten()
            .try_for_each(block_of_user)?;
        let call = open.iter().position(|id| block["tool_use_id"] == id.as_str());
        open.remove(call.ok_or("unexpected `tool_use_id` found in `tool_result` blocks")?);
    }
    ensure(
        open.is_empty(),
        "`tool_use` ids were found without `tool_result` blocks",
    )
}

fn calls(blocks: &[Value], seen: &mut BTreeSet<String>) -> Result<Vec<String>, String> {
    let mut open = Vec::new();
    for block in blocks {
        match block["type"].as_str() {
            Some("tool_use") => {
                known("tool_use", block, &["type", "id", "name", "input", "cache_control"])?;
                ensure(
                    is_name(&block["id"], 128) && is_name(&block["name"], 128),
                    "tool_use: pattern",
                )?;
                ensure(block["input"].is_object(), "tool_use.input: Input should be an object")?;
                let id = block["id"].as_str().unwrap_or_default().to_owned();
                ensure(seen.insert(id.clone()), "`tool_use` ids must be unique")?;
                open.push(id);
            }
            Some("thinking") => {
                known("thinking", block, &["type", "thinking", "signature"])?;
                let is_signed = block["signature"]
                    .as_str()
                    .is_some_and(|signature| !signature.is_empty());
                ensure(is_signed, "thinking.signature: Field required")?;
            }
            Some("redacted_thinking") => known("redacted_thinking", block, &["type", "data"])?,
            _ => text(block)?,
        }
    }
    Ok(open)
}
