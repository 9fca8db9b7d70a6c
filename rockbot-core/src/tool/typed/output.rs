//! The values that a tool may return.

use serde::Serialize;

use crate::BoxError;
use crate::content::{Content, ContentPart};
use crate::tool::ToolError;

/// A value that a tool may return: text, a number, a `bool`, [`JsonOutput`], [`Content`] with
/// images and files, or a `Result` of such a value. `()` reads `done`.
///
/// ```
/// use rockbot_core::content::{Content, MediaPart};
/// use rockbot_core::tool::tool;
///
/// /// Plots the temperatures of a week.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Plot {}
///
/// let plot = tool("plot", |_: Plot| async {
///     let png: Vec<u8> = vec![0; 900];
///     Content::from("The plot:").with_image(MediaPart::bytes("image/png", png))
/// });
/// ```
///
/// Implement it for a type of your own that several tools return, to say once how the model reads
/// it:
///
/// ```
/// use rockbot_core::content::Content;
/// use rockbot_core::tool::{IntoToolOutput, ToolError, tool};
///
/// struct Weather { city: String, celsius: f32 }
///
/// impl IntoToolOutput for Weather {
///     fn into_tool_output(self) -> Result<Content, ToolError> {
///         Ok(format!("{} °C in {}", self.celsius, self.city).into())
///     }
/// }
///
/// /// Tells the weather of a city.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct AskWeather { city: String }
///
/// let ask = |AskWeather { city }| async move { Weather { city, celsius: 21.5 } };
/// let weather = tool("ask_weather", ask).pure();
/// # assert_eq!(weather.registration.name.as_str(), "ask_weather");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool's output",
    label = "the model cannot read `{Self}`",
    note = "return text, a number, `JsonOutput(value)`, `Content`, or a `Result` of these"
)]
pub trait IntoToolOutput {
    /// Converts the value into the content that the model reads.
    ///
    /// # Errors
    ///
    /// Returns an error if the tool failed. Its message is for the model.
    fn into_tool_output(self) -> Result<Content, ToolError>;
}

impl IntoToolOutput for String {
    #[inline]
    fn into_tool_output(self) -> Result<Content, ToolError> {
        Ok(self.into())
    }
}

impl IntoToolOutput for &'static str {
    fn into_tool_output(self) -> Result<Content, ToolError> {
        Ok(self.into())
    }
}

impl IntoToolOutput for Content {
    fn into_tool_output(self) -> Result<Content, ToolError> {
        Ok(self)
    }
}

impl IntoToolOutput for ContentPart {
    fn into_tool_output(self) -> Result<Content, ToolError> {
        Ok(self.into())
    }
}

impl IntoToolOutput for () {
    fn into_tool_output(self) -> Result<Content, ToolError> {
        Ok("done".into())
    }
}

macro_rules! output_as_displayed {
    ($($type:ty)*) => {$(
        impl IntoToolOutput for $type {
            fn into_tool_output(self) -> Result<Content, ToolError> {
                Ok(self.to_string().into())
            }
        }
    )*};
}

output_as_displayed!(bool i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize f32 f64);

impl<T: IntoToolOutput, E: Into<BoxError>> IntoToolOutput for Result<T, E> {
    fn into_tool_output(self) -> Result<Content, ToolError> {
        self.map_err(|error| ToolError::from(error.into()))?.into_tool_output()
    }
}

/// A tool's output that the model reads as JSON.
///
/// ```
/// use rockbot_core::tool::{IntoToolOutput as _, JsonOutput};
///
/// assert_eq!(JsonOutput([1, 2]).into_tool_output()?, "[1,2]");
/// # Ok::<(), rockbot_core::tool::ToolError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonOutput<T>(pub T);

impl<T: Serialize> IntoToolOutput for JsonOutput<T> {
    fn into_tool_output(self) -> Result<Content, ToolError> {
        serde_json::to_string(&self.0).map(Content::from).map_err(|error| {
            ToolError::execution_failed("the tool's output cannot be written as JSON").with_source(error)
        })
    }
}
