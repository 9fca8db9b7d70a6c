//! Code blocks and formulas, whose text is kept as it is.

use super::inline::longest_run;
use crate::html::dom::{Dom, Element, NodeData, NodeId, Step};

/// Maximum length of the name of a language.
const MAX_LANGUAGE: usize = 20;

/// Elements with numbers of lines and buttons beside the code.
const BESIDE_CODE: [&str; 9] = [
    "linenos",
    "lineno",
    "gutter",
    "line-numbers-rows",
    "line-numbers",
    "copy-button",
    "copybtn",
    "rouge-gutter",
    "hljs-ln-numbers",
];

/// Returns the code block as a fenced one, or nothing if it is empty.
pub(super) fn fenced(dom: &Dom, id: NodeId) -> String {
    let text = code_text(dom, id);
    let text = text.trim_end().trim_start_matches(['\n', '\r']);
    if text.trim().is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    let language = language(dom, id).unwrap_or_default();
    format!("{fence}{language}\n{text}\n{fence}")
}

/// Returns the text of a formula: its TeX where the page has it.
pub(super) fn math(dom: &Dom, id: NodeId) -> String {
    let is_tex = |element: &Element| element.text_of("encoding").eq_ignore_ascii_case("application/x-tex");
    let annotated = dom.walk(id).find_map(|step| match step {
        Step::Enter(inner) if dom.element(inner).is_some_and(is_tex) => Some(dom.text(inner)),
        _ => None,
    });
    let stated = || dom.element(id)?.attribute("alttext").map(str::to_owned);
    match annotated.or_else(stated) {
        Some(tex) => format!(" ${}$ ", tex.trim()),
        None => dom.text(id),
    }
}

fn code_text(dom: &Dom, id: NodeId) -> String {
    let mut text = String::new();
    let mut walk = dom.walk(id);
    while let Some(step) = walk.next() {
        match step {
            Step::Enter(inner) => match &dom[inner].data {
                NodeData::Text(own) => text.push_str(own),
                NodeData::Element(element) if &*element.name == "br" => text.push('\n'),
                NodeData::Element(element) if &*element.name == "button" || is_beside(element) => walk.skip_children(),
                NodeData::Element(_) => {}
            },
            // Some highlighters have an element for each line.
            Step::Leave(inner) if matches!(dom.name(inner), "div" | "li" | "tr" | "p") => end_line(&mut text),
            Step::Leave(_) => {}
        }
    }
    text.replace("\r\n", "\n").replace('\u{a0}', " ")
}

fn end_line(text: &mut String) {
    if !text.ends_with('\n') {
        text.push('\n');
    }
}

fn is_beside(element: &Element) -> bool {
    BESIDE_CODE.iter().any(|class| element.has_class(class))
}

/// Returns the language mark of the block, of an element in it or of an element around it.
fn language(dom: &Dom, id: NodeId) -> Option<String> {
    let code = dom.children(id).find(|child| dom.name(*child) == "code");
    let around = dom.ancestors(id).take(3);
    let marked = [id].into_iter().chain(code).chain(around);
    marked.filter_map(|id| dom.element(id)).find_map(language_of)
}

fn language_of(element: &Element) -> Option<String> {
    let stated = ["data-lang", "data-language"]
        .into_iter()
        .find_map(|name| element.attribute(name));
    let classes = element.text_of("class");
    let mut words = classes.split_ascii_whitespace();
    let prefixes = ["language-", "lang-", "highlight-source-", "highlight-", "brush:"];
    let named = || words.find_map(|word| prefixes.iter().find_map(|prefix| word.strip_prefix(prefix)));
    let is_source = ["sourceCode", "codehilite", "prettyprint"]
        .iter()
        .any(|class| element.has_class(class));
    let second = || is_source.then(|| classes.split_ascii_whitespace().find(|word| is_name(word)))?;
    let name = stated
        .or_else(named)
        .or_else(second)?
        .trim_end_matches(';')
        .to_ascii_lowercase();
    let is_none = matches!(
        &*name,
        "none" | "default" | "notranslate" | "text" | "plaintext" | "code" | "wrap"
    );
    (is_name(&name) && !is_none).then_some(name)
}

fn is_name(word: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '#' | '.');
    let is_marker = matches!(
        word,
        "sourceCode" | "codehilite" | "prettyprint" | "linenums" | "numberSource"
    );
    !is_marker && !word.is_empty() && word.len() <= MAX_LANGUAGE && word.chars().all(is_plain)
}
