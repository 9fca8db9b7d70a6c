//! Settings of models, as sections of tiers and of models hold them.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::{ConfigError, FromSetting, Section, Setting, Value};
use crate::chat::{ModelSettings, OutputMode, ReasoningEffort};

impl Section<'_> {
    /// Returns the [`ModelSettings`] in this section.
    ///
    /// | setting | value |
    /// |---|---|
    /// | `Temperature` | a number of at least 0; 0 is the most deterministic |
    /// | `TopP` | a number above 0 and at most 1 |
    /// | `MaxOutputTokens` | the maximum length of an answer, at least 1 |
    /// | `Seed` | a whole number |
    /// | `StopSequences` | a list of texts, or one text |
    /// | `ReasoningEffort` | `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`, or a level of the provider's own |
    /// | `ParallelToolCalls` | `false` for at most one tool call with each answer |
    /// | `StrictTools` | `true` to let the server sample only calls that match the schemas of the tools |
    /// | `Images` | `false` for a model that takes no images and files: it reads their descriptions |
    /// | `ExtraBody` | a section of members that are added to the body of requests, or a text with a JSON object |
    /// | `ExtraHeaders` | a section of headers that are added to requests |
    ///
    /// A tool choice is no setting: it belongs to a request.
    ///
    /// ```
    /// use rockbot_core::config::Config;
    ///
    /// let config = Config::new().with_text("agent.json", r#"{ "LLM": { "High": {
    ///     "Temperature": 0.2, "ReasoningEffort": "high", "ExtraBody": { "verbosity": "low" }
    /// } } }"#)?;
    /// let settings = config.section("LLM")?.section("High")?.model_settings()?;
    /// assert_eq!(settings.temperature, Some(0.2));
    /// assert_eq!(settings.extra_body["verbosity"], "low");
    /// # Ok::<_, rockbot_core::config::ConfigError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if a setting has a value that no model takes.
    pub fn model_settings(&self) -> Result<ModelSettings, ConfigError> {
        let mut settings = ModelSettings::new();
        settings.temperature = self.get::<Number<0>>("Temperature")?.map(|number| number.0);
        settings.top_p = self.get::<Number<1>>("TopP")?.map(|number| number.0);
        settings.max_output_tokens = self.get::<std::num::NonZeroU32>("MaxOutputTokens")?.map(Into::into);
        settings.seed = self.get("Seed")?;
        settings.stop_sequences = self
            .get::<Texts>("StopSequences")?
            .map(|texts| texts.0)
            .unwrap_or_default();
        settings.reasoning_effort = self.get::<String>("ReasoningEffort")?.map(ReasoningEffort::from);
        settings.parallel_tool_calls = self.get("ParallelToolCalls")?;
        settings.strict_tools = self.get("StrictTools")?;
        settings.images = self.get("Images")?;
        settings.extra_body = self.extra_body()?;
        self.read_extra_headers(&mut settings)?;
        Ok(settings)
    }

    fn extra_body(&self) -> Result<BTreeMap<String, Json>, ConfigError> {
        match self.setting("ExtraBody") {
            Some(setting) if !matches!(setting.value, Value::Section) => Ok(setting.read::<JsonObject>()?.0),
            _ => self.section("ExtraBody")?.members(),
        }
    }

    /// Returns this section as the members of a JSON object, with the names as they are written.
    fn members(&self) -> Result<BTreeMap<String, Json>, ConfigError> {
        let mut members = BTreeMap::new();
        let first = self.setting("0");
        if let Some(item) = first.filter(|item| matches!(item.value, Value::Section)) {
            // A list of objects is a section of positions by now: a server would get an object in its place.
            return Err(item.invalid("lists without objects; write `ExtraBody` as JSON text"));
        }
        for name in self.names() {
            let Some(setting) = self.setting(&name) else {
                // Only variables set something below this name.
                members.insert(
                    name.clone(),
                    Json::Object(self.section(&name)?.members()?.into_iter().collect()),
                );
                continue;
            };
            let value = match setting.value {
                Value::Section => Json::Object(self.section(&name)?.members()?.into_iter().collect()),
                ref value => json(value).ok_or_else(|| {
                    setting.invalid("a value that JSON has, without objects in lists; write `ExtraBody` as JSON text")
                })?,
            };
            members.insert(written(setting, &name), value);
        }
        Ok(members)
    }

    fn read_extra_headers(&self, settings: &mut ModelSettings) -> Result<(), ConfigError> {
        let section = self.section("ExtraHeaders")?;
        for name in section.names() {
            let Some(setting) = section.setting(&name) else {
                continue;
            };
            let header = ModelSettings::new().with_extra_header(name, setting.read::<String>()?);
            header.check().map_err(|error| setting.invalid(error.expected()))?;
            settings.extra_headers.extend(header.extra_headers);
        }
        Ok(())
    }
}

/// Returns the last name of a setting in the spelling of its file. Variables are not
/// case-sensitive.
fn written(setting: &Setting, name: &str) -> String {
    let own = match &setting.origin {
        super::setting::Origin::File { key, .. } => key.get(key.len().saturating_sub(name.len())..),
        super::setting::Origin::Variable { .. } => None,
    };
    own.unwrap_or(name).to_owned()
}

