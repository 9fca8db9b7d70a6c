//! `SKILL.md` files as they are read and written.

use proptest::prelude::*;
use rockbot_core::Timestamp;
use rockbot_core::chat::Provenance;
use rockbot_core::context::Trust;
use rockbot_core::store::{Skill, StorePath};

use super::document::{SkillFile, SkillFileError};
use super::walk::FoundFiles;

fn parse(fields: &str) -> Result<SkillFile, SkillFileError> {
    SkillFile::parse(&format!("---\n{fields}\n---\n\n# Tea\r\n\nBoil water.\n"))
}

#[track_caller]
fn refused(fields: &str, expected: &str) {
    let error = parse(fields).unwrap_err().to_string();
    assert!(error.contains(expected), "{fields}: {error}");
}

#[test]
fn all_fields_of_the_format_are_read() {
    let file = parse(
        "name: pdf-2-text\ndescription: >\n  Reads PDFs:\n  all of them.\nlicense: Apache-2.0\ncompatibility: Requires git\n\
         metadata:\n  author: ann\n  version: 1.0\n  tags: [a, b]\nallowed-tools: Bash(git:*) Read\nhooks: {x: [1]}\nmodel:",
    )
    .unwrap();
    let fields = [
        ("allowed-tools", "Bash(git:*) Read"),
        ("compatibility", "Requires git"),
        ("license", "Apache-2.0"),
        ("metadata.author", "ann"),
        ("metadata.version", "1.0"),
    ];
    let expected = SkillFile {
        name: "pdf-2-text".to_owned(),
        description: "Reads PDFs: all of them.".to_owned(),
        fields: fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        body: "# Tea\n\nBoil water.".to_owned(),
    };
    assert_eq!(file, expected);
    assert!(!file.is_ours());
    let list = parse("name: a\ndescription: b\nallowed-tools: [Read, Write]").unwrap();
    assert_eq!(list.fields["allowed-tools"], "Read Write");
}

#[test]
fn what_breaks_a_rule_of_the_format_is_refused() {
    for name in [
        "Tea",
        "-tea",
        "tea-",
        "te--a",
        "te a",
        "../tea",
        "tea/x",
        "té",
        &"a".repeat(65),
    ] {
        refused(&format!("name: {name}\ndescription: b"), "cannot name a skill");
    }
    assert!(parse(&format!("name: {}\ndescription: b", "a".repeat(64))).is_ok());
    refused("description: b", "no text `name`");
    refused("name: a", "no text `description`");
    refused("name: a\ndescription: ''", "no text `description`");
    refused("name: a\ndescription: [b]", "no text `description`");
    refused(
        &format!("name: a\ndescription: {}", "é".repeat(1025)),
        "more than 1024 characters",
    );
    assert!(parse(&format!("name: a\ndescription: {}", "é".repeat(1024))).is_ok());
    refused(
        &format!("name: a\ndescription: b\ncompatibility: {}", "c".repeat(501)),
        "more than 500",
    );
    refused("name: a\ndescription: [b", "cannot be read");
    assert_eq!(SkillFile::parse("# Tea"), Err(SkillFileError::NoFrontMatter));
}

fn skill(name: &str, summary: &str, content: &str) -> Skill {
    Skill::new(
        StorePath::new(name).unwrap(),
        content,
        Timestamp::default(),
        Provenance::USER,
    )
    .with_summary(summary)
}

#[test]
fn a_skill_as_others_read_it() {
    let mut email = skill("mcp/E-Mail", "Reads \"mail\".", "# Mail\n\nOpen it.");
    email.metadata = [("license", "MIT"), ("metadata.author", "ann")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let file = SkillFile::of(&email);
    let text = file.to_text();
    let (head, digest) = text.split_once("  \"rockbot-digest\": \"").unwrap();
    let expected = "---\nname: mcp-e-mail\ndescription: \"Reads \\\"mail\\\".\"\nlicense: \"MIT\"\nmetadata:\n  \"author\": \"ann\"\n";
    assert_eq!(head, expected);
    let (_, rest) = digest.split_once('\n').unwrap();
    assert_eq!(rest, "  \"rockbot-name\": \"mcp/E-Mail\"\n---\n\n# Mail\n\nOpen it.\n");
    assert!(SkillFile::parse(&text).unwrap().is_ours());
    assert!(!SkillFile::parse(&text.replace("Open", "Close")).unwrap().is_ours());

    assert_eq!(
        SkillFile::of(&skill("ü/ß", "", "\n## First line\nSecond")).name,
        "skill"
    );
    assert_eq!(
        SkillFile::of(&skill("a", "", "\n## First line\nSecond")).description,
        "First line"
    );
    assert_eq!(SkillFile::of(&skill("a", "", "")).description, "a");
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_it_was(
        name in "[a-zA-Z0-9/ü_. -]{1,90}",
        summary in "\\PC{0,60}|.{0,60}",
        content in "(\\PC|\n){0,80}",
        notes in prop::collection::btree_map("(metadata\\.)(\\PC|[:#\" '\n-]){1,9}", "(\\PC|\n|\t| ){0,20}", 0..4),
    ) {
        prop_assume!(StorePath::new(&name).is_ok());
        let mut skill = skill(&name, &summary, content.trim());
        skill.metadata = notes;
        let read = SkillFile::parse(&SkillFile::of(&skill).to_text()).unwrap();
        prop_assert!(read.is_ours());
        let offer = read.into_managed(Trust::User).unwrap();
        prop_assert_eq!((&offer.name, &offer.content, &offer.metadata), (&skill.name, &skill.content, &skill.metadata));
        if !summary.trim().is_empty() {
            prop_assert_eq!(offer.summary, summary.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
}

proptest! {
    #[test]
    fn an_export_knows_its_own_file(
        summary in "\\PC{0,60}|( ?a){1020,1030}",
        content in "(\\PC|\r|\n| ){0,60}",
        notes in prop::collection::btree_map(
            "license|compatibility|allowed-tools|(metadata\\.)?(rockbot-name|rockbot-digest|a|license|\\PC{0,3})",
            " {0,2}|(\\PC|\r|\n){0,9}|( ?a){498,503}",
            0..5,
        ),
    ) {
        let mut skill = skill("mcp/mail", &summary, &content);
        skill.metadata = notes;
        let text = SkillFile::of(&skill).to_text();
        let read = SkillFile::parse(&text).unwrap();
        prop_assert!(read.is_ours(), "{}", text);
        let offer = read.into_managed(Trust::User).unwrap();
        prop_assert_eq!(&offer.name, &skill.name);
    }
}

#[test]
fn a_folder_of_a_skill_belongs_to_it() {
    let files = [
        "README.md",
        "a-b/SKILL.md",
        "a/SKILL.md",
        "a/refs/SKILL.md",
        "a/x.md",
        "b/notSKILL.md",
        "c/d/SKILL.md",
    ];
    let found = FoundFiles {
        files: files.map(str::to_owned).into(),
        links: Vec::new(),
    };
    let expected = [
        ("a-b/", vec![]),
        ("a/", vec!["refs/SKILL.md".to_owned(), "x.md".to_owned()]),
        ("c/d/", vec![]),
    ];
    assert_eq!(found.skills(), expected);
    let whole = FoundFiles {
        files: ["SKILL.md", "a/SKILL.md"].map(str::to_owned).into(),
        links: Vec::new(),
    };
    assert_eq!(whole.skills(), [("", vec!["a/SKILL.md".to_owned()])]);
}
