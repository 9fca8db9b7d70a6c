//! JSON Schemas for the calls that language models make.
//!
//! * [`ArgumentSchema`] checks the arguments of a call, in bounded work, with errors that a model
//!   can act on.
//! * [`model_schema`] is a schema as models read it best, [`StrictSchema`] as servers with strict
//!   outputs take it.
//! * [`schema_of`] is the schema of a Rust type.
//! * [`nearest_names`] suggests known names for a misspelled one.
//!
//! ```
//! use rockbot_schema::ArgumentSchema;
//! use serde_json::json;
//!
//! let schema = json!({"properties": {"city": {"type": "string"}}, "required": ["city"]});
//! let schema = ArgumentSchema::compile(&schema)?;
//! let error = schema.check(r#"{"town": "Oslo"}"#).unwrap_err();
//! assert!(error.to_string().starts_with("- `city` is required and missing"));
//! # Ok::<(), rockbot_schema::SchemaError>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod arguments;
mod doc_text;
mod model_schema;
mod rust_type;
mod suggestions;

pub use arguments::{ArgumentError, ArgumentSchema, MAX_ARGUMENT_BYTES, MAX_ARGUMENT_DEPTH, SchemaError};
pub use model_schema::{NotStrict, StrictSchema, model_schema, schema_text, without_optional_nulls};
pub use rust_type::{schema_of, unordered_schema_of};
pub use suggestions::{did_you_mean, nearest_names};
