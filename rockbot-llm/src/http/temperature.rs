//! The temperature of a request to OpenAI's models.

/// The beginnings of the names of models that reason, and take no temperature but their default.
const REASONING: [&str; 4] = ["o1", "o3", "o4", "gpt-5"];

/// Returns the temperature as a request to `model` states it.
///
/// A 0 is left out for a model that reasons: it would refuse the request, and judges and
/// background work ask all models for their most deterministic answer. Any other temperature is
/// the user's own choice.
pub(crate) fn stated_temperature(model: &str, temperature: Option<f32>) -> Option<f32> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let reasons = REASONING.iter().any(|begin| name.starts_with(begin));
    temperature.filter(|temperature| *temperature > 0.0 || !reasons)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_that_reasons_is_sent_no_temperature_of_zero() {
        for (model, zero) in [
            ("gpt-4.1", Some(0.0)),
            ("gpt-5-mini", None),
            ("openai/o3", None),
            ("olmo", Some(0.0)),
        ] {
            assert_eq!(stated_temperature(model, Some(0.0)), zero, "{model}");
            assert_eq!(stated_temperature(model, Some(0.5)), Some(0.5), "{model}");
            assert_eq!(stated_temperature(model, None), None, "{model}");
        }
    }
}
