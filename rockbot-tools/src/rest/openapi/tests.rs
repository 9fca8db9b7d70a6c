use rockbot_core::testing::Mutations;
use serde_json::json;

use super::*;
use crate::rest::endpoint::Place;

/// A document with what real ones have: references, shared parameters, version 3.0's `nullable`,
/// several methods.
const SHOP: &str = include_str!("testdata/shop.json");

fn endpoints(import: &OpenApi) -> Result<Vec<RestEndpoint>, OpenApiError> {
    import.endpoints(&import.load(&EgressPolicy::new())?)
}

fn names(import: &OpenApi) -> Vec<String> {
    endpoints(import)
        .unwrap()
        .iter()
        .map(|endpoint| format!("{} {}", endpoint.name, endpoint.url_template))
        .collect()
}

#[test]
fn each_operation_becomes_an_endpoint() {
    assert_eq!(
        names(&OpenApi::text(SHOP)),
        [
            "listOrders https://shop.example/v1/orders",
            "createOrder https://shop.example/v1/orders",
            "get_orders__id https://shop.example/v1/orders/{id}",
            "deleteOrder https://shop.example/v1/orders/{id}",
            "listProducts https://shop.example/v1/products",
        ]
    );
    let all = endpoints(&OpenApi::text(SHOP)).unwrap();
    let list = &all[0];
    assert_eq!(list.description, "List orders. The newest first.");
    assert_eq!(
        list.parameters,
        json!({"type": "object", "properties": {
            "X-Tenant": {"type": "string", "description": "The tenant."},
            "status": {"type": "array", "items": {"$ref": "#/$defs/Status"}},
        }, "required": ["X-Tenant"], "$defs": {"Status": {"type": "string", "enum": ["open", "done"]}}})
    );
    let placed = [("status", Place::Query), ("X-Tenant", Place::Header("X-Tenant".into()))];
    assert_eq!(list.places, placed.map(|(name, place)| (name.to_owned(), place)));
    let create = &all[1];
    assert_eq!(create.parameters["required"], json!(["X-Tenant", "body"]));
    assert_eq!(
        create.parameters["properties"]["body"],
        json!({"$ref": "#/$defs/Order"})
    );
    assert_eq!(
        create.parameters["$defs"]["Order"],
        json!({"type": "object", "required": ["product"], "properties": {
            "product": {"type": "string"},
            "note": {"type": ["string", "null"]},
            "parent": {"$ref": "#/$defs/Order"},
        }})
    );
}

#[test]
fn filters_name_operations_paths_and_tags() {
    let count = |pattern: &str| names(&OpenApi::text(SHOP).include(pattern)).len();
    assert_eq!(
        (
            count("listOrders"),
            count("list*"),
            count("tag:orders"),
            count("GET /orders*"),
            count("/products")
        ),
        (1, 2, 4, 2, 1)
    );
    let import = OpenApi::text(SHOP)
        .include("listOrders")
        .include("tag:products")
        .server("https://other.example/");
    assert_eq!(
        names(&import),
        [
            "listOrders https://other.example/orders",
            "listProducts https://other.example/products"
        ]
    );
    let error = endpoints(&OpenApi::text(SHOP).include("nothing"))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "`nothing` includes no operation of `the given text`: write an operationId, `GET /path*` or `tag:name`"
    );
}

