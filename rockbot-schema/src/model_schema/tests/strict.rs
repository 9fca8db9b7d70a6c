//! Tests of the strict form, by its exact text.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Value, json};

use crate::{StrictSchema, schema_of, without_optional_nulls};

#[track_caller]
fn check(schema: &Value, expected: &str) {
    assert_eq!(StrictSchema::of(schema).unwrap().text(), expected);
}

/// Checks a required property, named `a`.
#[track_caller]
fn check_property(schema: &Value, expected: &str) {
    check(
        &json!({"type": "object", "properties": {"a": schema}, "required": ["a"]}),
        &format!(
            r#"{{"type":"object","additionalProperties":false,"properties":{{"a":{expected}}},"required":["a"]}}"#
        ),
    );
}

#[track_caller]
fn check_refused(schema: &Value, expected: &str) {
    let schema = json!({"type": "object", "properties": {"b": {"type": "object", "properties": {"a": schema}}}});
    assert_eq!(StrictSchema::of(&schema).unwrap_err().to_string(), expected);
}

#[test]
fn all_properties_are_required_and_optional_ones_accept_null() {
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is needed")]
    struct Search {
        /// The words.
        words: String,
        max: Option<u32>,
        order: Option<Order>,
        #[serde(default)]
        tags: Vec<String>,
        area: Option<Area>,
    }
    #[derive(JsonSchema)]
    #[serde(rename_all = "lowercase")]
    #[expect(dead_code, reason = "only its schema is needed")]
    enum Order {
        Newest,
        Best,
    }
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is needed")]
    struct Area {
        city: String,
        km: Option<f64>,
    }
    check(
        &schema_of::<Search>(),
        concat!(
            r#"{"type":"object","additionalProperties":false,"properties":{"#,
            r#""words":{"type":"string","description":"The words."},"#,
            r#""max":{"type":["integer","null"],"minimum":0},"#,
            r#""order":{"type":["string","null"],"enum":["newest","best",null]},"#,
            r#""tags":{"type":["array","null"],"items":{"type":"string"}},"#,
            r#""area":{"type":["object","null"],"additionalProperties":false,"properties":{"#,
            r#""city":{"type":"string"},"km":{"type":["number","null"]}},"required":["city","km"]}},"#,
            r#""required":["words","max","order","tags","area"]}"#,
        ),
    );
    for schema in [json!({}), json!({"type": "object", "additionalProperties": false})] {
        check(
            &schema,
            r#"{"type":"object","additionalProperties":false,"properties":{},"required":[]}"#,
        );
    }
}

