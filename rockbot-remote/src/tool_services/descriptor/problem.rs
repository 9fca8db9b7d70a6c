//! A defect of a descriptor, with its place.

use std::fmt;

use rockbot_core::support::loggable;

/// A defect of one descriptor: its place, the field, and the remedy. Other descriptors are not
/// concerned.
///
/// ```
/// use rockbot_remote::tool_services::DescriptorFolder;
///
/// let folder = DescriptorFolder::new("descriptors");
/// let problem = folder.put("tool/tell-joke", r#"{ "type": "tool-service" }"#).unwrap_err();
/// assert_eq!(problem.to_string(), "`tool/tell-joke`: field `name` is missing: set it to a text");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct DescriptorProblem {
    /// The file, or the key and the program that announced it.
    pub place: String,
    /// The field, such as `arguments[1].name`. `None` if the defect concerns the whole descriptor.
    pub field: Option<String>,
    /// The defect, and the remedy.
    pub message: String,
    /// `true` if the descriptor is not used because of it, `false` for a hint.
    pub is_fatal: bool,
}

impl DescriptorProblem {
    /// Creates a defect of a whole descriptor, which is not used.
    pub(in crate::tool_services) fn new(place: &str, message: impl Into<String>) -> Self {
        Self {
            place: place.to_owned(),
            field: None,
            message: message.into(),
            is_fatal: true,
        }
    }

    /// Creates a defect of one field. The descriptor is not used.
    pub(in crate::tool_services) fn in_field(
        place: &str,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            field: Some(field.into()),
            ..Self::new(place, message)
        }
    }

    /// Makes it a hint: the descriptor is used.
    pub(in crate::tool_services) fn hint(self) -> Self {
        Self {
            is_fatal: false,
            ..self
        }
    }
}

impl fmt::Display for DescriptorProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: ", loggable(&self.place))?;
        if let Some(field) = &self.field {
            write!(f, "field `{}` ", loggable(field))?;
        }
        write!(f, "{}", loggable(&self.message))
    }
}

impl std::error::Error for DescriptorProblem {}
