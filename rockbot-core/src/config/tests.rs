use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::{ExposeSecret, Secret};

const SECRET: &str = "sk-very-secret";

/// Creates a configuration from a file and variables.
fn config(name: &str, text: &str, variables: &[(&str, &str)]) -> Config {
    let config = Config::new().with_text(name, text).unwrap();
    config.with_variables(variables.iter().copied())
}

fn json(text: &str) -> Config {
    config("agent.json", text, &[])
}

/// Returns the setting of this section and name.
#[track_caller]
fn get<T: FromSetting>(config: &Config, [section, name]: [&str; 2]) -> Option<T> {
    config.section(section).unwrap().get(name).unwrap()
}

#[track_caller]
fn check_error(error: &ConfigError, expected: &str) {
    assert_eq!(error.to_string(), expected);
    assert!(!format!("{error:?}").contains(SECRET));
}

/// Returns the error of reading `S.K` of this file as a `T`.
#[track_caller]
fn check_wrong<T: FromSetting + fmt::Debug>(value: &str, expected: &str) {
    let config = json(&format!(r#"{{ "S": {{ "K": {value} }} }}"#));
    let error = config.section("S").unwrap().get::<T>("K").unwrap_err();
    check_error(&error, &format!("`S.K` in `agent.json`: expected {expected}"));
}

#[test]
fn json_and_toml_say_the_same() {
    let json = "\u{feff}{ \"S\": { \"n\": 5, \"f\": true, \"t\": \"x\", \"l\": [\"a\"], \"span\": \"00:05:00\", \"z\": null } }";
    let toml = "[S]\nn = 5\nf = true\nt = \"x\"\nl = [\"a\"]\nspan = 00:05:00\n";
    for config in [config("a.json", json, &[]), config("a.TOML", toml, &[])] {
        assert_eq!(get(&config, ["S", "N"]), Some(5_u16));
        assert_eq!(get(&config, ["s", "n"]), NonZeroU32::new(5));
        assert_eq!(get(&config, ["S", "F"]), Some(true));
        assert_eq!(get(&config, ["S", "T"]), Some("x".to_owned()));
        assert_eq!(get(&config, ["S", "L"]), Some(vec!["a".to_owned()]));
        assert_eq!(get(&config, ["S", "Span"]), Some(Duration::from_secs(300)));
        assert_eq!(get::<String>(&config, ["S", "Z"]), None);
        assert_eq!(config.unknown(), []);
    }
}

#[test]
fn the_environment_writes_everything_as_text() {
    let variables = [
        ("S__N", "5"),
        ("s__f", "True"),
        ("ROCKBOT_S__SPAN", "1.00:00"),
        ("S__EMPTY", ""),
    ];
    let config = config("a.json", r#"{ "S": { "Empty": "file" } }"#, &variables);
    assert_eq!(get(&config, ["S", "N"]), Some(5_u32));
    assert_eq!(get(&config, ["S", "F"]), Some(true));
    assert_eq!(get(&config, ["S", "Span"]), Some(Duration::from_secs(24 * 3600)));
    assert_eq!(get(&config, ["S", "Empty"]), Some("file".to_owned()));
}

#[test]
fn what_comes_later_wins_setting_by_setting() {
    let variables = [
        ("ROCKBOT_S__D", "prefixed"),
        ("S__C", "plain"),
        ("S__D", "plain"),
        ("s__e__f", "deep"),
    ];
    let config = Config::new()
        .with_text(
            "one.json",
            r#"{ "S": { "A": "one", "B": "one", "C": "one", "D": "one", "E": { "F": "one" } } }"#,
        )
        .and_then(|config| config.with_text("two.toml", "[s]\nb = 'two'\nc = 'two'\nd = 'two'"))
        .unwrap()
        .with_variables(variables);
    let section = config.section("S").unwrap();
    let found = ["A", "B", "C", "D"].map(|name| {
        let setting = section.setting(name).unwrap();
        format!("{setting}: {}", setting.read::<String>().unwrap())
    });
    let expected = [
        "`S.A` in `one.json`: one",
        "`s.b` in `two.toml`: two",
        "S__C: plain",
        "ROCKBOT_S__D: prefixed",
    ];
    assert_eq!(found, expected);
    assert_eq!(
        section.section("E").unwrap().get_or("F", String::new()).unwrap(),
        "deep"
    );
    let [a, b] = ["A", "B"].map(|name| section.setting(name).unwrap());
    assert!(b.is_later_than(a) && !a.is_later_than(b));
}

#[test]
fn a_list_of_sections_is_a_section_of_positions() {
    let variables = [("S__LIST__1__B", "env"), ("S__LIST__2__NEW", "x")];
    let config = config(
        "a.json",
        r#"{ "S": { "List": [{ "aA": "file" }, { "B": "file" }], "None": [] } }"#,
        &variables,
    );
    let list = config.section("S").and_then(|section| section.section("List")).unwrap();
    assert_eq!(list.names(), ["0", "1", "2"]);
    let [first, second] = ["0", "1"].map(|position| list.section(position).unwrap());
    assert_eq!(first.setting("aa").map(|setting| setting.name()), Some("aA"));
    assert_eq!(second.get::<String>("B").unwrap().as_deref(), Some("env"));
    assert_eq!(
        list.section("2").unwrap().setting("New").map(|setting| setting.name()),
        Some("NEW")
    );
    let none = config.section("S").and_then(|section| section.section("None")).unwrap();
    assert!(none.names().is_empty());
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_without_its_value() {
    let span = "a time span such as `00:05:00` (`[days.]hours:minutes[:seconds]`)";
    check_wrong::<Duration>(r#""sk-very-secret""#, &format!("{span}, found text"));
    check_wrong::<Duration>(r#""10m""#, &format!("{span}, found text"));
    check_wrong::<Duration>("300", &format!("{span}, found a number"));
    check_wrong::<u16>("70000", "a whole number from 0 to 65535, found a number");
    check_wrong::<u32>("-1", "a whole number from 0 to 4294967295, found a number");
    check_wrong::<NonZeroU32>("0", "a whole number from 1 to 4294967295, found a number");
    check_wrong::<bool>("1", "`true` or `false`, found a number");
    check_wrong::<String>("[1]", "text, found a list");
    check_wrong::<Secret>(r#"{ "Key": "sk-very-secret" }"#, "text, found a section");
    check_wrong::<PathBuf>("true", "a path, found true or false");
    let config = json(r#"{ "S": "sk-very-secret" }"#);
    check_error(
        &config.section("S").unwrap_err(),
        "`S` in `agent.json`: expected a section, found text",
    );
    let config = Config::new().with_variables([("S__N", SECRET)]);
    let error = config.section("S").unwrap().get::<u16>("N").unwrap_err();
    check_error(&error, "S__N: expected a whole number from 0 to 65535, found text");
}

#[test]
fn a_file_that_cannot_be_used_is_named() {
    let error = |name: &str, text: &str| Config::new().with_text(name, text).unwrap_err();
    check_error(
        &error("a.json", "{\n\"S\": sk-very-secret}"),
        "`a.json` is not JSON, at line 2 column 6",
    );
    check_error(
        &error("a.toml", "[S]\nK = sk-very-secret"),
        "`a.toml` is not TOML, at line 2 column 5",
    );
    check_error(
        &error("a.yaml", ""),
        "`a.yaml` is neither `.json` nor `.toml`: rename it after what it holds",
    );
    check_error(
        &error("a.json", "[]"),
        "the whole of `a.json`: expected an object of sections, found a list",
    );
    check_error(
        &error(
            "a.json",
            r#"{ "S": { "Key": "sk-very-secret", "key": "" , "KEY": "x" } }"#,
        ),
        "`S.KEY` in `a.json` is set twice: remove one of them",
    );
    let missing = Config::new().with_file("no/such/file.json").unwrap_err();
    assert!(
        missing
            .to_string()
            .starts_with("cannot read the settings in `no/such/file.json`: "),
        "{missing}"
    );
}

#[test]
fn settings_that_were_not_read_are_unknown() {
    let variables = [
        ("PATH", "/bin"),
        ("OTHER__KEY", "x"),
        ("ROCKBOT_TEST_REQUIRE", "all"),
        ("S__Folder", "x"),
        ("ROCKBOT_S__INTERVALL", "x"),
    ];
    let file = r#"{ "S": { "Intervall": 1, "Interval": 2, "Deep": { "Kay": 1 } }, "Logging": { "A": 1, "B": 2 } }"#;
    let config = config("a.json", file, &variables);
    let section = config.section("S").unwrap();
    section.get::<u16>("Interval").unwrap();
    section.section("Deep").unwrap().get::<u16>("Key").unwrap();
    let unknown: Vec<_> = config
        .unknown()
        .iter()
        .map(|key| (key.to_string(), key.is_error))
        .collect();
    let expected = [
        ("`Logging` in `a.json` is not a setting; known here: `S`", true),
        ("`S.Deep.Kay` in `a.json` is not a setting; did you mean `Key`?", true),
        // Another program may have a section of this name, too.
        ("S__Folder is not a setting; known here: `Deep`, `Interval`", false),
        ("ROCKBOT_S__INTERVALL is not a setting; did you mean `Interval`?", true),
    ];
    assert_eq!(unknown, expected.map(|(text, is_error)| (text.to_owned(), is_error)));
    assert_eq!(section.unknown().len(), 3);
    let error = config.check_unknown().unwrap_err();
    check_error(&error, "`Logging` in `a.json` is not a setting; known here: `S`");
}

#[test]
fn a_section_that_no_part_reads_has_no_effect() {
    let file = r#"{ "S": { "Key": 1, "Deep": { "Key": 1 } } }"#;
    let config = config(
        "a.json",
        file,
        &[("ROCKBOT_S__OTHER", "x"), ("T__KEY", "of another program")],
    );
    config.section("S").unwrap();
    config.section("T").unwrap();
    let [unread] = &config.check_unknown().unwrap()[..] else {
        panic!("{config:?}");
    };
    assert!(unread.is_unread && !unread.is_error);
    assert_eq!(
        (unread.name.as_str(), unread.to_string().as_str()),
        ("S", "`S` in `a.json` has no effect: no part of the program reads it")
    );
    // The subsystem is part of the host after all, and has a copy.
    let part = |config: Config| config.section("S").unwrap().get::<u16>("Key").unwrap();
    assert_eq!(part(config.clone()), Some(1));
    let unknown: Vec<_> = config.unknown().iter().map(ToString::to_string).collect();
    let known = "is not a setting; known here: `Key`";
    assert_eq!(
        unknown,
        [
            format!("`S.Deep` in `a.json` {known}"),
            format!("ROCKBOT_S__OTHER {known}")
        ]
    );
}

#[test]
fn a_section_that_is_ignored_is_left_to_other_programs() {
    let file = r#"{ "Logging": { "Level": { "Default": "info" } }, "S": { "Off": { "Key": 1 }, "Kay": 1 } }"#;
    let config = config("a.json", file, &[("ROCKBOT_LOGGING__OTHER", "x")]);
    config.section("Logging").unwrap().ignore();
    let section = config.section("S").unwrap();
    section.section("Off").unwrap().ignore();
    section.get::<u16>("Key").unwrap();
    let unknown: Vec<_> = config.unknown().iter().map(ToString::to_string).collect();
    assert_eq!(unknown, ["`S.Kay` in `a.json` is not a setting; did you mean `Key`?"]);
}

#[test]
fn a_prefixed_variable_of_an_unknown_section_is_an_error() {
    let config = Config::new().with_variables([("ROCKBOT_DREEM__INTERVAL", "x"), ("DREEM__INTERVAL", "x")]);
    config.section("Dream").unwrap();
    let error = config.check_unknown().unwrap_err();
    check_error(
        &error,
        "ROCKBOT_DREEM__INTERVAL is not a setting; did you mean `Dream`?",
    );
}

#[test]
fn a_section_knows_whether_anything_is_set_in_it() {
    let config = config(
        "a.json",
        r#"{ "Empty": {}, "Unset": { "A": null }, "Set": { "A": { "B": 1 } } }"#,
        &[],
    );
    let is_set = ["Empty", "Unset", "Set", "Missing"].map(|name| config.section(name).unwrap().is_set());
    assert_eq!(is_set, [false, false, true, false]);
}

#[test]
fn variables_beside_sections_can_be_asked_for() {
    let config = Config::new().with_variables([("Openai_Api_Key", SECRET), ("OPENAI_MODEL", "")]);
    let key = config.variable("OPENAI_API_KEY").unwrap();
    assert_eq!(key.read::<Secret>().unwrap().expose_secret(), SECRET);
    assert_eq!(key.to_string(), "Openai_Api_Key");
    assert!(config.variable("OPENAI_MODEL").is_none());
}

#[test]
fn no_value_is_ever_shown() {
    let config = config("a.json", r#"{ "S": { "K": "sk-very-secret" } }"#, &[("S__L", SECRET)]);
    let section = config.section("S").unwrap();
    let shown = format!("{config:?} {section:?} {:?}", section.setting("K"));
    assert!(!shown.contains(SECRET), "{shown}");
    assert!(shown.contains("`S.K` in `a.json` (text)"), "{shown}");
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_no_text_is_named() {
    use std::os::unix::ffi::OsStringExt;
    let value = OsString::from_vec(vec![b'k', 0xff]);
    let config = Config::new().with_variables([("S__K", value)]);
    let error = config.section("S").unwrap().get::<String>("K").unwrap_err();
    check_error(&error, "S__K: expected text, found bytes that are no UTF-8");
}

#[test]
fn folders_are_below_their_base() {
    let config = json(r#"{ "S": { "A": "inner", "B": "/outer" } }"#);
    let section = config.section("S").unwrap();
    let folders = ["A", "B", "C"].map(|name| section.folder(name, "default", Path::new("/base")).unwrap());
    assert_eq!(folders, ["/base/inner", "/outer", "/base/default"].map(PathBuf::from));
}

#[test]
fn time_spans_are_those_of_dotnet() {
    for (text, seconds) in [
        ("00:00:00", 0),
        ("04:00", 14_400),
        ("1:2:3", 3723),
        ("10.23:59:59", 950_399),
    ] {
        assert_eq!(parse_time_span(text), Some(Duration::from_secs(seconds)), "{text}");
    }
    assert_eq!(parse_time_span("00:00:00.0000001"), Some(Duration::from_nanos(100)));
    for text in [
        "",
        "5",
        "5m",
        "24:00:00",
        "00:60:00",
        "-00:05:00",
        "00:05:",
        "1.5",
        "00:00:00.",
        "+1:00",
        "1:00:00:00",
        "00 :05",
    ] {
        assert_eq!(parse_time_span(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn time_spans_come_back(seconds in 0..922_337_203_685_u64, nanoseconds in 0..1_000_000_000_u32) {
        let span = Duration::new(seconds, nanoseconds);
        prop_assert_eq!(parse_time_span(&format_time_span(span)), Some(span));
    }

    #[test]
    fn no_text_is_a_surprise(text in "[-0-9.: ]{0,20}") {
        if let Some(span) = parse_time_span(&text) {
            prop_assert_eq!(parse_time_span(&format_time_span(span)), Some(span));
        }
    }

    #[test]
    fn no_file_is_a_surprise(text in "\\PC{0,40}") {
        let _ = Config::new().with_text("a.json", &text);
        let _ = Config::new().with_text("a.toml", &text);
    }
}
