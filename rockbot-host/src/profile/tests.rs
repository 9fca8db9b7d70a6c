//! Profiles, from text and from files.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use rockbot_core::AgentIdentity;
use tempfile::TempDir;

use super::*;

/// `text` has this preamble and these sections, and stays whole.
#[track_caller]
fn check(text: &str, preamble: Option<&str>, sections: &[(&str, &str)]) {
    let document = AgentProfileDocument::parse("soul", text);
    let section = |section: &AgentProfileSection| (section.name.clone(), section.content.clone());
    let found: Vec<_> = document.sections().iter().map(section).collect();
    let found: Vec<_> = found.iter().map(|(name, content)| (&**name, &**content)).collect();
    assert_eq!((document.preamble(), &*found), (preamble, sections));
    assert_eq!(document.raw(), text.trim_start_matches('\u{feff}'));
}

#[test]
fn a_document_is_cut_at_headings_of_the_second_level() {
    check("", None, &[]);
    check(" \n\t\r\n", None, &[]);
    check("just text", Some("just text"), &[]);
    check(
        "# Title\n## One\n1\n## Two\n2",
        Some("# Title\n"),
        &[("One", "1\n"), ("Two", "2")],
    );
    check("\n## One  \n\n1\n", None, &[("One", "\n1\n")]);
    check("## One", None, &[("One", "")]);
    check("## \n## Two ##\n", None, &[("", ""), ("Two ##", "")]);
    check(
        "## One\n### Deeper\n##Close\n ## Indented\n##\tTab\n",
        None,
        &[("One", "### Deeper\n##Close\n ## Indented\n##\tTab\n")],
    );
    check("## ## Twice\n", None, &[("## Twice", "")]);
}

#[test]
fn windows_line_ends_and_byte_order_marks_are_no_obstacle() {
    check(
        "\u{feff}## One\r\n1\r\n## Two\r\n",
        None,
        &[("One", "1\r\n"), ("Two", "")],
    );
    check("\u{feff}Hello\r\n", Some("Hello\r\n"), &[]);
}

#[test]
fn a_heading_inside_a_fence_is_text() {
    let fenced = "```md\n## Not one\n```\n";
    check(&format!("{fenced}## One\n{fenced}"), Some(fenced), &[("One", fenced)]);
    let nested = "````\n```\n## Not one\n``` \n````\r\n";
    check(&format!("{nested}## One\n"), Some(nested), &[("One", "")]);
    let other_info = "```\n``` not the end\n## Not one\n```\n";
    check(&format!("{other_info}## One\n"), Some(other_info), &[("One", "")]);
    let open = "   ```\n## Not one\n";
    check(open, Some(open), &[]);
    check("    ```\n## One\n", Some("    ```\n"), &[("One", "")]);
    check("``\n## One\n", Some("``\n"), &[("One", "")]);
    check(
        "```not` a fence```\n## One\n",
        Some("```not` a fence```\n"),
        &[("One", "")],
    );
}

proptest! {
    /// Preamble, headings and contents are the text, in their order and without a gap.
    #[test]
    fn nothing_of_a_document_is_lost(lines in prop::collection::vec("(## |### |```|````|\u{feff})?[ `#aß\t]{0,5}(\r\n|\n)", 0..20)) {
        let document = AgentProfileDocument::parse("soul", lines.concat());
        let mut rest = document.raw();
        let first = document.preamble().unwrap_or_else(|| {
            let end = if document.sections().is_empty() { rest.len() } else { rest.find("## ").unwrap() };
            &rest[..end]
        });
        rest = rest.strip_prefix(first).unwrap();
        for section in document.sections() {
            let (heading, below) = rest.split_once('\n').unwrap();
            prop_assert_eq!(heading.strip_prefix("## ").unwrap().trim(), &section.name);
            rest = below.strip_prefix(&*section.content).unwrap();
        }
        prop_assert_eq!(rest, "");
    }
}

#[test]
fn a_section_is_found_in_any_case_and_the_first_one_counts() {
    let profile = AgentProfile::new([
        AgentProfileDocument::parse("soul", "## Überzeugungen\nsoul"),
        AgentProfileDocument::parse("style", "## ÜBERZEUGUNGEN\nstyle\n## Tone\ndry"),
    ]);
    let find = |name: &str| profile.find_section(name).map(|section| section.content.as_str());
    assert_eq!(find("überzeugungen"), Some("soul"));
    assert_eq!(find("TONE"), Some("dry"));
    assert_eq!(find("ton"), None);
    assert_eq!(
        profile.document("style").map(|document| document.sections().len()),
        Some(2)
    );
    assert_eq!(profile.document("Style"), None);
}

/// A folder with these files.
fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        std::fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

fn prompt_of(folder: &Path) -> Result<SystemPrompt, ProfileError> {
    let identity = AgentIdentity::new("Ada");
    SystemPrompt::of_profile(
        AgentProfileOptions::new(folder),
        Arc::new(DefaultSystemPromptBuilder),
        identity,
    )
}

const SOUL: (&str, &[u8]) = ("soul.md", b"# Soul\n\nBe kind.\n\n## Values\n\nHonesty.\n\n");
const DIRECTIVES: (&str, &[u8]) = ("directives.md", b"\xEF\xBB\xBFWork.\r\n\r\nRest.\r\n");
const MEMORY_RULES: (&str, &[u8]) = ("memory-rules.md", b"Remember names. \t\n");
const STYLE: (&str, &[u8]) = ("style.md", b"  Be short.");

