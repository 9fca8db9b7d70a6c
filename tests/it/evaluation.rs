//! `rockbot eval`: the questions of a dataset, asked of the agent of the settings.

use rockbot::eval::Report;

use crate::example_programs::{OFFLINE, example, text};

const CASES: &str = r#"
{"id": "sum", "ask": "What is (2 + 3) * 4?", "expect": {"states": "20", "calls": "calculate"}}
{"id": "wrong", "ask": "What is 2 + 2?", "expect": {"states": "5"}}
"#;

/// Runs `rockbot eval` with these words behind the dataset. Returns exit code, standard output and
/// standard error.
async fn evaluate(folder: &std::path::Path, cases: &str, words: &[&str]) -> (Option<i32>, String, String) {
    std::fs::write(folder.join("cases.jsonl"), cases).unwrap();
    let mut command = example("chat", &[&["eval", "cases.jsonl"], words].concat(), folder);
    let output = command.env(OFFLINE.0, OFFLINE.1).output().await.unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test]
async fn an_evaluation_prints_a_table_writes_reports_and_tells_by_its_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words = [
        "--runs",
        "2",
        "--parallel",
        "1",
        "--json",
        "before.json",
        "--junit",
        "report.xml",
    ];
    let (code, out, err) = evaluate(folder, CASES, &words).await;
    assert_eq!(code, Some(1), "{err}");
    assert!(
        out.contains("| sum | 2/2 |") && out.contains("| wrong | 0/2 |"),
        "{out}"
    );
    assert!(
        out.contains("2 of 4 runs passed: 50.0 %, with chance 15.0 to 85.0 %."),
        "{out}"
    );
    assert!(
        err.contains("1/4 sum: passed\n2/4 sum: passed\n3/4 wrong: failed"),
        "{err}"
    );
    let report = Report::read(folder.join("before.json")).unwrap();
    assert_eq!((report.passed(), report.results.len()), (2, 4));
    let junit = std::fs::read_to_string(folder.join("report.xml")).unwrap();
    assert!(
        junit.contains("<testsuite name=\"rockbot eval\" tests=\"4\" failures=\"2\""),
        "{junit}"
    );

    let (code, out, _) = evaluate(folder, CASES, &["--case", "sum"]).await;
    assert_eq!(code, Some(0), "{out}");
    assert!(!out.contains("wrong"), "{out}");

    let (code, out, _) = evaluate(folder, CASES, &["--against", "before.json"]).await;
    assert_eq!(code, Some(0), "nothing got worse: {out}");
    assert!(
        out.ends_with("0 cases better, 0 worse, 2 the same. Nothing changed.\n"),
        "{out}"
    );
}

#[tokio::test]
async fn a_wrong_dataset_or_report_is_refused_before_a_question_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (code, out, err) = evaluate(folder, r#"{"ask": "Hi", "expect": {"stats": "x"}}"#, &[]).await;
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("error: line 1: unknown field `stats`"), "{err}");
    let (_, _, err) = evaluate(folder, CASES, &["--against", "none.json"]).await;
    assert!(err.contains("error: none.json is no report"), "{err}");
    let (_, _, err) = evaluate(folder, CASES, &["--case", "nothing like it"]).await;
    assert!(err.contains("error: no case has this text in its id"), "{err}");
}
