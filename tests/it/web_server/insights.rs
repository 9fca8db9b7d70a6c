//! A look into what the agent knows and does for a user: each user's own, and no other's.

use std::sync::Arc;

use rockbot::memory::dreams::DreamPass;
use rockbot::memory::{DreamOptions, Dreaming, Dreams, Memory};
use rockbot::tools::scheduling::{Schedules, Scheduling};
use rockbot::tools::wisps::Wisps;
use rockbot_core::content::Provenance;
use rockbot_core::store::{
    LongTermMemory, MemoryEntry, Rule, RulesStore, Skill, SkillStore, StorePath, WorkingMemory, WorkingNote,
};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::{Principal, Timestamp};
use rockbot_host::AgentHost;
use serde_json::{Value, json};

use super::client::User;
use super::{Serving, server};
use crate::support::noting_tool;

/// Stands in everything that is Ann's.
const OWN: &str = "Ann likes tea";

/// All routes that show what is a user's.
const ROUTES: [&str; 11] = [
    "/api/memories",
    "/api/memories?query=tea&archived=true",
    "/api/skills",
    "/api/skills?query=tea",
    "/api/rules",
    "/api/working-memory",
    "/api/working-memory?query=tea",
    "/api/schedules",
    "/api/search?query=tea",
    "/api/runs",
    "/api/dreams",
];

/// Asks, and returns the turn once it has ended.
async fn asked(user: &User, session: &str, text: &str) -> String {
    let path = format!("/api/sessions/{session}/messages");
    let posted = user.post(&path, &json!({"content": text})).await.json();
    let turn = posted["turn"].as_str().unwrap().to_owned();
    user.events(&format!("/api/turns/{turn}/events"), None)
        .await
        .all()
        .await;
    turn
}

/// Stores something of Ann's in every store.
pub(super) async fn fill(host: &AgentHost) {
    let ann = Principal::from("ann");
    let now = Timestamp::default();
    let parts = host.parts();
    let path = |text| StorePath::new(text).unwrap();
    let memories = parts.require::<dyn LongTermMemory>().unwrap();
    let entry = MemoryEntry::new("m1", OWN, now, Provenance::USER);
    memories.save(&ann, entry).await.unwrap();
    let old = MemoryEntry::new("m2", "Ann liked tea once.", now, Provenance::TOOL);
    memories.save(&ann, old.with_archived_at(now)).await.unwrap();
    let skills = parts.require::<dyn SkillStore>().unwrap();
    let skill = Skill::new(path("tea/brew"), "Warm the pot.", now, Provenance::USER).with_summary(OWN);
    skills.save(&ann, skill).await.unwrap();
    let rules = parts.require::<dyn RulesStore>().unwrap();
    rules.add(&ann, Rule::new(OWN).unwrap()).await.unwrap();
    rules.set_time_zone(&ann, "Europe/Oslo").await.unwrap();
    let working = parts.require::<dyn WorkingMemory>().unwrap();
    let note = WorkingNote::new(
        path("session/a/tea"),
        format!("{OWN} {}", "x".repeat(2000)),
        Provenance::USER,
    );
    working.put(&ann, vec![note]).await.unwrap();
    let schedules = parts.require::<Schedules>().unwrap().of("ann");
    schedules.schedule("tea", "0 16 * * *", OWN).await.unwrap();
}

pub(super) fn kitchen(model: &ScriptedModel) -> rockbot_host::AgentHostBuilder {
    let others = DreamPass::ALL.into_iter();
    let others = others.filter(|pass| *pass != DreamPass::MemoryConsolidation);
    let options = DreamOptions::default().with_disabled(others);
    AgentHost::in_memory()
        .chat(model.clone())
        .add(Memory::default())
        .add(Dreaming::new().with_options(options))
        .add(Scheduling::new())
        .tool(noting_tool("pay").0.needs_approval())
}

#[tokio::test]
async fn users_look_into_their_own_and_into_nothing_of_others() {
    let model = ScriptedModel::new().says("Tea it is.").calls("pay", json!({"n": 7}));
    let serving = Serving::start(kitchen(&model).add(server())).await;
    fill(&serving.host).await;
    let [ann, bob] = [serving.ann(), serving.bob()];
    asked(&ann, "main", &format!("{OWN}.")).await;
    let parked = ann.post("/api/sessions/till/messages", &json!({"content": OWN})).await;
    let turn = parked.json()["turn"].as_str().unwrap().to_owned();
    let mut events = ann.events(&format!("/api/turns/{turn}/events"), None).await;
    events.until("approval_needed").await;

    for route in &ROUTES[..10] {
        let shown = ann.get(route).await;
        assert_eq!(shown.status, 200, "{route}: {shown:?}");
        assert!(shown.body.contains("Ann like"), "{route}: {}", shown.body);
    }
    for route in ROUTES {
        let shown = bob.get(route).await;
        assert_eq!(shown.status, 200, "{route}: {shown:?}");
        let list = shown.json().as_object().unwrap().values().next().unwrap().clone();
        assert_eq!(list, json!([]), "{route}");
    }
    for route in ["/api/skills/tea/brew", "/api/working-memory/session/a/tea"] {
        assert_eq!(bob.get(route).await.summary(), "404 not_found", "{route}");
    }
    assert_eq!(bob.get("/api/costs?session=main").await.json()["session"]["calls"], 0);
    serving.stop().await;
}

