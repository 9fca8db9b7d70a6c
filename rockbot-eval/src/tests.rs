//! Tests of whole evaluations and of cassettes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::chat::{ChatClient, ChatMessage, ModelSettings, ModelTier};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::tool;
use rockbot_core::{BoxError, SessionId};
use rockbot_host::AgentHost;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::*;

fn dataset(lines: &str) -> Dataset {
    Dataset::parse(lines).unwrap()
}

fn problem(lines: &str) -> String {
    Dataset::parse(lines).unwrap_err().to_string()
}

/// A subject that answers by a function of the question.
struct Program(fn(&str) -> Result<Answer, BoxError>);

#[async_trait]
impl Subject for Program {
    async fn answer(&self, _: &SessionId, question: &str) -> Result<Answer, BoxError> {
        (self.0)(question)
    }
}

fn echo(question: &str) -> Result<Answer, BoxError> {
    Ok(Answer::new(question).with_tokens(10))
}

#[test]
fn a_wrong_dataset_names_the_line_and_what_is_possible() {
    assert_eq!(
        problem(""),
        "the dataset has no case: write one in each line, such as {\"ask\": \"Hi\"}"
    );
    assert_eq!(
        problem("\n{\"ask\": 3}"),
        "line 2: invalid type: integer `3`, expected a string (column 9)"
    );
    assert_eq!(
        problem("{}"),
        "line 1: a case needs `ask`, or `turns` with one question or more"
    );
    assert_eq!(
        problem(r#"{"id": "a", "turns": [], "expect": {}}"#),
        "line 1: `expect` stands beside each `ask`"
    );
    let twice = "{\"ask\": \"Hi\"}\n// again\n{\"ask\": \"Hi\"}";
    assert_eq!(
        problem(twice),
        "two cases have the id `Hi`: reports and comparisons need ids that differ"
    );
    assert_eq!(
        problem(r#"{"id": "a", "ask": "Hi", "expect": {"schema": {"type": 7}}}"#),
        "case `a`: the schema cannot be used"
    );
    let typo = problem(r#"{"ask": "Hi", "expect": {"contain": "x"}}"#);
    assert!(
        typo.starts_with("line 1: unknown field `contain`, expected one of `equals`, `contains`"),
        "{typo}"
    );
    let call = problem(r#"{"ask": "Hi", "expect": {"calls": [{"tol": "x"}]}}"#);
    assert!(call.contains("one item or a list of items is expected"), "{call}");
    let missing = Dataset::read("/no/such/file").unwrap_err();
    assert_eq!(missing.to_string(), "/no/such/file cannot be read");
    // What a `main` prints that returns the error.
    assert_eq!(
        format!("{missing:?}"),
        "/no/such/file cannot be read: No such file or directory (os error 2)"
    );
}

#[test]
fn each_expectation_says_how_it_was_missed() {
    let calls = [
        MadeCall::new("weather", json!({"city": "Oslo"}), false),
        MadeCall::new("mail", json!({}), true),
    ];
    let answer = Answer::new(" Oslo has 7 degrees. ").with_calls(calls).with_tokens(50);
    let one = |line: &str| {
        let line = format!(r#"{{"ask": "?", "expect": {line}}}"#);
        dataset(&line).cases()[0].turns[0].expect.failures(&answer)
    };
    for held in [
        r#"{}"#,
        r#"{"equals": "Oslo has 7 degrees."}"#,
        r#"{"contains": ["oslo", "7 deg"], "lacks": "Rome", "states": "7.0", "states_any": ["Rome", "OSLO"]}"#,
        r#"{"calls": "weather", "no_calls_of": "news", "max_calls": 2, "max_tokens": 50}"#,
        r#"{"calls": [{"tool": "weather", "arguments": {"city": {"has": "osl"}}}]}"#,
    ] {
        assert_eq!(one(held), Vec::<String>::new(), "{held}");
    }
    for (missed, failure) in [
        (
            r#"{"equals": "Oslo"}"#,
            "the answer is not `Oslo`:  Oslo has 7 degrees. ",
        ),
        (
            r#"{"contains": "Rome"}"#,
            "the answer does not contain `Rome`:  Oslo has 7 degrees. ",
        ),
        (
            r#"{"states": "8"}"#,
            "the answer does not state `8`:  Oslo has 7 degrees. ",
        ),
        (
            r#"{"states_any": ["8", "9"]}"#,
            "the answer states none of `8`, `9`:  Oslo has 7 degrees. ",
        ),
        (
            r#"{"lacks": "OSLO"}"#,
            "the answer contains `OSLO`:  Oslo has 7 degrees. ",
        ),
        (r#"{"calls": "mail"}"#, "no call of `mail` succeeded"),
        (r#"{"calls": ["weather", "weather"]}"#, "no call of `weather` succeeded"),
        (
            r#"{"calls": {"tool": "weather", "arguments": {"city": "Rome"}}}"#,
            "no call of `weather` with {\"city\":\"Rome\"} succeeded",
        ),
        (r#"{"no_calls_of": ["mail"]}"#, "`mail` was called"),
        (r#"{"max_calls": 1}"#, "2 calls were made, and 1 are the most"),
        (
            r#"{"max_tokens": 49}"#,
            "the answer took 50 tokens, and 49 are the most",
        ),
    ] {
        assert_eq!(one(missed), [failure], "{missed}");
    }
    let schema = Expect::default()
        .with_schema(json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}));
    assert!(schema.failures(&Answer::new("{\"n\": 3}")).is_empty());
    let failure = schema.failures(&Answer::new("{\"n\": \"three\"}")).remove(0);
    assert!(failure.starts_with("the answer does not fit the schema ("), "{failure}");
    assert_eq!(schema.failures(&Answer::new("no JSON")).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_goes_wrong_in_a_case_is_its_result_and_the_others_run() {
    let cases = dataset(
        r#"{"ask": "fails"}
           {"ask": "panics"}
           {"id": "late", "ask": "hangs"}
           {"id": "two", "turns": [{"ask": "one", "expect": {"states": "two"}}, {"ask": "fails"}, {"ask": "never asked"}]}
           {"ask": "works"}"#,
    );
    struct Hanging;
    #[async_trait]
    impl Subject for Hanging {
        async fn answer(&self, _: &SessionId, question: &str) -> Result<Answer, BoxError> {
            match question {
                "fails" => Err("the server is away".into()),
                "panics" => unreachable!("on purpose"),
                "hangs" => std::future::pending().await,
                question => echo(question),
            }
        }
    }
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = seen.clone();
    let report = Evaluation::new(cases)
        .with_time_limit(Duration::from_secs(9))
        .with_listener(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
        })
        .run(Hanging)
        .await
        .unwrap();
    let failures: Vec<_> = report
        .results
        .iter()
        .map(|result| (&*result.case, result.failures.join("; ")))
        .collect();
    let expected = [
        ("fails", "no answer: the server is away"),
        (
            "panics",
            "no answer: the subject panicked; its message is on standard error",
        ),
        ("late", "no answer: it took longer than 9s"),
        (
            "two",
            "question 1: the answer does not state `two`: one; question 2: no answer: the server is away",
        ),
        ("works", ""),
    ];
    assert_eq!(failures, expected.map(|(case, failure)| (case, failure.to_owned())));
    assert_eq!(seen.load(Ordering::Relaxed), 5);
    assert!(!report.is_passed());
}

#[tokio::test]
async fn cases_share_neither_a_conversation_nor_a_principal_and_runs_are_counted() {
    let seen: Arc<Mutex<Vec<SessionId>>> = Arc::default();
    struct Noting(Arc<Mutex<Vec<SessionId>>>);
    #[async_trait]
    impl Subject for Noting {
        async fn answer(&self, conversation: &SessionId, question: &str) -> Result<Answer, BoxError> {
            self.0.lock().unwrap().push(conversation.clone());
            echo(question)
        }
    }
    let evaluation = Evaluation::new(dataset(r#"{"id": "a", "turns": [{"ask": "x"}, {"ask": "y"}]}"#)).with_runs(3);
    let report = evaluation.run(Noting(seen.clone())).await.unwrap();
    assert_eq!(
        report.results.iter().map(|result| result.run).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    evaluation.run(Noting(seen.clone())).await.unwrap();
    let sessions = seen.lock().unwrap();
    let different: std::collections::HashSet<_> = sessions.iter().collect();
    assert_eq!((sessions.len(), different.len()), (12, 6));
}

#[tokio::test]
async fn a_judge_decides_about_statements_and_its_silence_is_a_failure() {
    let cases = dataset(
        r#"{"id": "polite", "ask": "a", "expect": {"judge": "The answer is polite."}}
           {"id": "rude", "ask": "b", "expect": {"judge": "The answer is polite."}}
           {"id": "garbled", "ask": "c", "expect": {"judge": "The answer is polite."}}"#,
    );
    let missing = Evaluation::new(cases.clone()).run(Program(echo)).await.unwrap_err();
    assert_eq!(missing, EvaluationError::NoJudge("polite".to_owned()));
    let judge = ScriptedModel::new()
        .says(r#"Here: {"reason": "It says please.", "isTrue": true}"#)
        .says(r#"{"reason": "It shouts.", "isTrue": false}"#)
        .says("I cannot tell.");
    let evaluation = Evaluation::new(cases).with_judge(judge.clone()).with_parallel(1);
    let report = evaluation.run(Program(echo)).await.unwrap();
    let failures: Vec<_> = report.results.iter().map(|result| result.failures.join("")).collect();
    assert_eq!(
        failures,
        [
            "",
            "the judge says that this is not true: `The answer is polite.` (It shouts.)",
            "the judge gave no verdict: I cannot tell.",
        ]
    );
    let asked = judge.requests()[0].messages[1].text().into_owned();
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&asked).unwrap(),
        json!({"question": "a", "answer": "a", "tools": [], "statement": "The answer is polite."})
    );
}

/// Names a city.
#[derive(Deserialize, JsonSchema)]
struct City {
    city: String,
}

#[tokio::test]
async fn an_agent_is_a_subject_with_its_calls_and_an_approving_one_approves() {
    let host = |answer: &str| {
        let model = ScriptedModel::new().calls("book", json!({"city": "Oslo"})).says(answer);
        let book = tool("book", |City { city }| async move { format!("booked {city}") }).needs_approval();
        AgentHost::in_memory().chat(model).tool(book).build().unwrap()
    };
    let cases = dataset(r#"{"ask": "Book!", "expect": {"calls": {"tool": "book", "arguments": {"city": "oslo"}}}}"#);
    let refused = Evaluation::new(cases.clone())
        .run(host("Nobody approved it.").agent().clone())
        .await
        .unwrap();
    assert_eq!(
        refused.results[0].failures,
        ["no call of `book` with {\"city\":\"oslo\"} succeeded"]
    );
    assert_eq!(refused.results[0].answers[0].calls, []);
    let approved = Evaluation::new(cases)
        .run(Approving::new(host("It is done.").agent().clone()))
        .await
        .unwrap();
    assert!(approved.is_passed(), "{approved}");
    let made = [MadeCall::new("book", json!({"city": "Oslo"}), false)];
    assert_eq!(approved.results[0].answers[0].calls, made);
}

fn report() -> Report {
    let answer = Answer::new("x")
        .with_tokens(1_000)
        .with_time(Duration::from_millis(1_500));
    let passed = CaseResult::new("a|b", 1).with_answers([answer.clone()]);
    let failed = CaseResult::new("a|b", 2).with_failures(["it says <no>\nto \"me\" & \u{0}\u{1b}[31m"]);
    let failed = failed.with_answers([answer]);
    Report::new([passed, failed])
}

#[test]
fn a_report_is_a_table_json_and_junit() {
    let text = report().to_string();
    let table = "| case | passed | tokens | seconds | missed |\n|---|---|---|---|---|\n| a\\|b | 1/2 | 2000 | 3.0 | it says <no> to \"me\" & \u{0}\u{1b}[31m |\n\n\
                 1 of 2 runs passed: 50.0 %, with chance 9.5 to 90.5 %. 2000 tokens, $0.000000.";
    assert_eq!(text, table);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), serde_json::to_vec(&report()).unwrap()).unwrap();
    assert_eq!(Report::read(file.path()).unwrap(), report());
    assert!(Report::read("/no/such/file").is_err());
    let junit = report().to_junit();
    assert_eq!(
        junit,
        "<testsuite name=\"rockbot eval\" tests=\"2\" failures=\"1\" time=\"3.000\">\n  \
         <testcase classname=\"eval\" name=\"a|b (run 1)\" time=\"1.500\"/>\n  \
         <testcase classname=\"eval\" name=\"a|b (run 2)\" time=\"1.500\">\n    \
         <failure message=\"it says &lt;no&gt;&#10;to &quot;me&quot; &amp; [31m\">it says &lt;no&gt;\nto &quot;me&quot; &amp; [31m</failure>\n  \
         </testcase>\n</testsuite>"
    );
    assert!(!Report::default().is_passed());
    assert_eq!(
        Report::default().to_string().lines().last(),
        Some("0 of 0 runs passed: 0.0 %, with chance 0.0 to 100.0 %. 0 tokens, $0.000000.")
    );
}

#[test]
fn a_comparison_says_what_changed_and_what_chance_does() {
    let of = |passing: &[&str], failing: &[&str]| {
        let failed = failing
            .iter()
            .map(|case| CaseResult::new(*case, 1).with_failures(["no"]));
        Report::new(passing.iter().map(|case| CaseResult::new(*case, 1)).chain(failed))
    };
    let before = of(&["a", "b", "old"], &["c"]);
    let after = of(&["a", "c", "new"], &["b"]);
    let compared = after.compare(&before);
    assert_eq!(
        compared.to_string(),
        "worse: b (100 % -> 0 %)\nbetter: c (0 % -> 100 %)\nonly before: old\nonly now: new\n1 cases better, 1 worse, 1 the same. \
         Chance alone makes such a difference in 100 % of comparisons: it shows nothing."
    );
    assert!(!compared.is_worse());
    let names: Vec<_> = (0..3_000).map(|case| format!("case {case}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let fell = of(&[], &names).compare(&of(&names, &[]));
    assert_eq!((fell.worse(), fell.is_worse(), fell.chance()), (3_000, true, 0.0));
    assert_eq!(before.compare(&before).chance(), 1.0);
}

#[tokio::test]
async fn a_cassette_replays_a_conversation_and_refuses_a_changed_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("weather.jsonl");
    let ask = async |client: Cassette, question: &str| {
        let weather = tool("weather", |City { city }| async move { format!("{city}: rain") }).pure();
        let host = AgentHost::in_memory().chat(client).tool(weather).build().unwrap();
        host.agent().ask("session", question).await
    };
    let server = ScriptedModel::new()
        .calls("weather", json!({"city": "Oslo"}))
        .says("It rains.");
    let recorded = ask(Cassette::record(&file, server).unwrap(), "Weather, sk-0123456789?")
        .await
        .unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("Weather, [redacted]?") && !text.contains("sk-0123456789"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 3);

    let replayed = ask(Cassette::replay(&file).unwrap(), "Weather, sk-9876543210?")
        .await
        .unwrap();
    assert_eq!((replayed.text, replayed.calls), (recorded.text, recorded.calls));

    let changed = ask(Cassette::replay(&file).unwrap(), "The news?")
        .await
        .unwrap_err()
        .to_string();
    let difference = "`messages[1].content[0].text` was recorded as \"Weather, [redacted]?\", and is now \"The news?\"";
    assert!(changed.contains(difference), "{changed}");
    let asked = rockbot_core::chat::ChatCall::new(
        rockbot_core::chat::ChatRequest::new([ChatMessage::user("The news?")]),
        rockbot_core::CallContext::new("session"),
    );
    let cassette = Cassette::replay(&file).unwrap();
    assert_eq!(cassette.unused(), 2);
    let refused = cassette.chat(asked).await.unwrap_err();
    let words = refused.message();
    assert!(
        words.contains("`messages[0]") && words.ends_with("Record it again if the change is meant"),
        "{words}"
    );
    assert!(!refused.retry_helps());
}

#[tokio::test]
async fn a_cassette_describes_the_models_of_its_server_and_keeps_no_headers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.jsonl");
    let server = ScriptedModel::new().says("One.").says("Two.");
    let cassette = Cassette::record(&file, server)
        .unwrap()
        .with_rewrite(|text| text.replace(char::is_numeric, "#"));
    let ask = |number: u32| {
        let settings = ModelSettings::new()
            .with_extra_header("x-api-key", "hidden")
            .with_temperature(0.5);
        let request = rockbot_core::chat::ChatRequest::new([ChatMessage::user(format!("It is {number}."))]);
        rockbot_core::chat::ChatCall::new(
            request.with_settings(settings),
            rockbot_core::CallContext::new("session"),
        )
    };
    for number in [1, 2] {
        cassette.chat(ask(number)).await.unwrap();
    }
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(
        text.contains("It is #.") && text.contains("0.5") && !text.contains("hidden"),
        "{text}"
    );

    let replayed = Cassette::replay(&file)
        .unwrap()
        .with_rewrite(|text| text.replace(char::is_numeric, "#"));
    assert_eq!(replayed.describe(ModelTier::Low), cassette.describe(ModelTier::Low));
    assert_eq!(replayed.chat(ask(7)).await.unwrap().text, "One.");
    assert_eq!(replayed.chat(ask(8)).await.unwrap().text, "Two.");
    assert_eq!(replayed.unused(), 0);
    let over = replayed.chat(ask(9)).await.unwrap_err();
    assert!(
        over.message().ends_with("asks more often than when it was recorded"),
        "{over}"
    );
}

#[test]
fn a_broken_cassette_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Cassette::replay(folder.path().join("none")).unwrap_err().to_string();
    assert!(
        missing.ends_with("none cannot be read: record it with `Cassette::record`"),
        "{missing}"
    );
    let file = folder.path().join("broken");
    for (text, line) in [("", 1), ("{}", 1), ("{\"cassette\": {}}\n{\"request\": 1", 2)] {
        std::fs::write(&file, text).unwrap();
        let error = Cassette::replay(&file).unwrap_err().to_string();
        assert!(
            error.ends_with(&format!("line {line}: no recording: record it again")),
            "{error}"
        );
    }
    let unwritable = Cassette::record(folder.path(), ScriptedModel::new())
        .unwrap_err()
        .to_string();
    assert!(unwritable.ends_with("cannot be written"), "{unwritable}");
}

proptest::proptest! {
    #[test]
    fn any_text_is_a_dataset_or_an_error_and_any_answer_is_checked(text in "\\PC{0,200}", fact in "\\PC{0,20}") {
        let _ = Dataset::parse(&text);
        let expect = Expect::default().with_states([fact.clone()]).with_contains([fact.clone()]).with_lacks([fact]);
        let _ = expect.failures(&Answer::new(text));
    }
}
