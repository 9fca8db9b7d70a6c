//! Gateways: the tool that a step calls, and its arguments.

use std::sync::Arc;

use rockbot_core::support::nearest_names;
use rockbot_core::tool::{ToolFilter, ToolSnapshot};
use serde_json::{Map, Value, json};

use super::definition::Work;
use super::problem::StepProblem;
use super::raw_step::RawStep;

/// Maximum length of the name of a language, in characters.
const MAX_LANGUAGE: usize = 20;

/// The tools that the steps of a wisp can call.
#[derive(Debug)]
pub(super) struct KnownTools {
    pub(super) tools: Arc<ToolSnapshot>,
    pub(super) filter: ToolFilter,
}

impl KnownTools {
    fn has(&self, name: &str) -> bool {
        let found = self.tools.find(name);
        found.is_some_and(|entry| self.filter.allows(entry.registration()))
    }

    fn checked(&self, tool: String, params: Map<String, Value>) -> Result<Work, StepProblem> {
        if self.has(&tool) {
            return Ok(Work::Direct { tool, params });
        }
        let entries = self.tools.entries().iter().map(|entry| entry.registration());
        let names = entries
            .filter(|tool| self.filter.allows(tool))
            .map(|tool| tool.name.as_str());
        let near = match &*nearest_names(&tool, names, 3) {
            [] => String::new(),
            near => format!(": did you mean `{}`?", near.join("`, `")),
        };
        Err(StepProblem::Tool { tool, near })
    }
}

/// Returns the call of a step through its gateway. Without a gateway the other fields decide.
pub(super) fn route(step: &RawStep, params: Map<String, Value>, known: &KnownTools) -> Result<Work, StepProblem> {
    let gateway = step.gateway.as_deref().map(str::to_ascii_lowercase);
    match gateway.as_deref() {
        Some("mcp") => mcp(step, params, known),
        Some("a2a") => a2a(step, known),
        Some("script") => script(step, params, known),
        Some("web") => web(step, params, known),
        Some(_) => Err(StepProblem::Gateway(
            step.gateway.iter().flat_map(|name| name.chars()).take(40).collect(),
        )),
        None if step.server.is_some() => mcp(step, params, known),
        None if step.agent.is_some() => a2a(step, known),
        None if step.language.is_some() => script(step, params, known),
        None => {
            let tool = step.tool.clone().ok_or(StepProblem::Missing("tool"))?;
            known.checked(tool, params)
        }
    }
}

/// Returns the call of a server's tool: `server__tool` if the host has the tool under this name,
/// else `mcp_invoke_tool`.
fn mcp(step: &RawStep, params: Map<String, Value>, known: &KnownTools) -> Result<Work, StepProblem> {
    let tool = step.tool.as_deref().ok_or(StepProblem::Missing("tool"))?;
    if known.has(tool) && step.server.is_none() {
        return known.checked(tool.to_owned(), params);
    }
    let (server, tool) = match &step.server {
        Some(server) => (
            server.as_str(),
            tool.strip_prefix(&format!("{server}__")).unwrap_or(tool),
        ),
        None => tool.split_once("__").ok_or(StepProblem::Missing("server"))?,
    };
    let name = format!("{server}__{tool}");
    if known.has(&name) {
        return known.checked(name, params);
    }
    let arguments = [
        ("server_name", json!(server)),
        ("tool_name", json!(tool)),
        ("arguments", Value::Object(params)),
    ];
    known.checked("mcp_invoke_tool".to_owned(), members(arguments))
}

fn a2a(step: &RawStep, known: &KnownTools) -> Result<Work, StepProblem> {
    if step.output_to.is_some() {
        return Err(StepProblem::A2aOutput);
    }
    let text = |value: &Option<String>, name| value.clone().map(Value::from).ok_or(StepProblem::Missing(name));
    let required = [
        ("agent_name", text(&step.agent, "agent")?),
        ("skill", text(&step.skill, "skill")?),
        ("message", text(&step.message, "message")?),
    ];
    let timeout = step.timeout_minutes.map(|minutes| ("timeout_minutes", json!(minutes)));
    let metadata = step.metadata.clone().map(|metadata| ("metadata", metadata));
    let arguments = required.into_iter().chain(timeout).chain(metadata);
    known.checked("invoke_agent".to_owned(), members(arguments))
}

