//! A report in the form of JUnit.

use quick_xml::Writer;
use quick_xml::events::BytesText;

use crate::report::{CaseResult, Report};

impl Report {
    /// Returns the report as an XML document in the form of JUnit, which services for continuous
    /// integration read.
    pub fn to_junit(&self) -> String {
        document(self)
    }
}

fn document(report: &Report) -> String {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 2);
    let failures = report.results.len() - report.passed();
    let time: f64 = report.results.iter().map(|result| result.time().as_secs_f64()).sum();
    writer
        .create_element("testsuite")
        .with_attribute(("name", "rockbot eval"))
        .with_attribute(("tests", report.results.len().to_string().as_str()))
        .with_attribute(("failures", failures.to_string().as_str()))
        .with_attribute(("time", format!("{time:.3}").as_str()))
        .write_inner_content(|writer| report.results.iter().try_for_each(|result| case(writer, result)))
        .expect("a Vec takes everything");
    String::from_utf8_lossy(&writer.into_inner()).into_owned()
}

fn case(writer: &mut Writer<Vec<u8>>, result: &CaseResult) -> std::io::Result<()> {
    let name = format!("{} (run {})", visible(&result.case), result.run);
    let time = format!("{:.3}", result.time().as_secs_f64());
    let element = writer
        .create_element("testcase")
        .with_attribute(("classname", "eval"))
        .with_attribute(("name", name.as_str()))
        .with_attribute(("time", time.as_str()));
    let Some(first) = result.failures.first() else {
        element.write_empty()?;
        return Ok(());
    };
    let all = visible(&result.failures.join("\n"));
    element.write_inner_content(|writer| {
        let failure = writer
            .create_element("failure")
            .with_attribute(("message", visible(first).as_str()));
        failure.write_text_content(BytesText::new(&all)).map(drop)
    })?;
    Ok(())
}

/// Returns a text without the characters that a document of XML cannot have.
fn visible(text: &str) -> String {
    let is_allowed =
        |char: char| matches!(char, '\t' | '\n' | '\r' | ' '..) && !matches!(char, '\u{fffe}' | '\u{ffff}');
    text.chars().filter(|char| is_allowed(*char)).collect()
}
