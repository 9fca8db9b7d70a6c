use std::io::Write;
use std::time::Duration;

use rockbot_core::ExposeSecret;
use rockbot_core::chat::ReasoningEffort;

use super::*;
use crate::{PermitLimits, PriceTable, TimeLimit};

const SECRET: &str = "sk-very-secret";

fn read(file: Option<&str>, variables: &[(&str, &str)]) -> Result<LlmSettings, LlmConfigError> {
    let Some(text) = file else {
        return LlmSettings::read(None, variables.iter().copied());
    };
    let mut file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    LlmSettings::read(Some(file.path()), variables.iter().copied())
}

fn describe(tier: &TierSettings) -> String {
    let key = tier.api_key.as_ref().map_or("-", |key| key.expose_secret());
    format!("{} {key} {}", tier.endpoint, tier.model)
}

/// The tiers that these settings lead to, Balanced first, as `endpoint key model`.
#[track_caller]
fn check(file: Option<&str>, variables: &[(&str, &str)], expected: &[&str]) {
    let settings = read(file, variables).unwrap();
    let tiers = [Some(&settings.balanced), settings.low.as_ref(), settings.high.as_ref()];
    let tiers: Vec<_> = tiers.map(|tier| tier.map_or("-".into(), describe)).into();
    assert_eq!(tiers, expected);
    assert!(!format!("{settings:?}").contains(SECRET));
}

/// Checks the error of these settings; `expected` stands in the message, the secret does not.
#[track_caller]
fn check_error(file: Option<&str>, variables: &[(&str, &str)], expected: &str) {
    let error = read(file, variables).unwrap_err();
    let shown = error.to_string();
    let debug = format!("{error:?}");
    assert!(shown.contains(expected), "{shown}");
    assert!(!shown.contains(SECRET) && !debug.contains(SECRET), "{shown} {debug}");
}

const FILE: &str = r#"{
    "AgentHost": { "MaxToolIterations": 50 },
    "llm": {
        "Balanced": { "Endpoint": "https://openrouter.ai/api/v1", "ApiKey": "file-key", "modelid": "file-model" },
        "LOW": { "ModelId": "small" },
        "High": { "Endpoint": "http://localhost:8080/v1", "ModelId": "large", "ApiKey": null }
    }
}"#;

const OPENROUTER: &str = "https://openrouter.ai/api/v1 file-key file-model";
const SMALL: &str = "https://openrouter.ai/api/v1 file-key small";
const LARGE: &str = "http://localhost:8080/v1 - large";

#[test]
fn a_key_is_enough() {
    let default = format!("{DEFAULT_ENDPOINT} {SECRET} {DEFAULT_MODEL}");
    check(None, &[("OPENAI_API_KEY", SECRET)], &[&default, "-", "-"]);
    let own = format!("{DEFAULT_ENDPOINT} {SECRET} m");
    check(
        None,
        &[("OPENAI_API_KEY", SECRET), ("OPENAI_MODEL", "m")],
        &[&own, "-", "-"],
    );
    check(
        None,
        &[("ROCKBOT_LLM__BALANCED__APIKEY", SECRET)],
        &[&default, "-", "-"],
    );
}

#[test]
fn a_file_sets_all_tiers_with_names_in_any_case() {
    check(Some(FILE), &[], &[OPENROUTER, SMALL, LARGE]);
}

#[test]
fn flat_names_mean_balanced() {
    let file = r#"{"LLM": {"Endpoint": "http://h/v1", "ApiKey": "k", "ModelId": "m"}}"#;
    check(Some(file), &[], &["http://h/v1 k m", "-", "-"]);
}

#[test]
fn variables_need_no_prefix_and_may_be_flat() {
    let plain = [
        ("LLM__Balanced__Endpoint", "http://h/v1"),
        ("LLM__Balanced__ModelId", "m"),
        ("ROCKBOT_LLM__BALANCED__MODELID", "own"),
    ];
    check(None, &plain, &["http://h/v1 - own", "-", "-"]);
    let flat = [
        ("LLM__Endpoint", "http://h/v1"),
        ("OPENAI_MODEL", "openai"),
        ("LLM__ModelId", "m"),
    ];
    check(None, &flat, &["http://h/v1 - m", "-", "-"]);
    check(
        Some(FILE),
        &flat[..1],
        &["http://h/v1 file-key file-model", "http://h/v1 file-key small", LARGE],
    );
}

