//! What the corpus cannot say: names, teaching, large texts, and what a model is told.

use super::super::cursor::Cursor;
use crate::chat::Role;
use crate::chat::text_calls::{MalformedKind, TextCalls, instructions, result_message};
use crate::context::Trust;
use crate::tool::{ToolRegistry, ToolView};

#[test]
fn names_match_in_any_case_only_when_one_tool_is_left() {
    let calls = TextCalls::new(["Look", "look", "find"]);
    let named = |name: &str| {
        let answer = calls.parse(&format!("tool_call_name: {name}"));
        answer.calls.first().map(|call| call.name.to_string())
    };
    assert_eq!(named("look").as_deref(), Some("look"));
    assert_eq!(named("Look").as_deref(), Some("Look"));
    assert_eq!(named("LOOK"), None);
    assert_eq!(named("FIND").as_deref(), Some("find"));
    assert_eq!(named("functions.find").as_deref(), Some("find"));
}

#[test]
fn without_tools_every_call_is_an_unknown_one() {
    let answer = TextCalls::default().parse("Well.\n<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>");
    assert_eq!((answer.text.as_str(), answer.calls.len()), ("Well.", 0));
    assert_eq!(answer.malformed[0].kind, MalformedKind::UnknownTool);
    assert!(answer.teaching.unwrap().contains("There are no tools now"));
}

#[test]
fn a_model_is_taught_once_and_shortly() {
    let calls = super::calls();
    let teaching = |text: &str| calls.parse(text).teaching.unwrap();
    assert!(teaching("tool_call_name: get_wether").contains("Did you mean `get_weather`?"));
    assert!(teaching("tool_call_name: fly_to_the_moon").contains("The tools are: Send-Mail, add"));
    assert!(
        teaching("tool_call_name: add\ntool_call_arguments: 1").contains("the call of `add` are not a JSON object")
    );
    let many = "<tool_call>{\"name\": \"nothing_of_the_kind\"}</tool_call>\n".repeat(10_000);
    let teaching = teaching(&many);
    assert!(teaching.contains("10000 tool calls"), "{teaching}");
    assert!(teaching.len() < 700, "{}", teaching.len());
    let long = teaching_of_a_long_name(&calls);
    assert!(long.len() < 700, "{}", long.len());
}

fn teaching_of_a_long_name(calls: &TextCalls) -> String {
    let text = format!("<tool_call>{{\"name\": \"{}\"}}</tool_call>", "ä".repeat(100_000));
    calls.parse(&text).teaching.unwrap()
}

#[test]
fn a_call_becomes_a_native_one() {
    let mut answer = super::calls().parse("tool_call_name: add\ntool_call_arguments: {\"b\": 2, \"a\": 1.50}");
    let call = answer.calls.remove(0).into_call("text_1".into());
    assert_eq!(
        (call.id.as_str(), call.name.as_str(), &*call.arguments),
        ("text_1", "add", r#"{"b":2,"a":1.50}"#)
    );
}

#[test]
fn what_is_taught_is_understood() {
    let registry = super::tools();
    let snapshot = registry.snapshot();
    let text = instructions(snapshot.view());
    assert_eq!(instructions(&ToolView::default()), "");
    for name in snapshot.view().names() {
        assert!(text.contains(&format!("### {name}\n")), "{name}");
    }
    let form = text
        .split("\n\n")
        .find(|paragraph| paragraph.starts_with("tool_call_name:"))
        .unwrap();
    let call = form
        .replace("NAME", "add")
        .replace("\"argument\": \"value\"", "\"a\": 1");
    assert_eq!(super::calls().parse(&call).calls.len(), 1);
}

#[test]
fn a_result_is_the_users_message_of_a_tool() {
    let message = result_message(&"add".into(), "3");
    assert_eq!(
        (message.role, &*message.text()),
        (Role::User, "[Tool result for add]: 3")
    );
    let provenance = &message.content[0].provenance;
    assert_eq!((&*provenance.source, provenance.trust), ("tool:add", Trust::Untrusted));
}

/// As many that a reader which looks at them once for every line would not come to an end.
const BYTES: usize = 100_000;

/// Texts that invite a reader to look at everything again and again.
#[test]
fn hostile_texts_are_read_in_a_bounded_number_of_looks() {
    let calls = super::calls();
    let units = [
        "<tool_call>",
        "<tool_call>{",
        "\n<tool_call>{\"",
        "\n<tool_call>{\"a\":",
        "\n<tool_call>{'",
        "\n<tool_call>[{",
        "\n<function=a>",
        "\n<function=now><parameter=",
        "<function=now><parameter=a>",
        "\n[TOOL_CALLS]",
        ".<tool_call>",
        "a.<|python_tag|>{\"a\":[",
        "\ntool_call_name: now ",
        "\ntool_call_name: now\ntool_call_arguments: {",
        "`",
        "```\n",
        "\n```json\n{",
        "[[[[",
        "{{{{",
        "{\"a\":",
        "\nnow\n{",
        "[now(",
        "\n[now(a=",
        ">>>",
        "\n>>>now\n{",
        "\n<|channel|>analysis<|message|>",
        "<think>",
        "</think>\n",
        " ",
        "\n",
        "\t\n",
        "<tool_call>now<arg_key>",
        "\n<|tool_call>call:now{a:<|\"|>",
        "\nAction: now\nAction Input: {",
        ". <",
        "\n[Tool result for ",
        "</s>",
        "\n<invoke name=\"now\">",
        "\n<tool_call>{\"name\": \"now\"}</tool_call> x",
        "a. <tool_call>{\"name\": \"now\"}</tool_call> ",
        "ä",
        "\\",
        "\n<tool_call>{\"name\":\"now\"}</tool_call>",
    ];
    for unit in units {
        let text = unit.repeat(BYTES / unit.len()) + "x";
        let answer = calls.parse(&text);
        assert!(answer.text.len() <= text.len(), "{unit:?}");
        let mut hold_back = calls.hold_back();
        let shown: usize = text
            .split_inclusive('\n')
            .map(|piece| hold_back.push(piece).len())
            .sum();
        assert_eq!(shown + hold_back.held().len(), text.len(), "{unit:?}");
    }
}

#[test]
fn a_cursor_stops_finding_when_its_fuel_is_spent() {
    let text = "x".repeat(1_000);
    let mut cursor = Cursor::new(&text);
    let looks = (0..)
        .take_while(|_| cursor.find("y").is_none() && !cursor.is_spent())
        .count();
    assert!((10..40).contains(&looks), "{looks}");
    assert_eq!((cursor.find("x"), cursor.line()), (None, ""));
}