fn script(step: &RawStep, params: Map<String, Value>, known: &KnownTools) -> Result<Work, StepProblem> {
    let language = step.language.as_deref().unwrap_or("python").to_ascii_lowercase();
    let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if language.is_empty() || language.len() > MAX_LANGUAGE || !language.chars().all(is_legal) {
        return Err(StepProblem::Language);
    }
    if !params.get("script").is_some_and(Value::is_string) {
        return Err(StepProblem::Missing("params.script"));
    }
    known.checked(format!("execute_{language}_script"), params)
}

fn web(step: &RawStep, params: Map<String, Value>, known: &KnownTools) -> Result<Work, StepProblem> {
    match step.tool.as_deref() {
        Some(tool @ ("web_search" | "web_browse")) => known.checked(tool.to_owned(), params),
        Some(other) => Err(StepProblem::Web(other.chars().take(40).collect())),
        None => Err(StepProblem::Missing("tool")),
    }
}

fn members<'a>(members: impl IntoIterator<Item = (&'a str, Value)>) -> Map<String, Value> {
    members
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::known_tools;
    use super::*;

    fn routed(step: Value, tools: &[&str]) -> Result<(String, Value), StepProblem> {
        let step: RawStep = serde_json::from_value(step).unwrap();
        let params = json!({"script": "print(1)"}).as_object().unwrap().clone();
        match route(&step, params, &known_tools(tools))? {
            Work::Direct { tool, params } => Ok((tool, Value::Object(params))),
            Work::Llm { .. } => unreachable!(),
        }
    }

    #[test]
    fn an_mcp_step_calls_the_tool_of_the_server_however_it_is_spelled() {
        let params = json!({"script": "print(1)"});
        let steps = [
            json!({"gateway": "Mcp", "server": "wiki", "tool": "read"}),
            json!({"server": "wiki", "tool": "read"}),
            json!({"server": "wiki", "tool": "wiki__read"}),
            json!({"gateway": "mcp", "tool": "wiki__read"}),
        ];
        for step in steps {
            let typed = routed(step.clone(), &["wiki__read", "mcp_invoke_tool"]);
            assert_eq!(typed, Ok(("wiki__read".to_owned(), params.clone())), "{step}");
            let wrapped = json!({"server_name": "wiki", "tool_name": "read", "arguments": params});
            let invoked = routed(step.clone(), &["mcp_invoke_tool"]);
            assert_eq!(invoked, Ok(("mcp_invoke_tool".to_owned(), wrapped)), "{step}");
        }
        let nowhere = json!({"gateway": "Mcp", "tool": "read"});
        assert_eq!(
            routed(nowhere, &["mcp_invoke_tool"]),
            Err(StepProblem::Missing("server"))
        );
    }

    #[test]
    fn the_other_gateways_call_their_tools() {
        let tools = ["invoke_agent", "execute_python_script", "web_browse"];
        let asked = json!({"gateway": "A2A", "agent": "bob", "skill": "s", "message": "m", "timeout_minutes": 3});
        let arguments = json!({"agent_name": "bob", "skill": "s", "message": "m", "timeout_minutes": 3});
        assert_eq!(
            routed(asked.clone(), &tools),
            Ok(("invoke_agent".to_owned(), arguments))
        );
        let mut captured = asked;
        captured["output_to"] = json!("x");
        assert_eq!(routed(captured, &tools), Err(StepProblem::A2aOutput));
        let script = routed(json!({"gateway": "Script"}), &tools).unwrap();
        assert_eq!(script.0, "execute_python_script");
        let odd = json!({"gateway": "Script", "language": "../x"});
        assert_eq!(routed(odd, &tools), Err(StepProblem::Language));
        let page = routed(json!({"gateway": "Web", "tool": "web_browse"}), &tools).unwrap();
        assert_eq!(page.0, "web_browse");
        let other = json!({"gateway": "Web", "tool": "rm"});
        assert_eq!(routed(other, &tools), Err(StepProblem::Web("rm".to_owned())));
    }
}