#[test]
fn each_tier_has_model_settings_of_its_own() {
    let file = r#"{"LLM": {"Seed": 1, "Balanced": {"Endpoint": "http://h/v1", "ModelId": "m", "Temperature": 0.5},
        "Low": {"ModelId": "small"}, "High": {"ReasoningEffort": "high", "ExtraHeaders": {"x-key": "sk-very-secret"}},
        "Fallbacks": {"other": {"ModelId": "f", "MaxOutputTokens": 9}}}}"#;
    let settings = read(Some(file), &[("ROCKBOT_LLM__BALANCED__TOPP", "0.5")]).unwrap();
    let new = ModelSettings::new;
    let own = |tier: &TierSettings| tier.model_settings.as_deref().cloned().unwrap_or_default();
    assert_eq!(
        own(&settings.balanced),
        new().with_temperature(0.5).with_top_p(0.5).with_seed(1)
    );
    assert_eq!(settings.low.as_ref().unwrap().model_settings, None);
    let high = settings.high.as_ref().unwrap();
    assert_eq!((high.model.as_str(), high.endpoint.as_str()), ("m", "http://h/v1"));
    let expected = new().with_reasoning_effort(ReasoningEffort::High);
    assert_eq!(own(high), expected.with_extra_header("x-key", SECRET));
    assert_eq!(own(&settings.fallbacks[0]), new().with_max_output_tokens(9));
    assert!(!format!("{settings:?}").contains(SECRET));
    let invalid = r#"{"LLM": {"Endpoint": "http://h/v1", "ModelId": "m", "Low": {"Temperature": -1}}}"#;
    check_error(Some(invalid), &[], "`LLM.Low.Temperature`");
    check_error(Some(invalid), &[], "expected a number of at least 0");
}

#[test]
fn each_model_has_its_mode_of_structured_output() {
    let file = r#"{"LLM": {"Endpoint": "http://h/v1", "ModelId": "m", "StructuredOutput": "tool",
        "Low": {"ModelId": "small"}, "High": {"StructuredOutput": "Prompt"}, "Fallbacks": {"f": {"ModelId": "f"}}}}"#;
    let settings = read(Some(file), &[("ROCKBOT_LLM__LOW__STRUCTUREDOUTPUT", "native")]).unwrap();
    let low = settings.low.as_ref().unwrap();
    let high = settings.high.as_ref().unwrap();
    let modes = [&settings.balanced, low, high, &settings.fallbacks[0]].map(|tier| tier.output_mode);
    let expected = [
        OutputMode::Tool,
        OutputMode::Native,
        OutputMode::Prompt,
        OutputMode::Auto,
    ];
    assert_eq!(modes, expected);
    let client = crate::ChatTiers::from_settings(&settings).unwrap();
    let told = ModelTier::ALL.map(|tier| rockbot_core::chat::ChatClient::describe(&client, tier).output_mode);
    assert_eq!(told, [OutputMode::Native, OutputMode::Tool, OutputMode::Prompt]);
    let wrong = r#"{"LLM": {"Endpoint": "http://h/v1", "ModelId": "m", "StructuredOutput": "xml"}}"#;
    check_error(Some(wrong), &[], "expected `auto`, `native`, `tool` or `prompt`");
}

#[test]
fn a_flat_key_stays_with_its_endpoint() {
    let file = r#"{"LLM": {"ApiKey": "flat", "Endpoint": "http://old/v1", "ModelId": "old",
                   "Balanced": {"Endpoint": "http://new/v1", "ModelId": "new"}}}"#;
    check(Some(file), &[], &["http://new/v1 - new", "-", "-"]);
    let file = r#"{"LLM": {"ApiKey": "flat", "Balanced": {"ModelId": "new"}, "Endpoint": "http://old/v1"}}"#;
    check(Some(file), &[], &["http://old/v1 flat new", "-", "-"]);
}