#[tokio::test]
async fn the_routes_tell_what_a_page_shows() {
    let model = ScriptedModel::new().says("Tea it is.");
    let serving = Serving::start(kitchen(&model).add(server())).await;
    fill(&serving.host).await;
    let ann = serving.ann();
    let turn = asked(&ann, "main", "What shall I drink?").await;
    let me = ann.get("/api/me").await.json();
    let parts = json!([
        "costs",
        "memories",
        "skills",
        "rules",
        "working-memory",
        "schedules",
        "dreams"
    ]);
    let expected = json!({"principal": "ann", "agent": "agent", "agents": [], "isOperator": false, "parts": parts});
    assert_eq!(me, expected);

    let memories = |listed: Value| listed["memories"].as_array().unwrap().len();
    assert_eq!(memories(ann.get("/api/memories").await.json()), 1);
    assert_eq!(memories(ann.get("/api/memories?archived=true").await.json()), 2);
    assert_eq!(memories(ann.get("/api/memories?query=coffee").await.json()), 0);
    let skills = ann.get("/api/skills").await.json();
    let listed = &skills["skills"][0];
    assert_eq!(
        (&listed["name"], &listed["summary"], &listed["content"]),
        (&json!("tea/brew"), &json!(OWN), &Value::Null)
    );
    assert_eq!(ann.get("/api/skills/tea/brew").await.json()["content"], "Warm the pot.");
    let rules = json!({"rules": [OWN], "timeZone": "Europe/Oslo"});
    assert_eq!(ann.get("/api/rules").await.json(), rules);
    let notes = ann.get("/api/working-memory").await.json();
    let note = &notes["entries"][0];
    assert_eq!(note["value"].as_str().unwrap().len(), 1000);
    assert_eq!(note["length"], OWN.len() + 2001);
    let note = ann.get("/api/working-memory/session/a/tea").await.json();
    assert_eq!(note["value"].as_str().unwrap().len(), OWN.len() + 2001);

    let schedules = ann.get("/api/schedules").await.json();
    let task = &schedules["tasks"][0];
    assert_eq!((&task["name"], &task["when"]), (&json!("tea"), &json!("0 16 * * *")));
    assert!(task["next"].as_i64().unwrap() > 0);
    assert_eq!(ann.get("/api/runs").await.json(), json!({"runs": []}));
    let costs = ann.get("/api/costs?session=main").await.json();
    assert_eq!(
        (&costs["total"]["calls"], &costs["session"]["calls"]),
        (&json!(1), &json!(1))
    );

    let found = ann.get("/api/search?query=drink").await.json();
    let found = &found["found"][0];
    assert_eq!(
        (&found["session"], &found["turn"], &found["excerpt"]),
        (&json!("main"), &json!(turn), &json!("What shall I drink?"))
    );
    serving.stop().await;
}

#[tokio::test]
async fn parts_that_a_host_lacks_are_not_found() {
    let serving = Serving::of(&ScriptedModel::new()).await;
    let ann = serving.ann();
    assert_eq!(ann.get("/api/me").await.json()["parts"], json!(["costs"]));
    for route in [
        "memories",
        "skills",
        "skills/a",
        "rules",
        "working-memory",
        "schedules",
        "wisps",
        "dreams",
    ] {
        assert_eq!(
            ann.get(&format!("/api/{route}")).await.summary(),
            "404 not_found",
            "{route}"
        );
    }
    serving.stop().await;
}

