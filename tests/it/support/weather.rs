//! An answer with a type.

/// The weather in a place.
#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Weather {
    pub(crate) city: String,
    pub(crate) celsius: i32,
}

/// The weather in Oslo.
pub(crate) fn oslo() -> Weather {
    Weather {
        city: "Oslo".to_owned(),
        celsius: -3,
    }
}

/// The same, as a model writes it.
pub(crate) const OSLO: &str = r#"{"city":"Oslo","celsius":-3}"#;
