//! Tests of what is accepted, what is refused and in which words; hostile schemas and arguments
//! must end quickly.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn compile(schema: &Value) -> ArgumentSchema {
    ArgumentSchema::compile(schema).unwrap()
}

/// Returns the problem of `value` as the argument `x` of a tool whose `x` has this schema.
fn problems_of(schema: &Value, value: &Value) -> Vec<String> {
    let root = json!({"type": "object", "properties": {"x": schema}});
    match compile(&root).check(&json!({"x": value}).to_string()) {
        Ok(checked) => {
            assert_eq!(checked["x"], *value);
            Vec::new()
        }
        Err(error) => error.problems().to_vec(),
    }
}

#[track_caller]
fn fits(schema: &Value, values: impl IntoIterator<Item = Value>) {
    for value in values {
        assert_eq!(
            problems_of(schema, &value),
            [] as [&str; 0],
            "{schema} should accept {value}"
        );
    }
}

#[track_caller]
fn refuses(schema: &Value, value: &Value, problem: &str) {
    assert_eq!(problems_of(schema, value), [problem], "{schema} should refuse {value}");
}

#[test]
fn types() {
    for (kind, values) in [
        ("string", vec![json!(""), json!("a")]),
        ("integer", vec![json!(1), json!(-1), json!(1.0), json!(u64::MAX)]),
        ("number", vec![json!(1), json!(1.5)]),
        ("boolean", vec![json!(true)]),
        ("null", vec![json!(null)]),
        ("array", vec![json!([])]),
        ("object", vec![json!({})]),
    ] {
        fits(&json!({"type": kind}), values);
    }
    refuses(
        &json!({"type": "integer"}),
        &json!("three"),
        "`x` must be an integer, got the string \"three\"",
    );
    refuses(
        &json!({"type": "integer"}),
        &json!(1.5),
        "`x` must be an integer, got 1.5",
    );
    refuses(
        &json!({"type": ["string", "null"]}),
        &json!([1]),
        "`x` must be a string or null, got an array",
    );
    refuses(
        &json!({"type": "object"}),
        &json!(null),
        "`x` must be an object, got null; leave it out instead",
    );
    fits(&json!({"type": "string", "nullable": true}), [json!(null), json!("a")]);
    fits(&json!(true), [json!(null), json!({"a": [1]})]);
    refuses(&json!(false), &json!(1), "`x` is not allowed");
}

#[test]
fn numbers() {
    let schema = json!({"minimum": 1, "exclusiveMaximum": 10, "multipleOf": 0.5});
    fits(&schema, [json!(1), json!(9.5), json!("not a number")]);
    refuses(&schema, &json!(0), "`x` must be at least 1, got 0");
    refuses(&schema, &json!(10), "`x` must be less than 10, got 10");
    refuses(&schema, &json!(1.2), "`x` must be a multiple of 0.5, got 1.2");
    refuses(
        &json!({"exclusiveMinimum": 1}),
        &json!(1),
        "`x` must be greater than 1, got 1",
    );
    refuses(
        &json!({"maximum": u64::MAX - 1}),
        &json!(u64::MAX),
        &format!("`x` must be at most {}, got {}", u64::MAX - 1, u64::MAX),
    );
    fits(&json!({"multipleOf": 0.1}), [json!(0.3), json!(7)]);
    refuses(
        &json!({"minimum": 1, "exclusiveMinimum": true}),
        &json!(1),
        "`x` must be greater than 1, got 1",
    );
}

#[test]
fn choices() {
    let schema = json!({"enum": ["celsius", "kelvin", 1, null]});
    fits(&schema, [json!("celsius"), json!(1), json!(1.0), json!(null)]);
    refuses(
        &schema,
        &json!("celcius"),
        r#"`x` must be "celsius" | "kelvin" | 1 | null, got the string "celcius"; did you mean "celsius"?"#,
    );
    refuses(
        &json!({"const": {"a": 1}}),
        &json!({"a": 2}),
        r#"`x` must be {"a":1}, got an object"#,
    );
    fits(&json!({"const": null}), [json!(null)]);
}