#[tokio::test]
async fn users_look_at_the_wisps_that_ran_for_them() {
    let look = json!([{"description": "Look around.", "steps": [{"id": "look", "tool": "look"}]}]);
    let model = ScriptedModel::new()
        .calls("activate_tools", json!({"group": "wisps"}))
        .calls("spawn_wisps", json!({"definitions": look}))
        .says("Done.");
    let host = AgentHost::in_memory().chat(model).tool(noting_tool("look").0);
    let serving = Serving::start(host.add(Memory::default()).add(Wisps::new()).add(server())).await;
    let [ann, bob] = [serving.ann(), serving.bob()];
    asked(&ann, "main", "Look.").await;
    let shown = ann.get("/api/wisps").await.json();
    let table = shown["table"].as_str().unwrap();
    let row: Vec<_> = table.lines().last().unwrap().split(" | ").collect();
    assert_eq!(row[2..5], ["Look around.", "ok", "1 of 1"]);
    let path = format!("/api/wisps/{}", row[0].trim_start_matches("| "));
    assert_eq!(ann.get(&path).await.json()["description"], "Look around.");
    assert_eq!(bob.get("/api/wisps").await.json(), json!({}));
    assert_eq!(bob.get(&path).await.summary(), "404 not_found");
    serving.stop().await;
}

pub(super) const MERGE: &str =
    r#"{"toSave": [{"content": "Miso the cat likes tuna and sleeps on the couch.", "sourceIds": ["a", "b"]}]}"#;

/// Lets the agent make a plan about Ann's memories.
pub(super) async fn dreamt(serving: &Serving) -> String {
    let memories = serving.host.parts().require::<dyn LongTermMemory>().unwrap();
    for (id, text) in [
        ("a", "The cat Miso likes tuna and sleeps on the chesterfield."),
        ("b", "Miso the cat likes tuna and sleeps on the couch."),
    ] {
        let entry = MemoryEntry::new(id, text, Timestamp::default(), Provenance::USER);
        memories.save(&"ann".into(), entry).await.unwrap();
    }
    // Dreams are about the principals who have said something.
    asked(&serving.ann(), "main", "Hello.").await;
    let dreams: Arc<Dreams> = serving.host.parts().require().unwrap();
    dreams.dream().await.unwrap();
    let plans = serving.ann().get("/api/dreams").await.json();
    plans["plans"][0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn operators_apply_and_undo_their_dreams() {
    let model = ScriptedModel::new().says("Hello.").says(MERGE);
    let serving = Serving::start(kitchen(&model).add(server().operator("ann").operator("bob"))).await;
    let [ann, bob] = [serving.ann(), serving.bob()];
    let id = dreamt(&serving).await;
    let plan = &ann.get("/api/dreams").await.json()["plans"][0];
    assert_eq!(
        (&plan["state"], &plan["canBeApplied"], &plan["canBeUndone"]),
        (&json!("proposed"), &json!(true), &json!(false))
    );
    let changes = plan["changes"].as_array().unwrap();
    assert!(changes[0].as_str().unwrap().starts_with("+ ["), "{changes:?}");

    // An operator decides about the own plans alone.
    let path = |step| format!("/api/dreams/{id}/{step}");
    assert_eq!(bob.get("/api/dreams").await.json(), json!({"plans": []}));
    assert_eq!(bob.post(&path("apply"), &json!({})).await.summary(), "404 not_found");

    assert_eq!(ann.post(&path("undo"), &json!({})).await.summary(), "409 conflict");
    assert_eq!(ann.post(&path("apply"), &json!({})).await.json()["state"], "applied");
    let memories = ann.get("/api/memories?archived=true").await.body;
    assert!(memories.contains("supersededBy"), "{memories}");
    assert_eq!(ann.post(&path("apply"), &json!({})).await.summary(), "409 conflict");
    let undone = ann.post(&path("undo"), &json!({})).await.json();
    assert_eq!(
        (&undone["state"], &undone["canBeApplied"]),
        (&json!("undone"), &json!(true))
    );
    let memories = ann.get("/api/memories?archived=true").await.body;
    assert!(!memories.contains("supersededBy"), "{memories}");
    serving.stop().await;
}

#[tokio::test]
async fn users_who_are_no_operators_read_their_dreams_alone() {
    let model = ScriptedModel::new().says("Hello.").says(MERGE);
    let serving = Serving::start(kitchen(&model).add(server().operator("bob"))).await;
    let id = dreamt(&serving).await;
    let ann = serving.ann();
    for step in ["apply", "undo"] {
        let refused = ann.post(&format!("/api/dreams/{id}/{step}"), &json!({})).await;
        assert_eq!(refused.summary(), "403 operators_only");
    }
    assert_eq!(ann.get("/api/dreams").await.json()["plans"][0]["state"], "proposed");
    serving.stop().await;
}

#[tokio::test]
async fn on_a_server_without_users_the_person_at_the_machine_is_an_operator() {
    let open = rockbot::web_server::WebServer::new().listen("127.0.0.1:0");
    let serving = Serving::start(AgentHost::in_memory().chat(ScriptedModel::new()).add(open)).await;
    let me = User::new(serving.address, "").get("/api/me").await.json();
    assert_eq!((&me["principal"], &me["isOperator"]), (&json!("local"), &json!(true)));
    serving.stop().await;
}
