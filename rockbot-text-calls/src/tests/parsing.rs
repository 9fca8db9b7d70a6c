//! Behaviour that the corpus cannot express: names, corrections, prompts, and large hostile texts.

use crate::cursor::Cursor;
use crate::dialect;
use crate::{MalformedKind, TextCallParser, call_text, instructions, result_text};

#[test]
fn names_match_in_any_case_only_when_one_tool_is_left() {
    let parser = TextCallParser::new(["Look", "look", "find"]);
    let named = |name: &str| {
        let answer = parser.parse(&format!("tool_call_name: {name}"));
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
    let answer =
        TextCallParser::default().parse("Well.\n<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>");
    assert_eq!((answer.text.as_str(), answer.calls.len()), ("Well.", 0));
    assert_eq!(answer.malformed[0].kind, MalformedKind::UnknownTool);
    assert!(answer.correction.unwrap().contains("There are no tools now"));
}

#[test]
fn a_correction_is_one_short_text() {
    let parser = super::parser();
    let correction = |text: &str| parser.parse(text).correction.unwrap();
    assert!(correction("tool_call_name: get_wether").contains("Did you mean `get_weather`?"));
    assert!(correction("tool_call_name: fly_to_the_moon").contains("The tools are: Send-Mail, add"));
    assert!(
        correction("tool_call_name: add\ntool_call_arguments: 1").contains("the call of `add` are not a JSON object")
    );
    let many = "<tool_call>{\"name\": \"nothing_of_the_kind\"}</tool_call>\n".repeat(10_000);
    let correction = correction(&many);
    assert!(correction.contains("10000 tool calls"), "{correction}");
    assert!(correction.len() < 700, "{}", correction.len());
    let long = correction_of_a_long_name(&parser);
    assert!(long.len() < 700, "{}", long.len());
}

fn correction_of_a_long_name(parser: &TextCallParser) -> String {
    let text = format!("<tool_call>{{\"name\": \"{}\"}}</tool_call>", "ä".repeat(100_000));
    parser.parse(&text).correction.unwrap()
}

#[test]
fn arguments_keep_their_order_and_their_numbers() {
    let answer = super::parser().parse("tool_call_name: add\ntool_call_arguments: {\"b\": 2, \"a\": 1.50}");
    let call = &answer.calls[0];
    assert_eq!((&*call.name, &*call.arguments), ("add", r#"{"b":2,"a":1.50}"#));
}

#[test]
fn the_form_that_is_taught_is_parsed() {
    let text = instructions(super::offered());
    assert_eq!(instructions([]), "");
    for tool in super::offered() {
        assert!(text.contains(&format!("### {}\n", tool.name)), "{}", tool.name);
    }
    let form = text
        .split("\n\n")
        .find(|paragraph| paragraph.starts_with("tool_call_name:"))
        .unwrap();
    let call = form
        .replace("NAME", "add")
        .replace("\"argument\": \"value\"", "\"a\": 1");
    assert_eq!(super::parser().parse(&call).calls.len(), 1);
}

#[test]
fn a_call_and_a_result_in_text_are_recognised() {
    let arguments = r#"{"a":1,"b":2}"#;
    let answer = super::parser().parse(&format!("{}\n{}", call_text("add", arguments), result_text("add", "3")));
    assert_eq!(answer.calls[0].arguments, arguments);
    assert!(answer.hallucinated_from.is_some());
}

/// A length at which a parser that looks at every byte once per line would not come to an end.
const BYTES: usize = 20_000;

/// Texts that tempt a parser into looking at everything again and again.
#[test]
fn hostile_texts_are_parsed_in_a_bounded_number_of_looks() {
    let parser = super::parser();
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
        ". {\"name\": \"now\", \"arguments\": {}}",
        "\n{\"name\": \"now\", \"arguments\": {",
        "[{\"name\": \"now\", \"arguments\": {}},",
        "{\"tool_calls\": [",
        "\n```\n{\"name\": \"now\", \"arguments\": {}}\n```",
        "~~~\n```\n",
        "`tool_call_name: now`\n",
        "</think>{",
        "\n<think><|tool_calls_section_begin|>",
        "]<]minimax[>[<tool_call>]<]minimax[>[<invoke name=\"now\">]<]minimax[>[<a>]<]minimax[>[<b>",
        "<function name=\"now\"><param name=\"a\"><![CDATA[",
        "I will.>>>now\n{}",
        "to=now<|message|>",
        "\n<|start|>assistant to=now<|message|>",
        "<|channel|>analysis<|message|><|",
        "<|channel|>commentary<|message|>a<|end|>",
        "<|channel|>commentary to=now<|message|>{",
        "<|start|>assistant to=now<|message|><atem:function_calls><atem:invoke name=\"now\">",
        "to=self<|message|>a<|eom|><|start|>assistant ",
        "<|open|>think<|sep|>",
        "<|open|>response<|sep|>a",
        "<|open|>tools<|sep|><|open|>call tool=\"now\"<|sep|>",
        "<|open|>call tool=\"now\"<|sep|><|open|>argument key=\"a\"<|sep|>",
        "<|close|>response<|sep|>",
        "a.<|close|>argument<|sep|>",
        "<|open|>a=\"a&amp;",
        "analysisAssistant",
        "analysisAassistantcommentary to=now json{",
        "\nanalysis to=now {",
        "function call{",
        "\nfunction call{\"name\": \"now\", \"arguments\": {",
        "<|message_sep|>function call<|role_sep|>{",
        "<|tool_call>now{a:",
        "<call>now{a:<|\"|>",
        "<think><|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>{}",
        "functions.",
        "math.hypot(",
        "\nmath.hypot\n{",
        "{\"math.hypot\":",
    ];
    let openers = dialect::openers().flat_map(|opener| [format!("\n{opener}"), format!("a.{opener}")]);
    for unit in units.into_iter().map(str::to_owned).chain(openers) {
        let text = unit.repeat(BYTES / unit.len()) + "x";
        let answer = parser.parse(&text);
        assert!(answer.text.len() <= text.len(), "{unit:?}");
        let mut hold_back = parser.hold_back();
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
