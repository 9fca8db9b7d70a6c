//! Operations of a document, and the endpoints that they become.

use std::collections::BTreeSet;
use std::fmt;

use rockbot_core::support::one_line;
use serde_json::{Map, Value, json};

use super::schema::Schemas;
use crate::rest::endpoint::{Place, RestEndpoint};

/// The methods that an operation may have.
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// Maximum length of a tool's name.
const MAX_NAME: usize = 64;

/// Maximum length of a description, in characters.
const MAX_DESCRIPTION: usize = 400;

/// Maximum number of references that are followed from one object to the next.
const MAX_REFERENCES: usize = 8;

/// Maximum number of parameters of an operation; the rest is left out.
const MAX_PARAMETERS: usize = 128;

/// Maximum length of a path and of a parameter's name, in bytes. Longer ones are left out.
const MAX_TEXT: usize = 1_000;

/// Header fields that frame the request or name its server: a model that chooses one could speak
/// to another virtual host with the operator's credentials, or send a second request behind the
/// first.
const FRAMING_HEADERS: [&str; 8] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
];

/// The name of the argument that is the body.
const BODY: &str = "body";

/// An operation.
#[derive(Debug)]
pub(super) struct Operation<'d> {
    pub(super) method: &'static str,
    pub(super) path: &'d str,
    /// The members of the path, which hold for all of its operations.
    item: &'d Value,
    json: &'d Value,
}

/// A parameter of an operation.
struct Parameter<'d> {
    name: &'d str,
    place: &'d str,
    json: &'d Value,
}

impl Parameter<'_> {
    /// Returns `true` if the parameter is a header of [`FRAMING_HEADERS`].
    fn is_framing(&self) -> bool {
        let is_name = |header: &&str| self.name.eq_ignore_ascii_case(header);
        self.place == "header" && FRAMING_HEADERS.iter().any(is_name)
    }
}

/// Returns all operations of a document, in the order of their paths.
pub(super) fn all(document: &Value) -> Vec<Operation<'_>> {
    let paths = document.get("paths").and_then(Value::as_object).into_iter().flatten();
    // Any other text behind the URL of the server could name another server.
    let paths = paths.filter(|(path, _)| path.starts_with('/') && path.len() <= MAX_TEXT);
    let operations = paths.flat_map(|(path, item)| {
        let of_method = move |method: &&'static str| {
            let json = item.get(*method)?;
            Some(Operation {
                method,
                path,
                item,
                json,
            })
        };
        METHODS.iter().filter_map(of_method)
    });
    operations.collect()
}

/// Returns the object itself, or the object that it refers to.
pub(super) fn resolved<'d>(document: &'d Value, mut object: &'d Value) -> Option<&'d Value> {
    for _ in 0..MAX_REFERENCES {
        match object.get("$ref").and_then(Value::as_str) {
            Some(reference) => object = document.pointer(reference.strip_prefix('#')?)?,
            None => return Some(object),
        }
    }
    None
}

impl fmt::Display for Operation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method.to_ascii_uppercase(), self.path)
    }
}