#[test]
fn what_is_not_openapi_is_refused_with_the_reason() {
    let told = |text: &str| endpoints(&OpenApi::text(text)).unwrap_err().to_string();
    let start = "`the given text` is not an OpenAPI document of version 3.0 or 3.1: ";
    assert_eq!(told("{\"openapi\": }"), format!("{start}no JSON at line 1 column 13"));
    assert!(told("openapi: [3").starts_with(&format!("{start}no YAML: ")));
    assert_eq!(
        told("openapi: 3.0.0"),
        "`the given text` names no server with an absolute URL: set one"
    );
    assert_eq!(
        told(r#"{"swagger": "2.0"}"#),
        format!("{start}its version is none (it is Swagger 2.0: convert it)")
    );
    assert_eq!(told(r#"{"openapi": "4.0.0"}"#), format!("{start}its version is 4.0.0"));
    assert_eq!(
        told(r#"{"openapi": "3.1.0", "paths": {}}"#),
        "`the given text` names no server with an absolute URL: set one"
    );
    let paths: serde_json::Map<_, _> = (0..200).map(|n| (format!("/{n}"), json!({"get": {}}))).collect();
    let many = json!({"openapi": "3.1.0", "servers": [{"url": "https://e.org"}], "paths": paths}).to_string();
    assert_eq!(
        told(&many),
        "`the given text` has 200 operations, and a model can choose among 128 at most: include fewer"
    );
    let missing = endpoints(&OpenApi::file("/nowhere/shop.json")).unwrap_err().to_string();
    assert!(
        missing.starts_with("the OpenAPI document `/nowhere/shop.json` cannot be read: "),
        "{missing}"
    );
}

#[test]
fn a_path_names_no_other_server() {
    let text = json!({"openapi": "3.1.0", "servers": [{"url": "https://api.example"}], "paths": {
        ".evil.test/a": {"get": {}}, "@evil.test/b": {"get": {}}, ":81/c": {"get": {}}, "//evil.test/d": {"get": {}}}});
    assert_eq!(
        names(&OpenApi::text(text.to_string())),
        ["get__evil_test_d https://api.example//evil.test/d"]
    );
}

#[test]
fn references_in_circles_and_deep_schemas_end() {
    let deep = (0..60).fold(
        json!({"type": "string"}),
        |schema, _| json!({"type": "array", "items": schema}),
    );
    let text = json!({"openapi": "3.0.3", "servers": [{"url": "https://e.org"}], "paths": {"/a": {"get": {"parameters": [
        {"$ref": "#/components/parameters/A"}, {"name": "deep", "in": "query", "schema": deep},
        {"name": "own", "in": "query", "schema": {"$ref": "#/components/schemas/Own"}}]}}},
        "components": {"parameters": {"A": {"$ref": "#/components/parameters/A"}},
            "schemas": {"Own": {"allOf": [{"$ref": "#/components/schemas/Own"}]}}}});
    let all = endpoints(&OpenApi::text(text.to_string())).unwrap();
    assert_eq!(
        all[0].parameters["$defs"]["Own"],
        json!({"allOf": [{"$ref": "#/$defs/Own"}]})
    );
    assert!(all[0].parameters["properties"]["deep"].to_string().len() < 1_000);
}

#[test]
fn read_only_properties_are_not_required_and_all_schemas_are_converted() {
    let own = json!({"$ref": "#/components/schemas/Own"});
    let body = json!({"required": ["id", "name"], "properties": {"id": {"readOnly": true}, "name": {}},
        "if": own, "then": own, "else": own, "contains": own, "dependentSchemas": {"name": own}});
    let text = json!({"openapi": "3.1.0", "servers": [{"url": "https://e.org"}], "paths": {"/a": {"post": {
        "requestBody": {"content": {"application/json": {"schema": body}}}}}},
        "components": {"schemas": {"Own": {"type": "object"}}}});
    let all = endpoints(&OpenApi::text(text.to_string())).unwrap();
    let own = json!({"$ref": "#/$defs/Own"});
    assert_eq!(
        all[0].parameters["properties"]["body"],
        json!({"required": ["name"], "properties": {"name": {}}, "if": own, "then": own, "else": own, "contains": own,
            "dependentSchemas": {"name": own}})
    );
}

#[test]
fn a_document_in_yaml_is_the_same() {
    let shop: Value = serde_json::from_str(SHOP).unwrap();
    let yaml = include_str!("testdata/shop.yaml");
    assert_eq!(
        names(&OpenApi::text(yaml)),
        ["on https://e.org/a", "delete_a https://e.org/a"]
    );
    let all = endpoints(&OpenApi::text(yaml).include("tag:no")).unwrap();
    assert_eq!(all[0].parameters["properties"]["limit"]["maximum"], 16);
    // JSON is YAML, too: the same document behind a comment.
    let commented = format!("# JSON\n{}", serde_json::to_string_pretty(&shop).unwrap());
    assert_eq!(names(&OpenApi::text(commented)), names(&OpenApi::text(SHOP)));
}

#[test]
fn hostile_yaml_is_refused() {
    let bomb: String = (1..12).fold("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, n| {
        let aliases = vec![format!("*a{}", n - 1); 9].join(", ");
        format!("{text}a{n}: &a{n} [{aliases}]\n")
    });
    let deep = format!("a: {}", "[".repeat(100_000));
    let long = format!("a: {}", "x".repeat(1 << 20));
    for text in [
        bomb,
        deep,
        long,
        "--- a\n".repeat(100_000),
        "a: !!binary x\n? [b]\n: c".to_owned(),
        "\u{0}".repeat(1 << 20),
    ] {
        let told = endpoints(&OpenApi::text(text.as_str())).unwrap_err().to_string();
        assert!(told.len() < 400, "{}", told.len());
    }
}

#[test]
fn a_document_that_is_too_large_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.json");
    let of_size = |size: usize| format!("{SHOP}{}", " ".repeat(size - SHOP.len()));
    let told = |import: OpenApi| {
        endpoints(&import)
            .map(|all| all.len())
            .map_err(|error| error.to_string())
    };
    let refused = |name: &str| {
        format!(
            "the OpenAPI document `{name}` is larger than 16777216 bytes: leave out operations that no tool is made of"
        )
    };
    for (size, file, text) in [
        (16 << 20, Ok(5), Ok(5)),
        (
            (16 << 20) + 1,
            Err(refused(&path.display().to_string())),
            Err(refused("the given text")),
        ),
    ] {
        std::fs::write(&path, of_size(size)).unwrap();
        assert_eq!(told(OpenApi::file(&path)), file);
        assert_eq!(told(OpenApi::text(of_size(size))), text);
    }
}

/// The work of a refusal grows with the nodes that aliases add, so a document is refused at the
/// first too many.
#[test]
fn aliases_in_yaml_add_a_bounded_number_of_nodes() {
    let with = |words: usize| {
        let shared = format!("&shared [{}]", vec!["word"; words].join(", "));
        let list = format!("[{shared}{}]", ", *shared".repeat(99));
        let start = "openapi: 3.1.0\nservers: [{url: https://e.org}]\npaths: {/a: {get: {}}}";
        endpoints(&OpenApi::text(format!("{start}\nx-lists: {list}"))).map_err(|error| error.to_string())
    };
    assert_eq!(with(1_000).map(|all| all.len()), Ok(1));
    let told = with(2_000).unwrap_err();
    assert!(told.contains("alias replay limit exceeded"), "{told}");
}

#[test]
fn mutated_documents_are_imported_or_refused() {
    Mutations::of([SHOP, include_str!("testdata/shop.yaml")]).check_text(|text| {
        match endpoints(&OpenApi::text(text)) {
            Ok(endpoints) => {
                for endpoint in endpoints {
                    let schema = endpoint.parameters.to_string();
                    assert!(schema.len() <= 16 * text.len() + 1_000, "{}", schema.len());
                    assert!(endpoint.name.as_str().len() <= 64 && endpoint.description.chars().count() <= 400);
                }
            }
            Err(error) => assert!(error.to_string().len() <= 3_000, "{error}"),
        }
    });
}

#[test]
fn the_variables_of_a_server_are_texts() {
    let base = |server: Value| {
        let text = json!({"openapi": "3.1.0", "servers": [server], "paths": {"/p": {"get": {}}}}).to_string();
        endpoints(&OpenApi::text(text))
            .map(|endpoints| endpoints[0].url_template.clone())
            .map_err(|error| error.to_string())
    };
    let variables =
        json!({"a": {"default": "x{b}"}, "b": {"default": "y"}, "c": {}, "d": {"default": "{d}{d}".repeat(500)}});
    let server = |url: &str| json!({"url": url, "variables": variables});
    assert_eq!(
        base(server("https://e.org/{b}/{b}")),
        Ok("https://e.org/y/y/p".to_owned())
    );
    // A default that looks like a variable is none, and a variable without a default stays.
    assert_eq!(
        base(server("https://e.org/{a}/{c}/{e")),
        Ok("https://e.org/x%7Bb%7D/%7Bc%7D/%7Be/p".to_owned())
    );
    let none = "`the given text` names no server with an absolute URL: set one";
    assert_eq!(base(server("https://e.org/{d}")), Err(none.to_owned()));
}

/// The documents that `ROCKBOT_TEST_OPENAPI` names, separated by colons: public ones, which are
/// kept out of the repository.
#[test]
fn public_documents_are_imported() {
    let Some(paths) = std::env::var_os("ROCKBOT_TEST_OPENAPI") else {
        println!("SKIPPED: ROCKBOT_TEST_OPENAPI names no documents");
        return;
    };
    for path in std::env::split_paths(&paths) {
        let import = OpenApi::file(&path).server("https://api.example");
        let document = import.load(&EgressPolicy::new()).unwrap();
        let operations = operation::all(&document.json);
        let client = EgressClient::new(EgressPolicy::new()).unwrap();
        let mut names = BTreeSet::new();
        let mut sizes = Vec::new();
        let mut left_out = 0;
        for operation in &operations {
            match operation
                .endpoint(&document.json, "https://api.example", &mut names)
                .unwrap()
            {
                Some(endpoint) => {
                    let tool = crate::rest::executor::tool(endpoint, client.clone()).unwrap();
                    sizes.push(tool.registration.parameters_schema.to_string().len());
                }
                None => left_out += 1,
            }
        }
        sizes.sort_unstable();
        let at = |share: usize| sizes[(sizes.len() - 1) * share / 100];
        println!(
            "{}: {} operations, {} tools, {left_out} without a JSON body; bytes of a schema: median {}, 99 % {}, largest {}",
            path.display(),
            operations.len(),
            sizes.len(),
            at(50),
            at(99),
            at(100),
        );
        assert_eq!(sizes.len() + left_out, operations.len());
        assert!(operations.len() > 30 && left_out * 10 < operations.len(), "{left_out}");
    }
}
