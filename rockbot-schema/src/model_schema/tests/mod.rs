//! Tests of the schemas that models get, by their exact text.

mod strict;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde_json::{Value, json};

use super::model_schema;
use crate::{ArgumentSchema, schema_of};

#[track_caller]
fn check(schema: &Value, expected: &str) {
    assert!(ArgumentSchema::compile(schema).is_ok(), "it can be registered");
    assert_eq!(model_schema(schema), expected);
}

/// Checks a property, named `a`.
#[track_caller]
fn check_property(schema: &Value, expected: &str) {
    check(
        &json!({"type": "object", "properties": {"a": schema}}),
        &format!(r#"{{"type":"object","properties":{{"a":{expected}}}}}"#),
    );
}

#[test]
fn arguments_are_an_object_with_properties() {
    const EMPTY: &str = r#"{"type":"object","properties":{}}"#;
    #[derive(JsonSchema)]
    struct Now {}
    check(&schema_of::<Now>(), EMPTY);
    for schema in [
        json!({}),
        json!({"type": "object"}),
        json!({"type": null, "properties": null}),
        json!({"type": ["object", "null"], "required": []}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "title": "Now", "properties": {}}),
    ] {
        check(&schema, EMPTY);
    }
    check(
        &json!({"type": "object", "additionalProperties": false}),
        r#"{"type":"object","additionalProperties":false,"properties":{}}"#,
    );
}