fn json(value: &Value) -> Option<Json> {
    match value {
        Value::Text(_) => value.as_text().map(Json::from),
        Value::Number(number) => serde_json::from_str(number).ok(),
        Value::Flag(flag) => Some((*flag).into()),
        Value::List(values) => values.iter().map(json).collect::<Option<Vec<_>>>().map(Json::Array),
        _ => None,
    }
}

/// A number of at least 0, or with `UNIT` = 1 one above 0 and at most 1.
struct Number<const UNIT: u8>(f32);

impl<const UNIT: u8> FromSetting for Number<UNIT> {
    const EXPECTED: &'static str = match UNIT {
        0 => "a number of at least 0",
        _ => "a number above 0 and at most 1",
    };

    fn from_value(value: &Value) -> Option<Self> {
        let number: f32 = value.as_number()?.trim().parse().ok()?;
        let checked = match UNIT {
            0 => ModelSettings::new().with_temperature(number),
            _ => ModelSettings::new().with_top_p(number),
        };
        checked.check().ok().map(|()| Self(number))
    }
}

/// One text, or a list of texts, none of them empty.
struct Texts(Vec<String>);

impl FromSetting for OutputMode {
    const EXPECTED: &'static str = "`auto`, `native`, `tool` or `prompt`";

    fn from_value(value: &Value) -> Option<Self> {
        Self::named(value.as_text()?)
    }
}

impl FromSetting for Texts {
    const EXPECTED: &'static str = "a text, or a list of texts that are not empty";

    fn from_value(value: &Value) -> Option<Self> {
        let texts = match value {
            Value::List(_) => Vec::from_value(value)?,
            _ => vec![String::from_value(value)?],
        };
        (!texts.iter().any(String::is_empty)).then_some(Self(texts))
    }
}

/// A JSON object in a text.
struct JsonObject(BTreeMap<String, Json>);

impl FromSetting for JsonObject {
    const EXPECTED: &'static str = "a section, or a text with a JSON object";

    fn from_value(value: &Value) -> Option<Self> {
        serde_json::from_str(value.as_text()?).ok().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::Config;

    fn read(config: &Config) -> Result<Json, ConfigError> {
        let section = config.section("LLM")?.section("Low")?;
        let settings = section.model_settings()?;
        assert_eq!(section.check_unknown()?, []);
        Ok(serde_json::to_value(settings).unwrap())
    }

    fn of_file(members: &Json) -> Config {
        let text = json!({ "LLM": { "Low": members } }).to_string();
        Config::new().with_text("agent.json", &text).unwrap()
    }

    #[test]
    fn all_settings_are_read_from_files_and_variables() {
        let config = of_file(&json!({
            "Temperature": 0.5, "TopP": 1, "MaxOutputTokens": 100, "Seed": -7, "StopSequences": ["a", "b"],
            "ReasoningEffort": "HIGH", "ParallelToolCalls": false, "ExtraHeaders": { "X-Title": "t" },
            "ExtraBody": { "topK": 3, "provider": { "Order": ["x"], "strict": true } },
        }));
        let mut expected = json!({
            "temperature": 0.5, "topP": 1.0, "maxOutputTokens": 100, "seed": -7, "stopSequences": ["a", "b"],
            "reasoningEffort": "high", "parallelToolCalls": false,
            "extraBody": { "topK": 3, "provider": { "Order": ["x"], "strict": true } },
        });
        assert_eq!(read(&config).unwrap(), expected);
        let config = config.with_variables([
            ("ROCKBOT_LLM__LOW__TEMPERATURE", "0.25"),
            ("ROCKBOT_LLM__LOW__STOPSEQUENCES", "END"),
            ("ROCKBOT_LLM__LOW__EXTRABODY", r#"{ "plugins": [{ "id": "web" }] }"#),
        ]);
        expected["temperature"] = json!(0.25);
        expected["stopSequences"] = json!(["END"]);
        expected["extraBody"] = json!({ "plugins": [{ "id": "web" }] });
        let section = config.section("LLM").unwrap().section("Low").unwrap();
        assert_eq!(
            serde_json::to_value(section.model_settings().unwrap()).unwrap(),
            expected
        );
        assert_eq!(read(&of_file(&json!({}))).unwrap(), json!({}));
    }

    #[test]
    fn a_value_that_no_model_takes_is_an_error_that_names_the_setting() {
        let check = |name: &str, value: Json, expected: &str| {
            let error = read(&of_file(&json!({ name: value }))).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(expected), "{error}");
        };
        check("Temperature", json!(-1), "expected a number of at least 0");
        check("Temperature", json!("NaN"), "expected a number of at least 0");
        check("TopP", json!(2), "above 0 and at most 1");
        check("MaxOutputTokens", json!(0), "from 1 to");
        check("Seed", json!("x"), "a whole number");
        check("StopSequences", json!(["a", ""]), "not empty");
        check("ParallelToolCalls", json!("maybe"), "`true` or `false`");
        check("StrictTools", json!("maybe"), "`true` or `false`");
        check("ExtraBody", json!("[1]"), "a JSON object");
        check(
            "ExtraBody",
            json!({ "a": [{ "b": 1 }] }),
            "write `ExtraBody` as JSON text",
        );
        check("ExtraHeaders", json!({ "Host": "x" }), "headers that can be sent");
    }
}
