//! Definitions as models write them: an array, one object, or texts of JSON, with fields under
//! several names.

use rockbot_core::tool::ArgumentSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::definition::{Definition, Step, Work};
use super::gateway::{self, KnownTools};
use super::limits::MAX_WISPS;
use super::problem::{DefinitionError, DefinitionProblem, StepProblem};
use super::raw_step::{OnFailure, RawStep};

/// Maximum number of nested texts that hold JSON.
const MAX_QUOTES: u32 = 3;

/// A definition with the names that models use.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDefinition {
    #[serde(default, alias = "name", alias = "task")]
    description: String,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    steps: Vec<Value>,
}

/// Parses and checks the arguments of a call.
pub(super) fn parse(arguments: &str, known: &KnownTools) -> Result<Vec<Definition>, DefinitionError> {
    let no_json = |error: String| DefinitionError::Json(error);
    ArgumentSchema::check_bounds(arguments).map_err(|error| no_json(error.to_string()))?;
    let given: Map<String, Value> = serde_json::from_str(arguments).map_err(|error| no_json(error.to_string()))?;
    let definitions = match given.get("definitions") {
        Some(definitions) => definitions.clone(),
        None if given.contains_key("steps") => Value::Object(given),
        None => return Err(DefinitionError::Missing),
    };
    let items = match unquoted(definitions).map_err(|error| no_json(error.to_string()))? {
        Value::Array(items) => items,
        one => vec![one],
    };
    match items.len() {
        0 => return Err(DefinitionError::Empty),
        count if count > MAX_WISPS => return Err(DefinitionError::TooMany(count)),
        _ => {}
    }
    let numbered = items.into_iter().enumerate();
    let parsed = numbered.map(|(at, item)| {
        definition(item, known).map_err(|problem| DefinitionError::Definition {
            number: at + 1,
            problem,
        })
    });
    parsed.collect()
}

/// Returns the value that a text of JSON holds; other values as they are.
fn unquoted(mut value: Value) -> serde_json::Result<Value> {
    for _ in 0..MAX_QUOTES {
        let Value::String(text) = &value else { break };
        value = serde_json::from_str(text)?;
    }
    Ok(value)
}

/// Moves the members of `work`, as the log and skills have a step, to the step itself.
fn without_work(mut step: Value) -> Value {
    if let Some(members) = step.as_object_mut()
        && let Some(Value::Object(work)) = members.remove("work")
    {
        members.extend(work);
    }
    step
}

fn definition(item: Value, known: &KnownTools) -> Result<Definition, DefinitionProblem> {
    let shape = |error: serde_json::Error| DefinitionProblem::Shape(error.to_string());
    let raw: RawDefinition = serde_json::from_value(unquoted(item).map_err(shape)?).map_err(shape)?;
    let mut definition = Definition {
        description: raw.description,
        tools: raw.tools,
        steps: Vec::new(),
    };
    for (at, item) in raw.steps.into_iter().enumerate() {
        let id = item.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let raw: RawStep = unquoted(item)
            .map(without_work)
            .and_then(serde_json::from_value)
            .map_err(|error| DefinitionProblem::Shape(format!("step {}: {error}", at + 1)))?;
        let step = raw.into_step(known).map_err(|problem| problem.in_step(&id, at))?;
        definition.steps.push(step);
    }
    definition.check()?;
    Ok(definition)
}

impl RawStep {
    fn into_step(mut self, known: &KnownTools) -> Result<Step, StepProblem> {
        let skip_to = self.skip_to()?;
        let id = std::mem::take(&mut self.id);
        let output_to = self.output_to.clone();
        let work = if self.is_llm()? {
            Work::Llm {
                prompt: self.prompt.take().ok_or(StepProblem::Missing("prompt"))?,
                input_from: self.input_from.take(),
            }
        } else {
            let params = self.params()?;
            gateway::route(&self, params, known)?
        };
        Ok(Step {
            id,
            work,
            output_to,
            skip_to,
        })
    }