#[test]
fn the_environment_wins_over_the_file_and_our_variables_over_those_of_openai() {
    check(
        Some(FILE),
        &[
            ("OPENAI_MODEL", "openai-model"),
            ("ROCKBOT_LLM__HIGH__MODELID", "own-large"),
        ],
        &[
            "https://openrouter.ai/api/v1 file-key openai-model",
            SMALL,
            "http://localhost:8080/v1 - own-large",
        ],
    );
    let variables = [
        ("OPENAI_MODEL", "openai-model"),
        ("Rockbot_Llm__Balanced__ModelId", "own-model"),
        ("ROCKBOT_LLM__BALANCED__APIKEY", "own-key"),
        ("ROCKBOT_LLM__LOW__ENDPOINT", "http://127.0.0.1:1"),
        ("ROCKBOT_LLM__LOW__APIKEY", ""),
    ];
    let expected = [
        "https://openrouter.ai/api/v1 own-key own-model",
        "http://127.0.0.1:1 - small",
        LARGE,
    ];
    check(Some(FILE), &variables, &expected);
}

#[test]
fn a_key_goes_only_where_it_was_meant_to_go() {
    check(
        Some(FILE),
        &[("OPENAI_API_KEY", "openai-key")],
        &[OPENROUTER, SMALL, LARGE],
    );
    let elsewhere = [("OPENAI_BASE_URL", "http://h/v1")];
    check(
        Some(FILE),
        &elsewhere,
        &["http://h/v1 - file-model", "http://h/v1 - small", LARGE],
    );
    let openai = r#"{"LLM": {"Endpoint": "https://api.openai.com/v1/"}}"#;
    let expected = format!("https://api.openai.com/v1/ openai-key {DEFAULT_MODEL}");
    check(
        Some(openai),
        &[("OPENAI_API_KEY", "openai-key")],
        &[&expected, "-", "-"],
    );
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let nothing = "no model is configured: set OPENAI_API_KEY";
    check_error(None, &[("OPENAI_API_KEY", "")], nothing);
    check_error(Some("{}"), &[("PATH", "/bin")], nothing);
    check_error(Some(r#"{"LLM": null}"#), &[], nothing);
}

#[test]
fn what_is_missing_is_named() {
    let variables = [("OPENAI_BASE_URL", "http://h/v1")];
    check_error(
        None,
        &variables,
        "OPENAI_MODEL is not set: set it to the name of a model",
    );
    let variables = [
        ("ROCKBOT_LLM__BALANCED__ENDPOINT", "http://h"),
        ("OPENAI_API_KEY", SECRET),
    ];
    check_error(None, &variables, "ROCKBOT_LLM__BALANCED__MODELID is not set");
    check_error(None, &[("OPENAI_MODEL", "m")], "or set OPENAI_API_KEY to the key");
    let variables = [
        ("OPENAI_API_KEY", SECRET),
        ("ROCKBOT_LLM__HIGH__ENDPOINT", "https://h/v1"),
    ];
    check_error(None, &variables, "ROCKBOT_LLM__HIGH__APIKEY is not set");
}

#[test]
fn what_cannot_be_used_is_named_without_its_value() {
    check_error(
        None,
        &[("OPENAI_API_KEY", "sk-very-secret\n")],
        "OPENAI_API_KEY must be one word",
    );
    check_error(
        None,
        &[("OPENAI_API_KEY", "Bearer sk-very-secret")],
        "OPENAI_API_KEY must be one word",
    );
    for endpoint in [
        SECRET,
        "localhost:11434/v1",
        "ftp://h",
        "http://me:sk-very-secret@h/v1",
        "http://",
    ] {
        check_error(
            None,
            &[("OPENAI_BASE_URL", endpoint)],
            "OPENAI_BASE_URL must be a base URL such as",
        );
    }
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_place() {
    check_error(Some(r#"{"LLM": "sk-very-secret"}"#), &[], "`LLM` in `");
    check_error(
        Some(r#"{"LLM": {"low": ["sk-very-secret"]}}"#),
        &[],
        "expected a section, found a list",
    );
    check_error(
        Some(r#"{"LLM": {"Balanced": {"ApiKey": 1}}}"#),
        &[],
        "`LLM.Balanced.ApiKey` in `",
    );
    check_error(
        Some(r#"{"LLM": {"Balanced": {"ApiKey": 1}}}"#),
        &[],
        "expected text, found a number",
    );
    check_error(Some("[]"), &[], "the whole of `");
    check_error(
        Some("{\n\"LLM\": sk-very-secret}"),
        &[],
        "is not JSON, at line 2 column",
    );
    let missing = LlmSettings::read(Some(Path::new("no/such/file.json")), [("", "")]).unwrap_err();
    assert!(
        missing
            .to_string()
            .starts_with("cannot read the settings in `no/such/file.json`: "),
        "{missing}"
    );
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_named() {
    use std::os::unix::ffi::OsStringExt;
    let value = OsString::from_vec(vec![b'k', 0xff]);
    let error = LlmSettings::read(None, [("OPENAI_API_KEY", value)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "OPENAI_API_KEY: expected text, found bytes that are no UTF-8"
    );
}

#[test]
fn a_misspelt_variable_is_not_passed_over() {
    for (name, advice) in [
        (
            "ROCKBOT_LLM__BALANCED__MODEL",
            "known here: `ApiKey`, `Endpoint`, `ExtraBody`, `ExtraHeaders`, `Images`, `MaxOutputTokens`, `ModelId`",
        ),
        (
            "ROCKBOT_LLM__MEDIUM__ENDPOINT",
            "known here: `ApiKey`, `Balanced`, `Embeddings`, `Endpoint`, `ExtraBody`, `ExtraHeaders`, `Fallbacks`, `Gateway`, `High`, `Images`, \
             `Low`, `MaxOutputTokens`, `ModelId`, `ParallelToolCalls`, `PriceFile`, `Prices`",
        ),
        ("rockbot_llm__low__api_key", "did you mean `ApiKey`?"),
    ] {
        let expected = format!("{name} is not a setting; {advice}");
        check_error(None, &[("OPENAI_API_KEY", "sk-1234"), (name, SECRET)], &expected);
    }
}

/// The models for when others fail, as `endpoint key model`.
fn fallbacks(file: &str, variables: &[(&str, &str)]) -> Vec<String> {
    read(Some(file), variables)
        .unwrap()
        .fallbacks
        .iter()
        .map(describe)
        .collect()
}

#[test]
fn fallbacks_are_asked_in_the_order_of_their_names_and_lack_nothing_that_balanced_has() {
    let file = r#"{ "LLM": {
        "Balanced": { "Endpoint": "https://a.test/v1", "ApiKey": "key-a", "ModelId": "a" },
        "Fallbacks": {
            "2": { "Endpoint": "http://localhost:8080/v1", "ModelId": "local" },
            "1": { "ModelId": "b" },
            "3": { "ModelId": null }
        }
    } }"#;
    // Balanced's key stays with Balanced's endpoint.
    let expected = ["https://a.test/v1 key-a b", "http://localhost:8080/v1 - local"];
    assert_eq!(fallbacks(file, &[]), expected);
    let other = [("ROCKBOT_LLM__FALLBACKS__1__MODELID", "c")];
    assert_eq!(fallbacks(file, &other)[0], "https://a.test/v1 key-a c");
    check_error(
        Some(r#"{ "LLM": { "ApiKey": "k", "Fallbacks": { "x": { "Endpoint": "https://b.test" } } } }"#),
        &[],
        "ROCKBOT_LLM__FALLBACKS__X__APIKEY is not set",
    );
}

/// The embedding model that these settings lead to.
fn embeddings(file: &str, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
    let config = Config::new().with_text("agent.json", file).unwrap();
    let settings = TierSettings::of_embeddings(&config.with_variables(variables.iter().copied()));
    settings
        .map(|settings| settings.as_ref().map(describe))
        .map_err(|error| error.to_string())
}

#[test]
fn a_model_that_makes_vectors_has_settings_of_its_own() {
    let balanced = r#"{ "LLM": { "Endpoint": "https://a.test/v1", "ApiKey": "key-a", "ModelId": "a" } }"#;
    assert_eq!(embeddings(balanced, &[]), Ok(None));
    let model = [("ROCKBOT_LLM__EMBEDDINGS__MODELID", "e")];
    assert_eq!(
        embeddings(balanced, &model),
        Ok(Some("https://a.test/v1 key-a e".into()))
    );
    let alone = r#"{ "LLM": { "Embeddings": { "Endpoint": "http://localhost:8080/v1", "ModelId": "e" } } }"#;
    assert_eq!(embeddings(alone, &[]), Ok(Some("http://localhost:8080/v1 - e".into())));
    // Balanced's key stays with Balanced's endpoint.
    let other =
        r#"{ "LLM": { "ApiKey": "key-a", "Embeddings": { "Endpoint": "https://b.test/v1", "ModelId": "e" } } }"#;
    let error = embeddings(other, &[]).unwrap_err();
    assert!(
        error.starts_with("ROCKBOT_LLM__EMBEDDINGS__APIKEY is not set"),
        "{error}"
    );
    let nothing = r#"{ "LLM": { "Embeddings": { "Endpoint": "http://localhost:8080/v1" } } }"#;
    let error = embeddings(nothing, &[]).unwrap_err();
    assert!(
        error.starts_with("ROCKBOT_LLM__EMBEDDINGS__MODELID is not set"),
        "{error}"
    );
    check_error(Some(alone), &[], "no model is configured");
}

fn gateway(json: &str) -> Result<GatewaySettings, String> {
    let config = Config::new().with_text("agent.json", json).unwrap();
    GatewaySettings::from_config(&config).map_err(|error| error.to_string())
}

#[test]
fn how_models_are_asked_is_a_setting() {
    let default = gateway("{}").unwrap();
    assert_eq!(
        (default.permits, default.time_limit),
        (PermitLimits::default(), TimeLimit::default())
    );
    assert_eq!((default.retry.max_attempts, default.prices), (4, PriceTable::default()));

    let all = gateway(
        r#"{ "LLM": { "Gateway": {
            "Permits": { "Low": 5, "Balanced": 3, "High": 2, "Total": 6 }, "MaxWaiting": 9, "MaxWait": "00:00:30",
            "Retries": 0, "CallTimeout": "00:01:30", "FirstPieceTimeout": "00:00:20", "PauseTimeout": "00:00:00"
        } } }"#,
    )
    .unwrap();
    let permits = PermitLimits {
        low: 5,
        balanced: 3,
        high: 2,
        total: 6,
        max_waiting: 9,
        max_wait: Duration::from_secs(30),
        ..PermitLimits::default()
    };
    let time_limit = TimeLimit {
        call: Duration::from_secs(90),
        first: Duration::from_secs(20),
        pause: Duration::ZERO,
    };
    assert_eq!(
        (all.permits, all.time_limit, all.retry.max_attempts),
        (permits, time_limit, 1)
    );
}

#[test]
fn prices_of_the_section_go_over_those_of_the_file_and_those_over_the_table() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let prices = r#"{ "models": { "gpt-4.1": { "input": 7, "output": 7 }, "mine": { "input": 7, "output": 7 } } }"#;
    file.write_all(prices.as_bytes()).unwrap();
    let json = serde_json::json!({ "LLM": {
        "PriceFile": file.path(),
        "Prices": { "mine": { "Input": 1.5, "Output": 2 }, "vendor/Other-1.5": { "Input": 0, "Output": 0 } }
    } });
    let prices = gateway(&json.to_string()).unwrap().prices;
    let input = |model| {
        prices
            .price_of(model)
            .map(|price| (price.input.as_dollars(), price.cached.as_dollars()))
    };
    assert_eq!(input("gpt-4.1"), Some((7.0, 7.0)));
    assert_eq!(input("mine"), Some((1.5, 1.5)));
    assert_eq!(input("vendor/other-1.5"), Some((0.0, 0.0)));
    assert_eq!(
        input("gpt-4.1-mini"),
        PriceTable::default().price_of("gpt-4.1-mini").map(|_| (0.4, 0.1))
    );
}

#[test]
fn what_is_wrong_with_the_gateway_is_named() {
    let check = |json: &str, expected: &str| assert_eq!(gateway(json).unwrap_err(), expected);
    check(
        r#"{ "LLM": { "Gateway": { "Permits": { "Low": 0 } } } }"#,
        "`LLM.Gateway.Permits.Low` in `agent.json`: expected a whole number from 1 to 4294967295, found a number",
    );
    check(
        r#"{ "LLM": { "Gateway": { "CallTimeout": 90 } } }"#,
        "`LLM.Gateway.CallTimeout` in `agent.json`: expected a time span such as `00:05:00` (`[days.]hours:minutes[:seconds]`), found a number",
    );
    check(
        r#"{ "LLM": { "Prices": { "mine": { "Input": 1 } } } }"#,
        "LLM.Prices.mine.Output is not set: a price needs both `Input` and `Output`, in US dollars for a million tokens",
    );
    check(
        r#"{ "LLM": { "Prices": { "mine": { "Input": -1, "Output": 1 } } } }"#,
        "`LLM.Prices.mine.Input` in `agent.json`: expected an amount in US dollars such as `0.50`, found a number",
    );
    check(
        r#"{ "LLM": { "PriceFile": "no/such/file" } }"#,
        "the prices in `no/such/file` cannot be read: check the path and its permissions",
    );
    // Also by those who ask for the models alone.
    check_error(
        Some(r#"{ "LLM": { "ApiKey": "k", "Gateway": { "Retries": "many" } } }"#),
        &[],
        "`LLM.Gateway.Retries`",
    );
}

/// The tiers that these settings lead to, Balanced first, as `provider endpoint key model`.
#[track_caller]
fn check_providers(file: Option<&str>, variables: &[(&str, &str)], expected: &[&str]) {
    let settings = read(file, variables).unwrap();
    let tiers = [Some(&settings.balanced), settings.low.as_ref(), settings.high.as_ref()];
    let tiers = tiers.map(|tier| {
        tier.map_or("-".into(), |tier| {
            format!("{} {}", tier.provider.name(), describe(tier))
        })
    });
    assert_eq!(tiers, expected);
}

const ANTHROPIC: &str = "anthropic https://api.anthropic.com ant claude-sonnet-4-6";

#[test]
fn a_key_of_anthropic_is_enough() {
    check_providers(None, &[("ANTHROPIC_API_KEY", "ant")], &[ANTHROPIC, "-", "-"]);
    let all = [
        ("ANTHROPIC_API_KEY", "ant"),
        ("ANTHROPIC_BASE_URL", "http://h"),
        ("ANTHROPIC_MODEL", "m"),
    ];
    check_providers(None, &all, &["anthropic http://h ant m", "-", "-"]);
    // A name of a model alone may be meant for another program.
    check_error(
        None,
        &all[2..],
        "no model is configured: set OPENAI_API_KEY (and OPENAI_MODEL), or ANTHROPIC_API_KEY",
    );
    check_error(None, &all[1..2], "ANTHROPIC_MODEL is not set");
    let both = [("ANTHROPIC_API_KEY", "ant"), ("OPENAI_API_KEY", "oai")];
    let openai = format!("openai {DEFAULT_ENDPOINT} oai {DEFAULT_MODEL}");
    check_providers(None, &both, &[&openai, "-", "-"]);
    let chosen = [both[0], both[1], ("ROCKBOT_LLM__BALANCED__PROVIDER", "Anthropic")];
    check_providers(None, &chosen, &[ANTHROPIC, "-", "-"]);
    let named = r#"{"LLM": {"ModelId": "claude-x"}}"#;
    let expected = "anthropic https://api.anthropic.com ant claude-x";
    check_providers(Some(named), &both[..1], &[expected, "-", "-"]);
}

#[test]
fn the_advice_names_the_endpoint_where_no_server_is_set() {
    for tier in ["Low", "Balanced", "High", "Fallbacks.spare"] {
        let (section, name) = tier.split_once('.').unwrap_or((tier, ""));
        let local = r#"{"ModelId": "llama"}"#;
        let file = match name {
            "" => format!(r#"{{"LLM": {{"{section}": {local}}}}}"#),
            name => format!(r#"{{"LLM": {{"{section}": {{"{name}": {local}}}}}}}"#),
        };
        check_error(
            Some(&file),
            &[],
            "ROCKBOT_LLM__BALANCED__ENDPOINT is not set: set it to the base URL of your server, or set \
             ROCKBOT_LLM__BALANCED__APIKEY to the key of an account at https://api.openai.com/v1",
        );
    }
    for tier in ["LOW", "HIGH"] {
        let endpoint = format!("ROCKBOT_LLM__{tier}__ENDPOINT");
        let variables = [(endpoint.as_str(), "http://localhost:11434/v1")];
        check_error(None, &variables, "ROCKBOT_LLM__BALANCED__ENDPOINT is not set");
    }
    check_error(None, &[("OPENAI_MODEL", "llama")], "OPENAI_BASE_URL is not set");
}

#[test]
fn tiers_may_mix_providers() {
    let file = r#"{"LLM": {
        "Balanced": {"Endpoint": "http://local/v1", "ModelId": "large"},
        "Low": {"ModelId": "small"},
        "High": {"Provider": "ANTHROPIC", "ModelId": "claude-x"}
    }}"#;
    let local = ["openai http://local/v1 - large", "openai http://local/v1 - small"];
    let high = "anthropic https://api.anthropic.com ant claude-x";
    let key = [("ANTHROPIC_API_KEY", "ant"), ("ANTHROPIC_MODEL", "other")];
    check_providers(Some(file), &key, &[local[0], local[1], high]);
    check_error(Some(file), &[], "ANTHROPIC_API_KEY is not set");

    let file = r#"{"LLM": {
        "Provider": "anthropic", "ApiKey": "ant",
        "Low": {"ModelId": "small"},
        "High": {"Endpoint": "http://local/v1", "ModelId": "large"}
    }}"#;
    let low = "anthropic https://api.anthropic.com ant small";
    check_providers(
        Some(file),
        &[("OPENAI_API_KEY", "oai")],
        &[ANTHROPIC, low, "openai http://local/v1 - large"],
    );
}

#[test]
fn a_key_of_anthropic_goes_only_to_anthropic() {
    let file = r#"{"LLM": {"Provider": "anthropic", "Endpoint": "https://proxy", "ModelId": "m"}}"#;
    check_error(
        Some(file),
        &[("ANTHROPIC_API_KEY", SECRET)],
        "ROCKBOT_LLM__BALANCED__APIKEY is not set",
    );
    let file = r#"{"LLM": {"Provider": "anthropic", "ApiKey": "file-key", "ModelId": "m"}}"#;
    check_providers(
        Some(file),
        &[("ANTHROPIC_BASE_URL", "http://h")],
        &["anthropic http://h - m", "-", "-"],
    );
    let high =
        r#"{"LLM": {"Endpoint": "http://local/v1", "ApiKey": "k", "ModelId": "m", "High": {"Provider": "anthropic"}}}"#;
    check_error(
        Some(high),
        &[("OPENAI_API_KEY", SECRET)],
        "ANTHROPIC_API_KEY is not set",
    );
}

#[test]
fn an_unknown_provider_is_refused_with_the_known_ones() {
    let file = |tier: &str| format!(r#"{{"LLM": {{"ApiKey": "k", "{tier}": {{"Provider": "sk-very-secret"}}}}}}"#);
    for tier in ["Balanced", "High"] {
        let error = read(Some(&file(tier)), &[]).unwrap_err();
        assert!(matches!(error, LlmConfigError::UnknownProvider { .. }), "{error}");
        let expected = format!("LLM.{tier}.Provider");
        check_error(Some(&file(tier)), &[], &expected);
        check_error(
            Some(&file(tier)),
            &[],
            "must be one of these: openai, openai-responses, anthropic, offline",
        );
    }
}

#[test]
fn an_unknown_provider_is_reported_with_what_balanced_lacks() {
    let file = r#"{"LLM": {"ModelId": "m", "High": {"Provider": "antropic"}, "Fallbacks": {"a": {"Provider": "x"}}}}"#;
    let error = read(Some(file), &[]).unwrap_err();
    assert!(matches!(error, LlmConfigError::Several { .. }), "{error}");
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    for (line, name) in lines.iter().zip([
        "LLM.High.Provider",
        "LLM.Fallbacks.a.Provider",
        "ROCKBOT_LLM__BALANCED__APIKEY",
    ]) {
        assert!(line.contains(name), "{line}");
    }
}

#[test]
fn tiers_of_both_apis_of_openai_share_endpoint_and_key() {
    for name in ["OpenAIResponses", "openai-responses", " OPENAI_RESPONSES "] {
        let file = format!(
            r#"{{"LLM": {{
                "Balanced": {{"Endpoint": "https://h/v1", "ApiKey": "k", "ModelId": "m"}},
                "High": {{"Provider": "{name}", "ModelId": "large"}}
            }}}}"#
        );
        let balanced = "openai https://h/v1 k m";
        check_providers(
            Some(&file),
            &[],
            &[balanced, "-", "openai-responses https://h/v1 k large"],
        );
    }
    let variables = [
        ("OPENAI_API_KEY", "oai"),
        ("ROCKBOT_LLM__BALANCED__PROVIDER", "openai-responses"),
    ];
    let expected = format!("openai-responses {DEFAULT_ENDPOINT} oai {DEFAULT_MODEL}");
    check_providers(None, &variables, &[&expected, "-", "-"]);
}

#[test]
fn embeddings_never_go_to_anthropic() {
    let file = r#"{"LLM": {"Provider": "anthropic", "ApiKey": "ant", "Embeddings": {"ModelId": "vectors"}}}"#;
    let config = |variables: &[(&'static str, &'static str)]| {
        Config::new()
            .with_text("a.json", file)
            .unwrap()
            .with_variables(variables.iter().copied())
    };
    let embeddings = TierSettings::of_embeddings(&config(&[("OPENAI_API_KEY", "oai")]))
        .unwrap()
        .unwrap();
    assert_eq!(describe(&embeddings), format!("{DEFAULT_ENDPOINT} oai vectors"));
    TierSettings::of_embeddings(&config(&[])).unwrap_err();
}

#[tokio::test]
async fn the_offline_model_is_a_provider_that_is_asked_for_by_name() {
    let variables = [
        ("ROCKBOT_LLM__PROVIDER", "offline"),
        ("ROCKBOT_LLM__HIGH__ENDPOINT", "http://127.0.0.1:9/v1"),
        ("ROCKBOT_LLM__HIGH__MODELID", "large"),
        ("OPENAI_API_KEY", "sk-1234"),
    ];
    let settings = LlmSettings::read(None, variables).unwrap();
    assert_eq!(settings.balanced.provider, Provider::Offline);
    let high = settings.high.unwrap();
    assert_eq!((high.provider, high.model.as_str()), (Provider::OpenAi, "large"));
    assert!(high.api_key.is_none(), "the key is OpenAI's alone");
    assert!(matches!(
        crate::probe(&settings.balanced).await,
        crate::ServerCheck::Offline
    ));
    let client = crate::model_client(&settings.balanced).unwrap();
    let answer = client.chat(crate::testing::call()).await.unwrap();
    assert_eq!(answer.model.as_deref(), Some("offline"));
}