impl<'d> Operation<'d> {
    pub(super) fn id(&self) -> Option<&'d str> {
        self.json.get("operationId")?.as_str()
    }

    pub(super) fn tags(&self) -> impl Iterator<Item = &'d str> {
        self.json
            .get("tags")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
    }

    /// Returns the endpoint below `base`, or `None` for an operation whose body is not JSON.
    ///
    /// # Errors
    ///
    /// Returns the name of a parameter that is a [framing header](FRAMING_HEADERS).
    pub(super) fn endpoint(
        &self,
        document: &'d Value,
        base: &str,
        names: &mut BTreeSet<String>,
    ) -> Result<Option<RestEndpoint>, &'d str> {
        let mut arguments = Arguments {
            schemas: Schemas::new(document),
            properties: Map::new(),
            required: Vec::new(),
            places: Vec::new(),
        };
        for parameter in self.parameters(document) {
            if parameter.is_framing() {
                return Err(parameter.name);
            }
            arguments.take(&parameter);
        }
        if let Some(body) = self.json.get("requestBody").and_then(|body| resolved(document, body))
            && !arguments.take_body(body)
        {
            tracing::warn!(
                method = self.method,
                path = self.path,
                "operation left out: its body is not JSON"
            );
            return Ok(None);
        }
        let Arguments {
            schemas,
            properties,
            required,
            places,
        } = arguments;
        let mut schema = json!({"type": "object", "properties": properties, "required": required});
        if let Some(definitions) = schemas.definitions() {
            schema["$defs"] = definitions;
        }
        let mut endpoint = RestEndpoint::new(self.name(names), format!("{base}{}", self.path))
            .description(self.description())
            .method(self.method)
            .parameters(schema);
        endpoint.places = places;
        Ok(Some(endpoint))
    }

    /// Returns the parameters of the operation, and the parameters of its path that it does not
    /// replace.
    fn parameters(&self, document: &'d Value) -> Vec<Parameter<'d>> {
        let of = |object: &'d Value| object.get("parameters").and_then(Value::as_array).into_iter().flatten();
        let mut parameters: Vec<Parameter<'d>> = Vec::new();
        for json in of(self.json).chain(of(self.item)) {
            if parameters.len() == MAX_PARAMETERS {
                tracing::warn!(
                    method = self.method,
                    path = self.path,
                    "operation has more than {MAX_PARAMETERS} parameters: the rest is left out"
                );
                break;
            }
            let Some(json) = resolved(document, json) else { continue };
            let text = |name: &str| json.get(name).and_then(Value::as_str).unwrap_or_default();
            let parameter = Parameter {
                name: text("name"),
                place: text("in"),
                json,
            };
            let is_known = parameters
                .iter()
                .any(|own| (own.name, own.place) == (parameter.name, parameter.place));
            let is_reserved = parameter.place == "header"
                && ["accept", "content-type", "authorization"]
                    .iter()
                    .any(|name| parameter.name.eq_ignore_ascii_case(name));
            if !is_known && !is_reserved && (1..=MAX_TEXT).contains(&parameter.name.len()) {
                parameters.push(parameter);
            }
        }
        parameters
    }

    /// Returns a name that no other tool of the document has.
    fn name(&self, names: &mut BTreeSet<String>) -> String {
        let stated = self
            .id()
            .map_or_else(|| format!("{}{}", self.method, self.path), str::to_owned);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let plain: String = stated.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        let plain = plain.trim_matches('_');
        let plain = &plain[..plain.len().min(MAX_NAME)];
        let mut name = plain.to_owned();
        for number in 2.. {
            if names.insert(name.clone()) {
                break;
            }
            let end = format!("_{number}");
            name = format!("{}{end}", &plain[..plain.len().min(MAX_NAME - end.len())]);
        }
        name
    }

    fn description(&self) -> String {
        let text = |name: &str| {
            self.json
                .get(name)
                .and_then(Value::as_str)
                .filter(|text| !text.trim().is_empty())
        };
        let stated = match (text("summary"), text("description")) {
            (Some(summary), Some(more)) if more.len() < MAX_DESCRIPTION => {
                format!("{}. {more}", summary.trim_end_matches('.'))
            }
            (Some(text), _) | (None, Some(text)) => text.to_owned(),
            (None, None) => self.to_string(),
        };
        one_line(&stated).chars().take(MAX_DESCRIPTION).collect()
    }
}

/// The arguments of a tool.
struct Arguments<'d> {
    schemas: Schemas<'d>,
    properties: Map<String, Value>,
    required: Vec<Value>,
    places: Vec<(String, Place)>,
}

impl<'d> Arguments<'d> {
    /// Takes a parameter. Cookies are the browser's.
    fn take(&mut self, parameter: &Parameter<'d>) {
        let place = match parameter.place {
            "path" => None,
            "query" => Some(Place::Query),
            "header" => Some(Place::Header(parameter.name.to_owned())),
            _ => return,
        };
        let schema = parameter.schema(&mut self.schemas);
        self.properties.insert(parameter.name.to_owned(), schema);
        if place.is_none() || parameter.json["required"] == true {
            self.required.push(parameter.name.into());
        }
        self.places
            .extend(place.map(|place| (parameter.name.to_owned(), place)));
    }

    /// Takes the body. Returns `false` if it is not JSON.
    fn take_body(&mut self, body: &'d Value) -> bool {
        let Some(schema) = json_schema_of(body) else {
            return false;
        };
        self.properties.insert(BODY.to_owned(), self.schemas.converted(schema));
        self.places.push((BODY.to_owned(), Place::Body));
        if body["required"] == true {
            self.required.push(BODY.into());
        }
        true
    }
}

impl<'d> Parameter<'d> {
    fn schema(&self, schemas: &mut Schemas<'d>) -> Value {
        let content = || self.json.get("content")?.as_object()?.values().next()?.get("schema");
        let mut schema = match self.json.get("schema").or_else(content) {
            Some(schema) => schemas.converted(schema),
            None => json!({}),
        };
        if let (Some(text), Some(members)) = (
            self.json.get("description").and_then(Value::as_str),
            schema.as_object_mut(),
        ) && !members.contains_key("$ref")
        {
            let line: String = one_line(text).chars().take(MAX_DESCRIPTION).collect();
            members.insert("description".to_owned(), line.into());
        }
        schema
    }
}

/// Returns the schema of a body in JSON.
fn json_schema_of(body: &Value) -> Option<&Value> {
    let content = body.get("content")?.as_object()?;
    let is_json = |kind: &str| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind == "application/json" || kind.ends_with("+json") || kind == "*/*"
    };
    content.iter().find(|(kind, _)| is_json(kind))?.1.get("schema")
}