    /// Returns `true` for a step that asks a model. Without a mode the fields decide.
    fn is_llm(&self) -> Result<bool, StepProblem> {
        match self.mode.as_deref() {
            Some(mode) if mode.eq_ignore_ascii_case("llm") => Ok(true),
            Some(mode) if mode.eq_ignore_ascii_case("direct") => Ok(false),
            Some(mode) => Err(StepProblem::Mode(mode.chars().take(40).collect())),
            None => Ok(self.prompt.is_some()),
        }
    }

    /// Returns the arguments of a call: `params`, else `input`, else `arguments`, else a text of
    /// `input_from` that is an object.
    fn params(&mut self) -> Result<Map<String, Value>, StepProblem> {
        let is_object = |from: &String| from.trim_start().starts_with('{') && !from.trim_start().starts_with("{{");
        let quoted = self.input_from.take_if(|from| is_object(from)).map(Value::from);
        if self.input_from.is_some() {
            return Err(StepProblem::DirectInput);
        }
        let given = [self.params.take(), self.input.take(), self.arguments.take(), quoted];
        match given.into_iter().flatten().next().map(unquoted).transpose() {
            Ok(None | Some(Value::Null)) => Ok(Map::new()),
            Ok(Some(Value::Object(params))) => Ok(params),
            Ok(Some(_)) | Err(_) => Err(StepProblem::Params),
        }
    }