#[test]
fn lengths_and_counts() {
    refuses(
        &json!({"minLength": 2}),
        &json!("ä"),
        "`x` must have at least 2 characters, got 1",
    );
    fits(&json!({"maxLength": 2}), [json!("ää")]);
    refuses(
        &json!({"maxItems": 1}),
        &json!([1, 2]),
        "`x` must have at most 1 item, got 2",
    );
    refuses(
        &json!({"minProperties": 1}),
        &json!({}),
        "`x` must have at least 1 member, got 0",
    );
    refuses(
        &json!({"maxProperties": 1}),
        &json!({"a": 1, "b": 1}),
        "`x` must have at most 1 member, got 2",
    );
    refuses(
        &json!({"uniqueItems": true}),
        &json!([1, 2, 1]),
        "`x` must not have the same item twice, item 2 repeats an earlier one",
    );
}

#[test]
fn arrays_and_objects() {
    refuses(
        &json!({"items": {"type": "string"}}),
        &json!(["a", 1]),
        "`x/1` must be a string, got 1",
    );
    let pair = json!({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}});
    fits(&pair, [json!([]), json!(["a", 1, 2])]);
    refuses(
        &pair,
        &json!(["a", "b"]),
        "`x/1` must be an integer, got the string \"b\"",
    );

    let closed = json!({"properties": {"city": {"type": "string"}}, "additionalProperties": false});
    refuses(
        &closed,
        &json!({"citty": "Oslo"}),
        "`x/citty` is not a known argument; did you mean `city`?",
    );
    refuses(&closed, &json!({"zip": 1}), "`x/zip` is not a known argument");
    let open = json!({"additionalProperties": {"type": "integer"}});
    refuses(
        &open,
        &json!({"a": 1, "b": "c"}),
        "`x/b` must be an integer, got the string \"c\"",
    );
    refuses(
        &json!({"required": ["city"]}),
        &json!({"City": 1}),
        "`x/city` is required and missing; did you mean it by `City`?",
    );
}

#[test]
fn compositions() {
    let text_or_list = json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]});
    fits(&text_or_list, [json!("a"), json!(["a"])]);
    refuses(&text_or_list, &json!([1]), "`x/0` must be a string, got 1");
    refuses(&text_or_list, &json!(1), "`x` must be string | string[], got 1");

    let shapes = json!({"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["radius"]},
        {"type": "object", "properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["side"]},
    ]});
    fits(&shapes, [json!({"kind": "circle", "radius": 1})]);
    refuses(&shapes, &json!({"kind": "square"}), "`x/side` is required and missing");
    refuses(
        &json!({"oneOf": [{"minimum": 1}, {"maximum": 5}]}),
        &json!(3),
        "`x` fits more than one of the allowed shapes, only one may fit",
    );
    refuses(
        &json!({"allOf": [{"minimum": 1}, {"maximum": 5}]}),
        &json!(6),
        "`x` must be at most 5, got 6",
    );
    refuses(
        &json!({"not": {"type": "string"}}),
        &json!("a"),
        "`x` has a value that is not allowed",
    );
}

#[test]
fn what_is_not_checked_never_turns_into_a_refusal() {
    fits(
        &json!({"type": "string", "pattern": "^a$", "format": "email"}),
        [json!("b")],
    );
    fits(&json!({"not": {"pattern": "^a$"}}), [json!("b")]);
    fits(
        &json!({"oneOf": [{"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^b"}]}),
        [json!("b")],
    );
    fits(
        &json!({"patternProperties": {"^a": {}}, "additionalProperties": false}),
        [json!({"ab": 1})],
    );
    fits(
        &json!({"minLength": -1, "required": null, "enum": null, "x-more": 1}),
        [json!("")],
    );
}