#[test]
fn the_prompt_is_the_name_and_the_documents() {
    let all = folder(&[STYLE, MEMORY_RULES, DIRECTIVES, SOUL]);
    let expected = "You are Ada.\n\n\
        # Soul\n\nBe kind.\n\n## Values\n\nHonesty.\n\n\
        Work.\r\n\r\nRest.\n\n\
        Remember names.\n\n  \
        Be short.";
    let prompt = prompt_of(all.path()).unwrap();
    assert_eq!(&*prompt.current(), expected);
    assert_eq!(
        prompt_of(all.path()).unwrap().current(),
        prompt.current(),
        "every time the same"
    );
    let profile = prompt.profile().unwrap();
    let names: Vec<_> = profile.documents().iter().map(AgentProfileDocument::name).collect();
    assert_eq!(names, ["soul", "directives", "memory-rules", "style"]);

    let least = folder(&[SOUL, DIRECTIVES, ("style.md", b" \n")]);
    let expected = "You are Ada.\n\n# Soul\n\nBe kind.\n\n## Values\n\nHonesty.\n\nWork.\r\n\r\nRest.";
    assert_eq!(&*prompt_of(least.path()).unwrap().current(), expected);
}

#[test]
fn names_are_the_operators_own() {
    let all = folder(&[STYLE, MEMORY_RULES, DIRECTIVES, SOUL]);
    let elsewhere = folder(&[("other.md", b"Else.")]);
    let options = AgentProfileOptions {
        directives: elsewhere.path().join("other.md"),
        memory_rules: Some("nowhere.md".into()),
        style: None,
        ..AgentProfileOptions::new(all.path())
    };
    let profile = AgentProfile::load(&options).unwrap();
    let texts: Vec<_> = profile
        .documents()
        .iter()
        .map(|document| (document.name(), document.raw()))
        .collect();
    assert_eq!(
        texts,
        [("soul", std::str::from_utf8(SOUL.1).unwrap()), ("directives", "Else.")]
    );
}

/// Loading these files fails with this message; `{}` is the folder.
#[track_caller]
fn check_error(files: &[(&str, &[u8])], message: &str) {
    let folder = folder(files);
    let error = prompt_of(folder.path()).unwrap_err();
    assert_eq!(
        error.to_string(),
        message.replace("{}", &folder.path().display().to_string())
    );
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_its_purpose() {
    check_error(
        &[DIRECTIVES],
        "there is no `{}/soul.md`: write one that says who the agent is: its identity, values and character",
    );
    check_error(
        &[SOUL],
        "there is no `{}/directives.md`: write one that says how the agent works here: its instructions",
    );
    check_error(
        &[SOUL, DIRECTIVES, ("style.md", b"\xE4h")],
        "`{}/style.md`, which says how the agent sounds, is not UTF-8 text: save it as UTF-8 (invalid utf-8 sequence \
         of 1 bytes from index 0)",
    );
    let largest = vec![b'a'; MAX_PROFILE_FILE_BYTES as usize];
    let too_large = [&*largest, b"a"].concat();
    check_error(
        &[("soul.md", &largest), DIRECTIVES, ("memory-rules.md", &too_large)],
        "`{}/memory-rules.md`, which says when and how the agent remembers, is larger than 1048576 bytes: every \
         request begins with it, so shorten it",
    );
}

#[test]
fn a_folder_in_the_place_of_a_file_cannot_be_read() {
    let folder = folder(&[SOUL, DIRECTIVES]);
    std::fs::create_dir(folder.path().join("style.md")).unwrap();
    let error = prompt_of(folder.path()).unwrap_err();
    let expected = folder.path().join("style.md");
    assert!(
        matches!(&error, ProfileError::Unreadable { path, .. } if *path == expected),
        "{error}"
    );
}

#[test]
fn a_missing_file_in_a_relative_folder_is_named_from_the_root_on() {
    let error = AgentProfile::load(&AgentProfileOptions::new("no such folder")).unwrap_err();
    let expected = std::env::current_dir().unwrap().join("no such folder/soul.md");
    assert!(
        matches!(&error, ProfileError::Missing { path, .. } if *path == expected),
        "{error}"
    );
}

#[test]
fn a_reload_takes_what_changed_and_keeps_the_last_good_one() {
    let folder = folder(&[SOUL, DIRECTIVES]);
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let prompt = prompt_of(folder.path()).unwrap();
    let first = prompt.current();
    assert!(!prompt.reload().unwrap());

    write("style.md", "Rhyme.");
    assert!(prompt.reload().unwrap());
    let second = prompt.current();
    assert_eq!(*second, format!("{first}\n\nRhyme."));

    write("style.md", "Rhyme.\n\n");
    assert!(!prompt.reload().unwrap(), "the text is the same");
    std::fs::remove_file(folder.path().join("soul.md")).unwrap();
    write("style.md", "Shout.");
    assert!(matches!(prompt.reload(), Err(ProfileError::Missing { .. })));
    assert_eq!(prompt.current(), second);
    assert_eq!(prompt.profile().unwrap().document("style").unwrap().raw(), "Rhyme.\n\n");
}

#[test]
fn a_fixed_prompt_stays() {
    let prompt = SystemPrompt::fixed("Just be.");
    assert!(!prompt.reload().unwrap());
    assert_eq!((&*prompt.current(), prompt.profile()), ("Just be.", None));
}