    fn skip_to(&self) -> Result<Option<String>, StepProblem> {
        let (action, target) = match &self.on_failure {
            None => return Ok(self.skip_to.clone()),
            Some(OnFailure::Action(action)) => (Some(action), None),
            Some(OnFailure::Rule { action, skip_to }) => (action.as_ref(), skip_to.as_ref()),
        };
        let action = action.map_or(if target.is_some() { "skip_to" } else { "abort" }, String::as_str);
        match action.to_ascii_lowercase().as_str() {
            "abort" => Ok(None),
            "skip_to" | "skipto" => Ok(Some(target.ok_or(StepProblem::Missing("on_failure.skip_to"))?.clone())),
            _ => Err(StepProblem::Action(action.chars().take(40).collect())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::known_tools;
    use super::*;

    fn parsed(arguments: &Value) -> Result<Vec<Definition>, DefinitionError> {
        parse(&arguments.to_string(), &known_tools(&["look", "web_search"]))
    }

    fn problem_of(steps: Value) -> String {
        let mut definitions = json!({"definitions": [{"description": "d"}]});
        definitions["definitions"][0]["steps"] = steps;
        parsed(&definitions).unwrap_err().to_string()
    }

    #[test]
    fn an_array_one_object_and_texts_of_json_are_the_same() {
        let one =
            json!({"description": "d", "steps": [{"id": "a", "mode": "direct", "tool": "look", "params": {"at": 1}}]});
        let expected = parsed(&json!({"definitions": [one]})).unwrap();
        assert_eq!(
            expected[0].steps[0].work,
            Work::Direct {
                tool: "look".to_owned(),
                params: json!({"at": 1}).as_object().unwrap().clone()
            }
        );
        let quoted = json!([one.to_string()]).to_string();
        for given in [
            json!({"definitions": one}),
            json!({"definitions": one.to_string()}),
            json!({"definitions": [one.to_string()]}),
            json!({"definitions": quoted}),
            one,
        ] {
            assert_eq!(parsed(&given).as_ref(), Ok(&expected), "{given}");
        }
    }

    #[test]
    fn a_definition_as_the_log_has_it_can_be_run_again() {
        let steps = json!([
            {"id": "a", "tool": "look", "params": {"at": 1}, "on_failure": {"skip_to": "c"}, "output_to": "seen"},
            {"id": "b", "mode": "Llm", "prompt": "What is it?", "input_from": "seen"},
            {"id": "c", "tool": "web_search"},
        ]);
        let parsed_once = parsed(&json!({"definitions": [{"description": "d", "steps": steps}]})).unwrap();
        let logged = serde_json::to_value(&parsed_once).unwrap();
        assert_eq!(parsed(&json!({"definitions": logged})), Ok(parsed_once));
    }

    #[test]
    fn arguments_have_several_names() {
        for field in ["params", "input", "arguments", "args", "parameters"] {
            let mut step = json!({"id": "a", "mode": "Direct", "tool": "look"});
            for value in [json!({"at": 1}), json!("{\"at\": 1}")] {
                step[field] = value;
                let given = json!({"definitions": {"description": "d", "steps": [step]}});
                let Work::Direct { params, .. } = &parsed(&given).unwrap()[0].steps[0].work else {
                    return;
                };
                assert_eq!(params["at"], 1, "{field}");
            }
        }
        let step = json!({"id": "a", "tool": "look", "inputFrom": " {\"at\": 1}", "onFailure": "abort"});
        assert!(parsed(&json!({"definitions": {"description": "d", "steps": [step]}})).is_ok());
    }

    #[test]
    fn each_problem_says_what_to_change() {
        let look = |id: &str| json!({"id": id, "mode": "Direct", "tool": "look"});
        let with = |field: &str, value: Value| {
            let mut step = look("a");
            step[field] = value;
            step
        };
        for (steps, expected) in [
            (
                json!([]),
                "definition 1: `steps` is empty: give at least one step. Nothing has run",
            ),
            (
                json!([look("a"), look("A")]),
                "step `A`: an earlier step has the same `id`",
            ),
            (json!([look("")]), "step 1: `id` has 1 to 64 letters"),
            (
                json!([with("mode", json!("Fast"))]),
                "`mode` is `Direct` or `Llm`, not `Fast`",
            ),
            (
                json!([with("gateway", json!("Mail"))]),
                "`gateway` is `Mcp`, `A2A`, `Script` or `Web`, not `Mail`",
            ),
            (
                json!([with("tool", json!("lok"))]),
                "there is no tool `lok`: did you mean `look`?",
            ),
            (json!([with("params", json!([1]))]), "`params` is an object"),
            (
                json!([with("input_from", json!("a"))]),
                "`input_from` is for steps with `mode` `Llm`",
            ),
            (json!([with("surprise", json!(1))]), "step 1: unknown field `surprise`"),
            (
                json!([with("on_failure", json!("retry"))]),
                "`on_failure.action` is `abort` or `skip_to`, not `retry`",
            ),
            (
                json!([with("on_failure", json!({"action": "skip_to"}))]),
                "`on_failure.skip_to` is missing",
            ),
            (
                json!([
                    look("z"),
                    with("on_failure", json!({"action": "skip_to", "skip_to": "z"})),
                    look("b")
                ]),
                "step `a`: `on_failure.skip_to` names no later step: `z` is not one of `b`",
            ),
            (
                json!([with("params", json!({"x": "{{steps.a.result}}"}))]),
                "step `a`: `{{steps.a.result}}` refers to no earlier step: this step is the first one",
            ),
            (json!([{"id": "a", "mode": "Llm"}]), "step `a`: `prompt` is missing"),
            (
                json!([look("b"), {"id": "a", "prompt": "p", "input_from": "c"}]),
                "`input_from` names no earlier output: `c`",
            ),
        ] {
            let problem = problem_of(steps.clone());
            assert!(problem.contains(expected), "{steps}: {problem}");
        }
    }

    #[test]
    fn what_is_too_long_is_refused_at_once() {
        let long = json!({"definitions": "x".repeat(10 << 20)});
        assert!(matches!(parsed(&long), Err(DefinitionError::Json(_))));
        let steps: Vec<_> = (0..10_000)
            .map(|n| json!({"id": n.to_string(), "tool": "look"}))
            .collect();
        let many = json!({"definitions": {"description": "d", "steps": &steps[..2_000]}});
        assert!(
            parsed(&many)
                .unwrap_err()
                .to_string()
                .contains("2000 steps are too many")
        );
        let ten_thousand = json!({"definitions": {"description": "d", "steps": steps}});
        assert!(parsed(&ten_thousand).is_err());
        let wisps = json!({"definitions": vec![json!({}); 101]});
        assert_eq!(parsed(&wisps), Err(DefinitionError::TooMany(101)));
        assert_eq!(parsed(&json!({"definitions": []})), Err(DefinitionError::Empty));
        assert_eq!(parsed(&json!({})), Err(DefinitionError::Missing));
    }
}