#[test]
fn what_is_required_and_accepts_null_goes_on_accepting_it() {
    check_property(&json!({"type": ["string", "null"]}), r#"{"type":["string","null"]}"#);
    check_property(
        &json!({"type": "array", "items": {"type": ["string", "null"]}}),
        r#"{"type":"array","items":{"type":["string","null"]}}"#,
    );
    check_property(
        &json!({"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}]}),
        r#"{"anyOf":[{"type":"integer"},{"type":"string"},{"type":"null"}]}"#,
    );
    check_property(
        &json!({"type": "string", "const": "x"}),
        r#"{"type":"string","const":"x"}"#,
    );
    check_property(
        &json!({"anyOf": [{"type": "string", "const": "x"}, {"type": "null"}]}),
        r#"{"anyOf":[{"type":"string","const":"x"},{"type":"null"}]}"#,
    );
}

#[test]
fn keywords_that_the_form_does_not_know_are_left_out() {
    check_property(
        &json!({"type": "string", "minLength": 1, "maxLength": 9, "format": "uri", "pattern": "^(?=a)", "default": "b", "examples": ["c"]}),
        r#"{"type":"string"}"#,
    );
    check_property(
        &json!({"type": "string", "format": "date", "pattern": "^[a-z]+$"}),
        r#"{"type":"string","format":"date","pattern":"^[a-z]+$"}"#,
    );
    check_property(
        &json!({"type": "array", "items": {"type": "integer", "minimum": 1, "exclusiveMaximum": 9}, "uniqueItems": true, "minItems": 1, "not": {"const": []}}),
        r#"{"type":"array","items":{"type":"integer","exclusiveMaximum":9,"minimum":1},"minItems":1}"#,
    );
    check_property(
        &json!({"enum": ["a", 1]}),
        r#"{"type":["string","number"],"enum":["a",1]}"#,
    );
}

#[test]
fn references_stand_alone_and_lead_to_closed_definitions() {
    let tree =
        json!({"type": "object", "properties": {"left": {"$ref": "#/definitions/Tree", "description": "Smaller."}}});
    check(
        &json!({"type": "object", "properties": {"tree": {"$ref": "#/definitions/Tree"}}, "required": ["tree"], "definitions": {"Tree": tree}}),
        concat!(
            r##"{"type":"object","additionalProperties":false,"properties":{"tree":{"$ref":"#/$defs/Tree"}},"required":["tree"],"##,
            r##""$defs":{"Tree":{"type":"object","additionalProperties":false,"properties":{"left":{"anyOf":[{"$ref":"#/$defs/Tree"},{"type":"null"}]}},"required":["left"]}}}"##,
        ),
    );
}

#[test]
fn a_schema_that_would_mean_something_else_is_refused() {
    for (schema, reason) in [
        (json!({}), "accepts any value"),
        (json!(true), "accepts any value"),
        (json!({"type": "object"}), "accepts properties of any name"),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            "accepts properties of any name",
        ),
        (
            json!({"type": "object", "properties": {}, "patternProperties": {"^x": {"type": "string"}}}),
            "accepts properties of any name",
        ),
        (json!({"type": "array"}), "is a list whose items have no single schema"),
        (
            json!({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "string"}}),
            "is a list whose items have no single schema",
        ),
        (
            json!({"allOf": [{"type": "string", "minLength": 1}, {"type": "string", "minLength": 2}]}),
            "combines several schemas",
        ),
        (
            json!({"type": "object", "properties": {"x": {"type": "string"}}, "anyOf": [{"required": ["x"]}, {"required": ["y"]}]}),
            "combines alternatives with other constraints",
        ),
        (
            json!({"type": "integer", "enum": (0..1001).collect::<Vec<_>>()}),
            "lists too many values",
        ),
    ] {
        check_refused(&schema, &format!("the argument `b.a` {reason}"));
    }
    let deep = (0..12).fold(
        json!({"type": "string"}),
        |items, _| json!({"type": "array", "items": items}),
    );
    check_refused(&deep, "the argument `b.a` is nested too deep");
    let open = json!({"type": "object", "additionalProperties": true});
    let error = StrictSchema::of(&open).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the schema as a whole accepts properties of any name"
    );
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is needed")]
    struct Labels {
        labels: BTreeMap<String, String>,
    }
    let error = StrictSchema::of(&schema_of::<Labels>()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the argument `labels` accepts properties of any name"
    );
}

#[test]
fn nulls_of_optional_arguments_that_do_not_accept_them_are_left_out_of_calls() {
    let area = json!({"type": "object", "properties": {"km": {"type": "number"}, "city": {"type": "string"}}, "required": ["city"]});
    let schema = json!({
        "type": "object",
        "properties": {
            "days": {"type": "integer"},
            "note": {"type": ["string", "null"]},
            "areas": {"type": "array", "items": {"anyOf": [area, {"type": "string"}]}},
            "must": {"type": "string"},
            "next": {"$ref": "#"},
        },
        "required": ["must"],
    });
    StrictSchema::of(&schema).unwrap();
    let check = |given: Value, expected: Option<Value>| {
        let left = without_optional_nulls(&schema, &given.to_string());
        assert_eq!(left, expected.map(|value| value.to_string()));
    };
    check(
        json!({"days": null, "note": null, "areas": [{"km": null, "city": "Oslo"}, "x"], "must": null, "next": {"days": null, "must": "a"}}),
        Some(json!({"note": null, "areas": [{"city": "Oslo"}, "x"], "must": null, "next": {"must": "a"}})),
    );
    check(json!({"days": 1, "note": null, "areas": [], "must": "null"}), None);
    assert_eq!(without_optional_nulls(&schema, "{\"days\": null"), None);
}

#[test]
fn nulls_of_arguments_that_accept_anything_stay() {
    let anything = json!({"type": "object", "properties": {
        "a": {}, "b": {"description": "Anything."}, "c": true, "d": {"enum": ["x", null]}, "e": {"type": "string"},
        "f": {"anyOf": [{"type": "object", "properties": {"g": {"type": "string"}}}, {"type": "integer"}]},
    }});
    let given = json!({"a": null, "b": null, "c": null, "d": null, "e": null, "f": {"g": null, "h": null}});
    let left = without_optional_nulls(&anything, &given.to_string()).unwrap();
    let left: Value = serde_json::from_str(&left).unwrap();
    assert_eq!(
        left,
        json!({"a": null, "b": null, "c": null, "d": null, "f": {"h": null}})
    );
}