#[test]
fn references() {
    let tree = json!({
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#"}}, "name": {"$ref": "#/$defs/a%3Cb%3E~1c"}},
        "required": ["name"],
        "$defs": {"a<b>/c": {"type": "string"}},
    });
    let schema = compile(&tree);
    schema
        .check(r#"{"name": "a", "children": [{"name": "b", "children": []}]}"#)
        .unwrap();
    let error = schema
        .check(r#"{"name": "a", "children": [{"name": 1}, {}]}"#)
        .unwrap_err();
    assert_eq!(
        error.problems(),
        [
            "`children/0/name` must be a string, got 1",
            "`children/1/name` is required and missing"
        ]
    );
    let old = json!({"properties": {"a": {"$ref": "#/definitions/A"}}, "definitions": {"A": {"type": "string"}}});
    assert!(compile(&old).check(r#"{"a": 1}"#).is_err());
}

#[track_caller]
fn unusable(schema: &Value, reason: &str) {
    assert_eq!(ArgumentSchema::compile(schema).unwrap_err().to_string(), reason);
}

#[test]
fn schemas_that_cannot_be_used() {
    for outside in [
        "https://example.com/schema.json",
        "file:///etc/passwd",
        "other.json#/a",
        "#anchor",
    ] {
        unusable(
            &json!({"properties": {"a": {"$ref": outside}}}),
            &format!(
                "`$ref` \"{outside}\" leads outside the schema, which is not followed: use `#/$defs/…` and put the definition there"
            ),
        );
    }
    unusable(
        &json!({"$ref": "#/$defs/a"}),
        "`$ref` \"#/$defs/a\" leads nowhere: add the definition",
    );
    unusable(
        &json!({"type": "string"}),
        "arguments are an object, so its `type` must be `object`, not \"string\"",
    );
    unusable(&json!([]), "it must be a JSON object such as `{\"type\": \"object\"}`");
    unusable(
        &json!({"properties": {"a": 1}}),
        "a subschema must be an object or a boolean, not 1",
    );
    for (keyword, value, expected) in [
        (
            "type",
            json!("strin"),
            "one or a list of `object`, `array`, `string`, `integer`, `number`, `boolean` and `null`, not \"strin\"",
        ),
        (
            "type",
            json!(["string", "any"]),
            "one or a list of `object`, `array`, `string`, `integer`, `number`, `boolean` and `null`, not [\"string\",\"any\"]",
        ),
        ("enum", json!("a"), "a list, not \"a\""),
        ("required", json!(true), "a list of names, not true"),
        ("maxLength", json!("9"), "a number, not \"9\""),
        ("exclusiveMinimum", json!({}), "a number, not {}"),
    ] {
        let schema = json!({"properties": {"a": {keyword: value}}});
        unusable(&schema, &format!("`{keyword}` must be {expected}"));
    }
    unusable(
        &json!({"description": "x".repeat(70_000)}),
        "it is 70018 bytes long, 65536 are allowed: shorten its texts",
    );
    unusable(
        &json!({"anyOf": vec![json!({}); 2_000]}),
        "it has more than 2000 subschemas: simplify it",
    );
    let nested = |levels| (0..levels).fold(json!({}), |inner, _| json!({"properties": {"a": inner}}));
    unusable(&nested(65), "it is nested deeper than 64 levels: flatten it");
    compile(&nested(64));
    compile(&json!({}));
    compile(&json!({"type": ["object", "null"], "properties": null}));
    compile(&json!({"properties": {"a": {"minimum": 1, "exclusiveMinimum": true, "type": null, "required": null}}}));
}

/// Schemas whose validation would never end, or exhaust the stack or the memory, with arguments
/// that trigger it.
#[test]
fn a_hostile_schema_ends_in_an_error() {
    let doubled = (0..30).fold(json!({"d0": {"type": "object"}}), |mut defs, level| {
        let below = json!({"$ref": format!("#/$defs/d{level}")});
        defs[format!("d{}", level + 1)] = json!({"allOf": [below, below]});
        defs
    });
    let long_enum: Vec<_> = (0..9_000).collect();
    for (schema, arguments) in [
        (json!({"$ref": "#/$defs/d30", "$defs": doubled}), "{}".to_owned()),
        (json!({"$ref": "#"}), "{}".to_owned()),
        (json!({"anyOf": [{"not": {"$ref": "#"}}]}), "{}".to_owned()),
        (
            json!({"properties": {"a": {"items": {"enum": long_enum}}}}),
            format!("{{\"a\":[{}1]}}", "1,".repeat(100_000)),
        ),
    ] {
        let error = compile(&schema).check(&arguments).unwrap_err();
        assert_eq!(
            error.problems(),
            ["the arguments are too intricate to be checked: send fewer or simpler values"]
        );
    }
}

#[test]
fn large_arguments_are_checked_within_the_budget() {
    let schema = json!({"properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/n"}}}, "$defs": {"n": {"type": "integer"}}});
    compile(&schema)
        .check(&format!("{{\"a\":[{}1]}}", "1,".repeat(131_000)))
        .unwrap();
}

#[test]
fn the_limits_themselves_are_allowed() {
    let schema = compile(&json!({}));
    let deepest = format!("{{\"a\":{}{}}}", "[".repeat(63), "]".repeat(63));
    schema.check(&deepest).unwrap();
    let brackets_in_a_text = format!("{{\"a\":\"\\\"{}\"}}", "[".repeat(1_000));
    schema.check(&brackets_in_a_text).unwrap();
    let longest = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_ARGUMENT_BYTES - 8));
    assert_eq!(longest.len(), MAX_ARGUMENT_BYTES);
    schema.check(&longest).unwrap();
    assert!(schema.check(&format!("{longest} ")).is_err());
    assert!(schema.check(&deepest.replace("[]", "[[]]")).is_err());
}

