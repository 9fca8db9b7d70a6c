use std::io::Write;

use rockbot_core::ExposeSecret;

use super::*;

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

/// What is wrong with these settings; `expected` stands in the message, the secret does not.
#[track_caller]
fn check_error(file: Option<&str>, variables: &[(&str, &str)], expected: &str) {
    let error = read(file, variables).unwrap_err();
    let (shown, debug) = (error.to_string(), format!("{error:?}"));
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
    check_error(None, &[("OPENAI_MODEL", "m")], "OPENAI_API_KEY is not set");
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
            "known here: `ApiKey`, `Endpoint`, `ModelId`",
        ),
        (
            "ROCKBOT_LLM__MEDIUM__ENDPOINT",
            "known here: `ApiKey`, `Balanced`, `Endpoint`, `High`, `Low`, `ModelId`",
        ),
        ("rockbot_llm__low__api_key", "did you mean `ApiKey`?"),
    ] {
        let expected = format!("{name} is not a setting; {advice}");
        check_error(None, &[("OPENAI_API_KEY", "sk-1234"), (name, SECRET)], &expected);
    }
}
