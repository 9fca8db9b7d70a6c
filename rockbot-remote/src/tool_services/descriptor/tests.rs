use rockbot_core::tool::Effect;
use serde_json::json;

use super::*;

const SERVICE: &str = r#"{
    "id": "joke-service",
    "request-queue": "non-persistent://tg/request/joke",
    "response-queue": "response:tg:joke",
    "config-params": [{"name": "style", "required": true}, "language"]
}"#;

const TOOL: &str = r#"{
    "type": "tool-service",
    "name": "tell-joke",
    "description": "Tell a joke on a given topic",
    "service": "joke-service",
    "style": "pun",
    "arguments": [{"name": "topic", "type": "string", "description": "The topic for the joke"}]
}"#;

fn service(text: &str) -> Result<ServiceDescriptor, String> {
    match Descriptor::parse("s.json", None, text.as_bytes()) {
        Ok(Descriptor::Service(service)) => Ok(service),
        Ok(Descriptor::Tool(_)) => panic!("it is a tool"),
        Err(problem) => Err(problem.to_string()),
    }
}

fn tool(text: &str) -> Result<ToolDescriptor, String> {
    match Descriptor::parse("t.json", None, text.as_bytes()) {
        Ok(Descriptor::Tool(tool)) => Ok(tool),
        Ok(Descriptor::Service(_)) => panic!("it is a service"),
        Err(problem) => Err(problem.to_string()),
    }
}

#[test]
fn the_descriptors_of_the_seed_are_read() {
    let service = service(SERVICE).unwrap();
    assert_eq!(
        (service.request.topic(), service.response.topic()),
        ("tg.request.joke".into(), "tg.response.joke".into())
    );
    let params: Vec<_> = service
        .params
        .iter()
        .map(|param| (&*param.name, param.required))
        .collect();
    assert_eq!(params, [("style", true), ("language", false)]);
    let tool = tool(TOOL).unwrap();
    assert_eq!(
        tool.arguments,
        [Argument {
            name: "topic".to_owned(),
            kind: "string".to_owned(),
            description: "The topic for the joke".to_owned(),
            required: true,
        }]
    );
    assert_eq!(tool.effect, Effect::Mutating);
    let mut hints = Vec::new();
    let resolved = resolve("t.json", &tool, &service, &mut hints).unwrap();
    assert_eq!(
        (serde_json::Value::Object(resolved.config), hints),
        (json!({"style": "pun"}), Vec::new())
    );
}

#[test]
fn queues_default_to_those_of_the_topic() {
    let service = service(r#"{"id": "s", "topic": "calc", "response-queue": "response:mine:calc"}"#).unwrap();
    assert_eq!(
        (service.request.to_string(), service.response.to_string()),
        ("request:tg:calc".into(), "response:mine:calc".into())
    );
}

#[track_caller]
fn refused(read: Result<impl Sized, String>, problem: &str) {
    assert_eq!(read.map(drop), Err(problem.to_owned()));
}

#[test]
fn a_defect_of_a_service_names_its_field() {
    refused(service("[]"), "`s.json`: it is no JSON object: write `{…}`");
    refused(
        service(r#"{"id": 7}"#),
        "`s.json`: field `id` is no text: write it in quotes",
    );
    refused(
        service(r#"{"id": "s"}"#),
        "`s.json`: field `request-queue` is missing: name the queue, or set `topic` for both queues",
    );
    refused(
        service(r#"{"id": "s", "topic": "t", "request-queue": "joke"}"#),
        "`s.json`: field `request-queue` is wrong: `joke` is no queue id: write `request:tg:NAME` or \
         `non-persistent://tg/request/NAME`",
    );
    refused(
        service(r#"{"id": "s", "topic": "t", "config-params": null}"#),
        "`s.json`: field `config-params` is no list: write `[…]`",
    );
    refused(
        service(r#"{"id": "s", "topic": "t", "config-params": ["a", {"required": true}]}"#),
        "`s.json`: field `config-params[1].name` is missing: set it to a text",
    );
    refused(
        service(r#"{"id": "s", "topic": "t", "config-params": ["a", {"name": "a"}]}"#),
        "`s.json`: field `config-params[1].name` is `a` a second time: remove one",
    );
    assert!(service("{").unwrap_err().starts_with("`s.json`: it is not JSON: "));
}

#[test]
fn a_defect_of_a_tool_names_its_field() {
    refused(
        tool(r#"{"type": "mcp-tool", "name": "t"}"#),
        "`t.json`: field `type` is `mcp-tool`: only tools of type `tool-service` are loaded from descriptors",
    );
    refused(
        tool(&TOOL.replace("\"joke-service\"", "\" \"")),
        "`t.json`: field `service` is empty: set it to a text, or remove it",
    );
    refused(
        tool(&TOOL.replace("\"name\": \"topic\"", "\"nme\": \"topic\"")),
        "`t.json`: field `arguments[0].name` is missing: set it to a text",
    );
    refused(
        tool(&TOOL.replace("\"style\"", "\"effect\"")),
        "`t.json`: field `effect` is none of `pure`, `idempotent` and `mutating`",
    );
}

#[test]
fn config_values_are_required_optional_or_undeclared() {
    let service = service(SERVICE).unwrap();
    let resolved = |text: &str| {
        let mut hints = Vec::new();
        let resolved = resolve("t.json", &tool(text).unwrap(), &service, &mut hints);
        let hints: Vec<_> = hints.iter().map(ToString::to_string).collect();
        (
            resolved
                .map(|resolved| serde_json::Value::Object(resolved.config))
                .map_err(|error| error.to_string()),
            hints,
        )
    };
    let (missing, _) = resolved(&TOOL.replace("\"style\"", "\"stile\""));
    assert_eq!(
        missing,
        Err("`t.json`: field `style` is missing: the tool service `joke-service` requires it".to_owned())
    );
    let (config, hints) = resolved(&TOOL.replace(
        "\"style\": \"pun\"",
        r#""style": null, "language": {"a": 1}, "group": []"#,
    ));
    assert_eq!(config, Ok(json!({"style": null, "language": {"a": 1}})));
    assert_eq!(
        hints,
        [
            "`t.json`: field `group` is neither a field of a tool nor a config parameter of `joke-service`: it is not sent"
        ]
    );
}