#[test]
fn an_error_names_what_was_wrong_and_what_is_expected() {
    let schema = compile(&json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "minLength": 1},
            "days": {"type": "integer", "minimum": 1, "maximum": 14},
            "unit": {"enum": ["C", "F"]},
            "stops": {"type": "array", "items": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]}},
            "tags": {"type": ["array", "null"], "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
            "extra": {"additionalProperties": {"type": "boolean"}, "type": "object"},
        },
        "required": ["city"],
        "additionalProperties": false,
    }));
    let arguments = r#"{"citty": "Oslo", "days": 15, "unit": "K", "stops": [{"lat": 1}, {"lat": "north"}]}"#;
    let error = schema.check(arguments).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"- `city` is required and missing; did you mean it by `citty`?
- `citty` is not a known argument; did you mean `city`?
- `days` must be at most 14, got 15
- `stops/1/lat` must be a number, got the string "north"
- `unit` must be "C" | "F", got the string "K"
Expected: {"city": string (>= 1 characters), "days"?: integer (1..=14), "extra"?: {[key: string]: boolean}, "stops"?: {"lat": number}[], "tags"?: (string | integer)[] | null, "unit"?: "C" | "F"}
Call the tool again with corrected arguments."#
    );
}

#[test]
fn an_error_stays_short_and_plain() {
    let names: serde_json::Map<_, _> = (0..500)
        .map(|n| (format!("member_{n}"), json!({"type": "string"})))
        .collect();
    let schema = compile(&json!({"properties": names, "additionalProperties": false}));
    let key = "k\n\u{1b}[31m".repeat(100);
    let given: serde_json::Map<_, _> = (0..50).map(|n| (format!("{key}{n}"), json!(1))).collect();
    let error = schema.check(&Value::from(given).to_string()).unwrap_err();
    assert_eq!(error.problems().len(), 5);
    let text = error.to_string();
    assert!(text.len() < 3_500, "{} bytes", text.len());
    assert!(!text.contains('\u{1b}'));
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i16>().prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        ".{0,8}".prop_map(Value::from),
        prop::sample::select(vec![
            "string",
            "integer",
            "object",
            "array",
            "#",
            "#/properties/a",
            "#/$defs/a"
        ])
        .prop_map(Value::from),
    ];
    let keyword = prop_oneof![
        prop::sample::select(vec![
            "$ref",
            "$defs",
            "type",
            "properties",
            "required",
            "additionalProperties",
            "items",
            "prefixItems",
            "enum",
            "const",
            "anyOf",
            "oneOf",
            "allOf",
            "not",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "multipleOf",
            "minLength",
            "maxItems",
            "uniqueItems",
            "nullable",
            "a",
            "b",
        ])
        .prop_map(str::to_owned),
        ".{0,4}",
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(keyword.clone(), inner, 0..6).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A schema and a value that fits it.
fn fitting() -> impl Strategy<Value = (Value, Value)> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(|value| (json!({"type": "boolean"}), json!(value))),
        (any::<i32>(), 0..100_i64).prop_map(|(value, slack)| {
            let value = i64::from(value);
            (
                json!({"type": "integer", "minimum": value - slack, "exclusiveMaximum": value + slack + 1}),
                json!(value),
            )
        }),
        (".{0,10}", 0..4_usize).prop_map(|(text, slack)| {
            let length = text.chars().count();
            let schema =
                json!({"type": "string", "minLength": length.saturating_sub(slack), "maxLength": length + slack});
            (schema, json!(text))
        }),
        (any_json(), any_json()).prop_map(|(value, other)| (json!({"enum": [other, value]}), value)),
        any_json().prop_map(|value| (json!({"const": value}), value)),
        any_json().prop_map(|value| (json!(true), value)),
        Just((json!({"type": "string", "nullable": true}), json!(null))),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let several = vec(inner.clone(), 0..4);
        prop_oneof![
            several.prop_map(|pairs| {
                let (schemas, values): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
                let count = values.len();
                (json!({"type": "array", "prefixItems": schemas, "items": false, "minItems": count, "maxItems": count}), json!(values))
            }),
            btree_map("[a-z]{1,3}", inner.clone(), 0..4).prop_map(|pairs| {
                let names: Vec<_> = pairs.keys().cloned().collect();
                let schemas: Value = pairs.iter().map(|(name, (schema, _))| (name.clone(), schema.clone())).collect();
                let value: Value = pairs.into_iter().map(|(name, (_, value))| (name, value)).collect();
                (json!({"type": "object", "properties": schemas, "required": names, "additionalProperties": false}), value)
            }),
            (inner.clone(), inner.clone()).prop_map(|((schema, value), (other, _))| (json!({"anyOf": [other, schema]}), value)),
            inner.prop_map(|(schema, value)| (json!({"allOf": [schema, true], "oneOf": [schema, false], "not": false}), value)),
        ]
    })
}

