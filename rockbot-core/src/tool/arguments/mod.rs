//! Checking the arguments of a tool call: bounded, without network or files, with errors that teach.
//!
//! Schemas may come from strangers, such as MCP servers, and arguments come from a model. So both are bounded:
//! size and depth of the arguments, size and depth of the schema, and the work of checking one against the
//! other.

mod bounds;
mod error;
mod kind;
mod limits;
mod parse;
mod schema;
mod signature;
#[cfg(test)]
mod tests;
mod validate;

use serde_json::Value;

pub use bounds::{MAX_ARGUMENT_BYTES, MAX_ARGUMENT_DEPTH};
pub use error::ArgumentError;
pub use schema::SchemaError;

use schema::Schema;

/// A JSON Schema, compiled for checking the arguments of one tool.
///
/// Understood are `type`, `enum`, `const`, `properties`, `required`, `additionalProperties`, `items`,
/// `prefixItems`, `allOf`, `anyOf`, `oneOf`, `not`, the limits of numbers, lengths and counts, `multipleOf`,
/// `uniqueItems`, `nullable`, boolean schemas, and `$ref` within the schema. Everything else is ignored, among it
/// `pattern` and `format`; so a check refuses only what is surely wrong, and the tool may still refuse more.
///
/// ```
/// use rockbot_core::tool::ArgumentSchema;
/// use serde_json::json;
///
/// let schema = ArgumentSchema::compile(&json!({
///     "type": "object",
///     "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 14}},
///     "required": ["city"],
/// }))?;
/// assert_eq!(schema.check(r#"{"city": "Oslo"}"#).unwrap(), json!({"city": "Oslo"}));
///
/// let error = schema.check(r#"{"days": "three"}"#).unwrap_err();
/// assert_eq!(error.to_string(), "\
/// - `city` is required and missing
/// - `days` must be an integer, got the string \"three\"
/// Expected: {\"city\": string, \"days\"?: integer (1..=14)}
/// Call the tool again with corrected arguments.");
/// # Ok::<(), rockbot_core::tool::SchemaError>(())
/// ```
#[derive(Debug)]
pub struct ArgumentSchema(Schema);

impl ArgumentSchema {
    /// Compiles a schema of at most 64 KiB, 64 levels and 2000 subschemas.
    ///
    /// # Errors
    ///
    /// Fails when the schema is larger, describes something else than an object, or has a `$ref` that leads
    /// outside or nowhere.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        Schema::compile(schema).map(Self)
    }

    /// Checks what holds for every tool: [`MAX_ARGUMENT_BYTES`], [`MAX_ARGUMENT_DEPTH`], and that the text
    /// begins like an object. Cheap; it does not say that the text is valid JSON.
    ///
    /// # Errors
    ///
    /// Fails when the text is too long, too deep or no object.
    pub fn check_bounds(arguments: &str) -> Result<(), ArgumentError> {
        bounds::check(arguments).map_err(ArgumentError::new)
    }

    /// Parses the arguments and checks them against the schema.
    ///
    /// # Errors
    ///
    /// Fails when they exceed the bounds, are not valid JSON, give a member twice, do not fit the schema, or when
    /// finding that out takes too long.
    pub fn check(&self, arguments: &str) -> Result<Value, ArgumentError> {
        let value = bounds::check(arguments)
            .and_then(|()| parse::parse(arguments))
            .map_err(|problem| self.explain(problem))?;
        let problems = validate::problems(&self.0, &value, arguments.len());
        if problems.is_empty() {
            return Ok(value);
        }
        Err(ArgumentError::expecting(problems, self.signature()))
    }

    /// Whether the schema says something that parsing the arguments as a Rust type does not check: a range, a length,
    /// a count, the values to choose from. Limits that follow from `format`, such as those of `uint8`, are the
    /// type's own.
    pub fn adds_to_types(&self) -> bool {
        self.0.adds_to_types
    }

    /// The error for a problem that somebody else found, with the expected shape added.
    pub fn explain(&self, problem: impl Into<String>) -> ArgumentError {
        ArgumentError::expecting(vec![problem.into()], self.signature())
    }

    /// The expected shape in one line, such as `{"city": string, "days"?: integer (1..=14)}`; at most about 600
    /// bytes.
    pub fn signature(&self) -> String {
        signature::of(&self.0)
    }
}
