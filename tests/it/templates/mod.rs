//! Requests of all shapes, rendered by the chat templates of many families of models: every part
//! must arrive.
//!
//! A host asks a server on the loopback; what it sends is rendered as a model server would render
//! it, once by each template. The strict templates of this folder are our own and show one rule
//! each. The real ones are read from the folder that `ROCKBOT_TEST_TEMPLATES` names:
//! `.ci/templates` fetches them, and none is part of this repository.
//!
//! `ROCKBOT_TEST_TEMPLATES=$(.ci/templates) cargo test --all-features --test it templates`

mod limits;
mod render;
mod requests;

use rockbot::testing::outside_part;

use self::limits::LIMITS;
use self::render::Family;
use self::requests::{Sent, all_shapes};

/// Templates of our own, each with the rule that it insists on.
const STRICT: [(&str, &str); 7] = [
    ("one system message, the first", include_str!("strict/one_system.jinja")),
    ("roles that take turns", include_str!("strict/turns.jinja")),
    (
        "no user behind a result",
        include_str!("strict/no_user_behind_result.jinja"),
    ),
    (
        "nine letters and digits in an id",
        include_str!("strict/short_ids.jinja"),
    ),
    (
        "tools with properties and one type",
        include_str!("strict/properties.jinja"),
    ),
    ("results behind their calls", include_str!("strict/results.jinja")),
    (ONE_CALL, include_str!("strict/one_call.jinja")),
];

/// The rule of templates whose models need `ParallelToolCalls` = `false`.
const ONE_CALL: &str = "one call in an answer";

/// The second half of the strict templates: shows all of a request.
const SHOW: &str = include_str!("strict/show.jinja");

/// Least number of real templates, so that a broken archive is noticed.
const MIN_FAMILIES: usize = 60;

#[tokio::test]
async fn every_part_arrives_through_strict_templates() {
    let shapes = all_shapes().await;
    for (name, template) in STRICT {
        let family = Family::new(name, &[template, SHOW].concat()).expect("a template of ours");
        let refused = "parallel calls 2: refused: this model only supports single tool-calls at once";
        let expected: &[&str] = if name == ONE_CALL { &[refused] } else { &[] };
        assert_eq!(family.check(&shapes), expected, "{name}");
    }
}

#[tokio::test]
async fn every_part_arrives_through_the_templates_of_real_models() {
    let Some(families) = real_families() else { return };
    let shapes = all_shapes().await;
    let mut problems = Vec::new();
    for (name, family) in &families {
        let known: Vec<_> = LIMITS.iter().filter(|limit| limit.template == name.as_str()).collect();
        let found = match family {
            Ok(family) => family.check(&shapes),
            Err(why) => vec![format!("cannot be parsed: {why}")],
        };
        let unknown = found
            .iter()
            .filter(|found| !known.iter().any(|limit| limit.covers(found)));
        problems.extend(unknown.map(|found| format!("{name}: {found}")));
        let gone = known
            .iter()
            .filter(|limit| !found.iter().any(|found| limit.covers(found)));
        problems.extend(gone.map(|limit| format!("{name}: no longer so, remove it from the limits: {}", limit.what)));
    }
    print_table(&families, &shapes);
    assert!(problems.is_empty(), "{problems:#?}");
}

/// Reads the real templates, if there are any.
fn real_families() -> Option<Vec<(String, Result<Family, String>)>> {
    let folder = outside_part("ROCKBOT_TEST_TEMPLATES", "`.ci/templates` fetches the chat templates")?;
    let mut families: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder of chat templates")
        .map(|entry| entry.expect("an entry of the folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jinja"))
        .map(|path| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("a template is text");
            let family = Family::new(&name, &text);
            (name, family)
        })
        .collect();
    families.sort_by(|one, other| one.0.cmp(&other.0));
    assert!(
        families.len() >= MIN_FAMILIES,
        "{} templates in {folder:?}",
        families.len()
    );
    Some(families)
}

/// Prints which requests arrive whole, for `--nocapture`.
fn print_table(families: &[(String, Result<Family, String>)], shapes: &[Sent]) {
    for (name, family) in families {
        match family {
            Err(why) => println!("{name}: not rendered: {why}"),
            Ok(family) => {
                let failures = family.check(shapes);
                println!(
                    "{name} ({}): {} of {} whole",
                    family.form(),
                    shapes.len() - failures.len(),
                    shapes.len()
                );
            }
        }
    }
}