#[test]
fn an_optional_argument_has_its_plain_type() {
    check_property(
        &json!({"type": ["string", "null"], "default": null}),
        r#"{"type":"string"}"#,
    );
    check_property(
        &json!({"type": ["integer", "string", "null"]}),
        r#"{"type":["integer","string"]}"#,
    );
    check_property(&json!({"type": ["null"]}), r#"{"type":"null"}"#);
    check_property(&json!({"type": "string", "nullable": true}), r#"{"type":"string"}"#);
    check_property(
        &json!({"type": ["string", "null"], "enum": ["x", null]}),
        r#"{"type":"string","enum":["x"]}"#,
    );
    check_property(&json!({"enum": ["x", "y", null]}), r#"{"enum":["x","y"]}"#);
    // Servers refuse an `enum` that is no list, and with it the whole request.
    check_property(
        &json!({"type": ["string"], "enum": ["x"]}),
        r#"{"type":"string","enum":["x"]}"#,
    );
    for keyword in ["anyOf", "oneOf"] {
        check_property(
            &json!({keyword: [{"type": "string", "description": "inner"}, {"type": "null"}], "description": "outer"}),
            r#"{"type":"string","description":"outer"}"#,
        );
        check_property(
            &json!({keyword: [{"type": "string"}, {"type": "integer"}, {"const": null}]}),
            &format!(r#"{{"{keyword}":[{{"type":"string"}},{{"type":"integer"}}]}}"#),
        );
    }
    check_property(
        &json!({"allOf": [{"type": "integer", "minimum": 1}], "default": 2}),
        r#"{"type":"integer","default":2,"minimum":1}"#,
    );
}

#[test]
fn a_required_argument_that_may_be_null_says_so() {
    check(
        &json!({
            "properties": {"a": {"type": ["string", "null"], "description": "A text."}, "b": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
            "required": ["a", "b"],
        }),
        r#"{"type":"object","properties":{"a":{"type":"string","description":"A text. May be null."},"b":{"type":"integer","description":"May be null."}},"required":["a","b"]}"#,
    );
}

#[test]
fn what_only_costs_tokens_is_left_out() {
    check_property(&json!({"type": "string", "default": ""}), r#"{"type":"string"}"#);
    for format in ["uint", "uint8", "int64", "float", "double"] {
        check_property(&json!({"type": "number", "format": format}), r#"{"type":"number"}"#);
    }
    check_property(
        &json!({"type": "integer", "format": "uint32", "minimum": 0, "title": "A", "$comment": "?", "default": 0}),
        r#"{"type":"integer","default":0,"minimum":0}"#,
    );
    check_property(
        &json!({"type": "string", "format": "date-time"}),
        r#"{"type":"string","format":"date-time"}"#,
    );
}

#[test]
fn names_and_values_that_look_like_keywords_stay() {
    check(
        &json!({
            "properties": {"title": {"type": "string"}, "format": {"type": "string", "default": {"title": null}}, "$ref": {"const": null}},
            "required": ["title"],
        }),
        r##"{"type":"object","properties":{"title":{"type":"string"},"$ref":{"const":null},"format":{"type":"string","default":{"title":null}}},"required":["title"]}"##,
    );
}

#[test]
fn references_are_inlined() {
    check(
        &json!({
            "properties": {
                "from": {"$ref": "#/$defs/a~1b", "description": "The start."},
                "to": {"anyOf": [{"$ref": "#/$defs/a~1b"}, {"type": "null"}], "default": null},
            },
            "$defs": {"a/b": {"type": "object", "description": "A place.", "properties": {"city": {"$ref": "#/$defs/Text"}}}, "Text": {"type": "string"}},
        }),
        concat!(
            r#"{"type":"object","properties":{"#,
            r#""from":{"type":"object","description":"The start.","properties":{"city":{"type":"string"}}},"#,
            r#""to":{"type":"object","description":"A place.","properties":{"city":{"type":"string"}}}}}"#,
        ),
    );
    check_property(
        &json!({"allOf": [{"type": "integer", "maximum": 9}], "maximum": 5}),
        r#"{"allOf":[{"type":"integer","maximum":9}],"maximum":5}"#,
    );
}

#[test]
fn recursive_references_stay_with_their_definitions() {
    #[allow(dead_code, reason = "only its schema is used")]
    #[derive(JsonSchema)]
    struct Step {
        name: String,
        then: Option<Box<Self>>,
    }
    #[allow(dead_code, reason = "only its schema is used")]
    #[derive(JsonSchema)]
    struct Plan {
        steps: Vec<Step>,
        notes: BTreeMap<String, u32>,
    }
    check(
        &schema_of::<Plan>(),
        concat!(
            r##"{"type":"object","properties":{"steps":{"type":"array","items":"##,
            r##"{"type":"object","properties":{"name":{"type":"string"},"then":{"$ref":"#/$defs/Step"}},"required":["name"]}},"##,
            r##""notes":{"type":"object","additionalProperties":{"type":"integer","minimum":0}}},"required":["steps","notes"],"##,
            r##""$defs":{"Step":{"type":"object","properties":{"name":{"type":"string"},"then":{"$ref":"#/$defs/Step"}},"required":["name"]}}}"##,
        ),
    );
    check(
        &json!({
            "properties": {"a": {"$ref": "#/definitions/A"}},
            "definitions": {"A": {"items": {"$ref": "#/definitions/B"}}, "B": {"items": {"$ref": "#/definitions/A"}}, "C": {}},
        }),
        r##"{"type":"object","properties":{"a":{"$ref":"#/definitions/A"}},"definitions":{"A":{"items":{"items":{"$ref":"#/definitions/A"}}}}}"##,
    );
    check(
        &json!({"properties": {"a": {"$ref": "#"}}}),
        r##"{"type":"object","properties":{"a":{"$ref":"#"}}}"##,
    );
}

#[test]
fn references_that_would_grow_without_bound_stay() {
    let definitions: BTreeMap<_, _> = (0..30)
        .map(|level| {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            (format!("d{level}"), json!({"properties": {"a": next, "b": next}}))
        })
        .chain([("d30".to_owned(), json!({"type": "string"}))])
        .collect();
    let schema = json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
    let text = model_schema(&schema);
    assert!(
        text.len() < schema.to_string().len() + 32,
        "it does not grow: {} bytes",
        text.len()
    );
    assert_eq!(text.matches("\"$ref\"").count(), 61);
}

#[test]
fn properties_have_the_order_of_the_fields() {
    #[allow(dead_code, reason = "only its schema is used")]
    #[derive(JsonSchema)]
    struct Search {
        query: String,
        /// The number of
        /// hits.
        limit: Option<u32>,
        area: String,
    }
    check(
        &schema_of::<Search>(),
        r#"{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","description":"The number of hits.","minimum":0},"area":{"type":"string"}},"required":["query","area"]}"#,
    );
    check(
        &json!({"properties": {"a": {}, "b": {}, "c": {}}, "required": ["c"]}),
        r#"{"type":"object","properties":{"c":{},"a":{},"b":{}},"required":["c"]}"#,
    );
}

#[test]
fn forms_of_the_arguments_become_one_object() {
    #[allow(dead_code, reason = "only its schema is used")]
    #[derive(JsonSchema)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    enum Draw {
        /// A circle.
        Circle {
            radius: f64,
        },
        Square {
            side: f64,
            color: Option<String>,
        },
    }
    check(
        &schema_of::<Draw>(),
        concat!(
            r#"{"type":"object","description":"Give one of these: `kind` \"circle\", `radius` (A circle); `kind` \"square\", `side`.","#,
            r#""properties":{"kind":{"type":"string","enum":["circle","square"]},"radius":{"type":"number"},"#,
            r#""side":{"type":"number"},"color":{"type":"string"}},"required":["kind"]}"#,
        ),
    );
    check(
        &json!({"type": "object", "properties": {"id": {"type": "string"}, "url": {"type": "string"}}, "anyOf": [{"required": ["id"]}, {"required": ["url"]}]}),
        r#"{"type":"object","description":"Give one of these: `id`; `url`.","properties":{"id":{"type":"string"},"url":{"type":"string"}}}"#,
    );
    check(
        &json!({"allOf": [
            {"properties": {"b": {"type": "string"}}, "required": ["b"]},
            {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a", "b"]},
        ]}),
        r#"{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}},"required":["b","a"]}"#,
    );
    check(
        &json!({"oneOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"type": "integer"}}}, {"type": "string"}]}),
        r#"{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}"#,
    );
}

#[test]
fn arguments_by_reference_or_of_fixed_values_become_an_object() {
    check(
        &json!({"$ref": "#/$defs/Tree", "$defs": {"Tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}}}}}),
        concat!(
            r##"{"type":"object","properties":{"left":{"$ref":"#/$defs/Tree"}},"##,
            r##""$defs":{"Tree":{"type":"object","properties":{"left":{"$ref":"#/$defs/Tree"}}}}}"##,
        ),
    );
    check(
        &json!({"type": "object", "enum": [{"a": 1}], "not": {"required": ["b"]}, "properties": {"a": {"type": "integer"}}}),
        r#"{"type":"object","properties":{"a":{"type":"integer"}}}"#,
    );
    let deep = (0..100).fold(
        json!({"type": "object", "properties": {"a": {}}}),
        |inner, _| json!({"anyOf": [inner, {"type": "object"}]}),
    );
    assert_eq!(model_schema(&deep), r#"{"type":"object","properties":{}}"#);
}
