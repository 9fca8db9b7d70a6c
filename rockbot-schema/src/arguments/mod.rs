//! Validation of a tool call's arguments: bounded work, no network, no files, errors that the
//! model can act on.
//!
//! Schemas may come from untrusted sources, such as MCP servers, and arguments come from a model.
//! Therefore both are bounded: size and depth of the arguments, size and depth of the schema, and
//! the steps of validating one against the other.

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
pub(crate) use parse::parse;
pub use schema::SchemaError;
pub(crate) use schema::resolve;

use schema::Schema;

/// A JSON Schema, compiled for validating the arguments of one tool.
///
/// It supports `type`, `enum`, `const`, `properties`, `required`, `additionalProperties`,
/// `items`, `prefixItems`, `allOf`, `anyOf`, `oneOf`, `not`, the limits of numbers, lengths and
/// counts, `multipleOf`, `uniqueItems`, `nullable`, boolean schemas, and `$ref` within the
/// schema. All other keywords are ignored, including `pattern` and `format`: a check only refuses
/// what is certainly wrong, and the tool may still refuse more.
///
/// ```
/// use rockbot_schema::ArgumentSchema;
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
/// # Ok::<(), rockbot_schema::SchemaError>(())
/// ```
#[derive(Debug)]
pub struct ArgumentSchema(Schema);

impl ArgumentSchema {
    /// Compiles a schema of at most 64 KiB, 64 levels and 2000 subschemas.
    ///
    /// # Errors
    ///
    /// Returns an error if the schema is larger, describes something other than an object, has a
    /// `$ref` that leads outside of it or nowhere, or a keyword with a value that no provider
    /// accepts, such as `"type": "strin"`.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        Schema::compile(schema).map(Self)
    }

    /// Checks the bounds of all tools: [`MAX_ARGUMENT_BYTES`], [`MAX_ARGUMENT_DEPTH`], and that the
    /// text begins like an object. It is cheap and does not parse: the text may still be invalid
    /// JSON.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is too long, too deep, or not an object.
    pub fn check_bounds(arguments: &str) -> Result<(), ArgumentError> {
        bounds::check(arguments).map_err(ArgumentError::new)
    }

    /// Parses the arguments and validates them against the schema.
    ///
    /// # Errors
    ///
    /// Returns an error if the arguments exceed the bounds, are invalid JSON, have a member twice, do
    /// not match the schema, or need more steps to validate than are allowed.
    pub fn check(&self, arguments: &str) -> Result<Value, ArgumentError> {
        let value = bounds::check(arguments)
            .and_then(|()| parse(arguments))
            .map_err(|problem| self.explain(problem))?;
        let problems = validate::problems(&self.0, &value, arguments.len());
        if problems.is_empty() {
            return Ok(value);
        }
        Err(ArgumentError::expecting(problems, self.signature()))
    }

    /// Returns `true` if the schema has constraints that parsing the arguments as a Rust type does
    /// not check: a range, a length, a count, an enumeration. Limits that follow from `format`, such
    /// as those of `uint8`, belong to the type.
    pub fn adds_to_types(&self) -> bool {
        self.0.adds_to_types
    }

    /// Creates the error for a problem that the caller found, with the expected shape added.
    pub fn explain(&self, problem: impl Into<String>) -> ArgumentError {
        ArgumentError::expecting(vec![problem.into()], self.signature())
    }

    /// Returns the expected shape in one line, such as `{"city": string, "days"?: integer (1..=14)}`;
    /// at most about 600 bytes.
    pub fn signature(&self) -> String {
        signature::of(&self.0)
    }
}