proptest! {
    #[test]
    fn no_schema_and_no_value_panics(schema in any_json(), value in any_json()) {
        let schema = json!({"properties": {"a": schema}, "$defs": {"a": schema}});
        if let Ok(schema) = ArgumentSchema::compile(&schema) {
            let _ = schema.check(&json!({"a": value}).to_string());
            prop_assert!(schema.signature().len() < 2_000);
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC*", json in "[\\[\\]{}\",:\\\\a0 ]{0,200}") {
        let schema = compile(&json!({"properties": {"a": {"type": "array"}}}));
        let _ = (schema.check(&text), schema.check(&json), schema.check(&format!("{{{json}")));
    }

    #[test]
    fn a_value_made_for_a_schema_fits_it((schema, value) in fitting()) {
        let root = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"], "$defs": {"a": schema}});
        let schema = compile(&root);
        let checked = schema.check(&json!({"a": value}).to_string());
        prop_assert_eq!(checked.map_err(|error| error.to_string()), Ok(json!({"a": value})));
        let empty = schema.check("{}");
        prop_assert!(empty.is_err());
    }

    #[test]
    fn a_member_that_is_missing_or_too_many_is_refused(members in btree_map("[a-z]{1,5}", fitting(), 1..5), extra in "[A-Z]{1,5}") {
        let schemas: Value = members.iter().map(|(name, (schema, _))| (name.clone(), schema.clone())).collect();
        let names: Vec<_> = members.keys().cloned().collect();
        let schema = compile(&json!({"properties": schemas, "required": names, "additionalProperties": false}));
        let values: serde_json::Map<_, _> = members.into_iter().map(|(name, (_, value))| (name, value)).collect();
        prop_assert!(schema.check(&json!(values).to_string()).is_ok());
        for name in names {
            let mut fewer = values.clone();
            fewer.remove(&name);
            prop_assert!(schema.check(&json!(fewer).to_string()).is_err());
        }
        let mut more = values;
        more.insert(extra, json!(1));
        prop_assert!(schema.check(&json!(more).to_string()).is_err());
    }
}
