use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::tool_services::announcement::Announcement;
use crate::tool_services::descriptor::DescriptorFile;

fn file(place: &str, text: &str) -> DescriptorFile {
    let name = place.rsplit('/').next().unwrap_or(place);
    DescriptorFile {
        place: place.to_owned(),
        kind: None,
        key: name.trim_end_matches(".json").to_owned(),
        text: Ok(text.as_bytes().to_vec()),
    }
}

fn service(id: &str) -> DescriptorFile {
    file(
        &format!("tool-service/{id}.json"),
        &json!({"id": id, "topic": id}).to_string(),
    )
}

fn tool_text(name: &str, service: &str) -> String {
    json!({"type": "tool-service", "name": name, "description": "Works.", "service": service}).to_string()
}

fn tool(name: &str, service: &str) -> DescriptorFile {
    file(&format!("tool/{name}.json"), &tool_text(name, service))
}

/// Returns the names of the tools, and the problems.
fn outcome(files: &DescriptorFiles, announced: &Announcements) -> (Vec<String>, Vec<String>) {
    let derived = derive(files.layer(), &announced.layers());
    (
        derived.tools.iter().map(|tool| tool.descriptor.name.clone()).collect(),
        derived.problems.iter().map(ToString::to_string).collect(),
    )
}

fn names(files: &DescriptorFiles) -> Vec<String> {
    outcome(files, &Announcements::default()).0
}

#[test]
fn a_bad_descriptor_takes_no_other_down() {
    let mut files = DescriptorFiles::default();
    let all = [
        service("joke"),
        file("tool-service/bad.json", "{"),
        tool("tell", "joke"),
        tool("lost", "nowhere"),
        file("tool/again.json", &tool_text("tell", "joke")),
        file("tool/other.json", r#"{"type": "prompt", "name": "p"}"#),
    ];
    assert!(files.update(all.to_vec()));
    assert!(!files.update(all.to_vec()), "nothing has changed");
    let (names, problems) = outcome(&files, &Announcements::default());
    assert_eq!(names, ["tell"]);
    assert_eq!(
        problems,
        [
            "`tool-service/bad.json`: it is not JSON: EOF while parsing an object at line 1 column 1",
            "`tool/other.json`: field `type` is `prompt`: only tools of type `tool-service` are loaded from descriptors",
            "`tool/lost.json`: field `service` is `nowhere`: no tool service has this key or id",
            "`tool/tell.json`: field `name` is `tell`, the name of the tool in `tool/again.json`: rename one of the two",
        ]
    );
}

#[test]
fn services_and_tools_are_both_kept_when_one_of_them_changes() {
    let mut files = DescriptorFiles::default();
    files.update(vec![service("joke")]);
    assert_eq!(names(&files), Vec::<String>::new());
    files.update(vec![service("joke"), tool("tell", "joke")]);
    assert_eq!(names(&files), ["tell"]);
    files.update(vec![service("joke"), service("calc"), tool("tell", "joke")]);
    assert_eq!(names(&files), ["tell"]);
    files.update(vec![service("calc"), tool("tell", "joke")]);
    assert_eq!(names(&files), Vec::<String>::new(), "its service is gone");
}

#[test]
fn a_descriptor_that_becomes_unreadable_keeps_its_last_form() {
    let mut files = DescriptorFiles::default();
    files.update(vec![service("joke"), tool("tell", "joke")]);
    for broken in ["{", r#"{"id": "joke"}"#] {
        files.update(vec![file("tool-service/joke.json", broken), tool("tell", "joke")]);
        let (names, problems) = outcome(&files, &Announcements::default());
        assert_eq!((names, problems.len()), (vec!["tell".to_owned()], 1));
    }
    files.update(vec![tool("tell", "joke")]);
    assert_eq!(names(&files), Vec::<String>::new(), "its file is gone");
}

fn offer(instance: &str, tool: &str) -> Announcement {
    let body = json!({
        "instance": instance,
        "lease-ms": 1000,
        "tool-service": {"joke": {"id": "joke", "topic": "joke"}},
        "tool": {tool: serde_json::from_str::<serde_json::Value>(&tool_text(tool, "joke")).unwrap()},
    });
    Announcement::parse(body.to_string().as_bytes()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn announced_tools_last_as_long_as_a_lease() {
    let files = DescriptorFiles::default();
    let mut announced = Announcements::default();
    let began = Instant::now();
    assert!(announced.take(offer("a", "tell"), began));
    assert!(
        !announced.take(offer("a", "tell"), began),
        "a heartbeat changes nothing"
    );
    let half = began + Duration::from_millis(500);
    assert!(announced.take(offer("b", "tell"), half));
    assert_eq!(
        outcome(&files, &announced),
        (vec!["tell".to_owned()], Vec::new()),
        "two processes, one tool"
    );
    assert!(announced.expire(began + Duration::from_secs(1)));
    assert_eq!(outcome(&files, &announced).0, ["tell"]);
    assert!(announced.take(
        Announcement::parse(br#"{"instance": "b", "lease-ms": 0}"#).unwrap(),
        half
    ));
    assert_eq!(outcome(&files, &announced).0, Vec::<String>::new());
    assert_eq!(announced.next_expiry(), None);
}

#[tokio::test(start_paused = true)]
async fn a_tool_of_the_operator_goes_before_an_announced_one() {
    let mut files = DescriptorFiles::default();
    let mut announced = Announcements::default();
    files.update(vec![service("calc"), tool("tell", "calc")]);
    announced.take(offer("a", "tell"), Instant::now());
    let derived = derive(files.layer(), &announced.layers());
    assert_eq!(derived.tools.len(), 1);
    assert_eq!(
        (derived.tools[0].request.topic(), derived.tools[0].is_announced),
        ("tg.request.calc".to_owned(), false)
    );
    assert_eq!(derived.problems.len(), 1);
}

#[test]
fn messages_of_other_forms_are_no_announcements() {
    for body in [
        "",
        "[]",
        "{}",
        r#"{"instance": ""}"#,
        r#"{"instance": "a"}"#,
        r#"{"instance": "a", "lease-ms": -1}"#,
    ] {
        assert!(Announcement::parse(body.as_bytes()).is_none(), "{body}");
    }
    assert!(matches!(
        Announcement::parse(br#"{"wanted": true}"#),
        Some(Announcement::Wanted)
    ));
}
