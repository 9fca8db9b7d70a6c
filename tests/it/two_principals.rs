//! Two principals of one host: neither reads or changes what is the other's, whatever door it
//! tries.

use std::path::Path;
use std::sync::Arc;

use rockbot_core::chat::ChatClient;
use rockbot_core::context::Trust;
use rockbot_core::messaging::{Bus, DeadLetters};
use rockbot_core::store::{
    ConversationTurn, FeedbackStore, LongTermMemory, PastCall, RulesStore, SkillStore, TimelineStore, WorkingMemory,
};
use rockbot_core::testing::ScriptedModel;
use rockbot_core::turn::{ApprovalRequest, TurnOutcome, TurnStatus};
use rockbot_core::user::{UserFeedback, UserProxy};
use rockbot_core::{Principal, Timestamp, TurnId};
use rockbot_host::bus::{InProcessBus, InProcessBusOptions};
use rockbot_host::{Agent, AgentHost, AgentHostBuilder, Stores, TurnError};
use rockbot_memory::{Memory, SqliteMemory};
use serde_json::{Value, json};

use crate::support::{host_of, noting_tool, results, settle};

const ANN: &str = "ann";
const BOB: &str = "bob";

/// Stands in everything that is Ann's.
const SECRET: &str = "ANNS-OWN";

/// Names by which Bob may hope to reach a session of Ann's.
const SESSIONS: [&str; 10] = [
    "s",
    "ann/s",
    "@ann/s",
    "@%61nn/s",
    "../@ann/s",
    "@ann",
    "local/s",
    "s.json",
    "@bob/../@ann/s",
    "ann\u{0}s",
];

struct World {
    host: AgentHost,
    model: ScriptedModel,
}

impl World {
    fn open(folder: Option<&Path>) -> Self {
        Self::with(Memory::default(), |builder| match folder {
            Some(folder) => builder.data_dir(folder),
            None => builder,
        })
    }

    /// All stores in one database.
    fn in_database(folder: &Path) -> Self {
        let stores = SqliteMemory::open(folder.join("agent.db")).unwrap();
        let memory = Memory::default()
            .long_term(stores.long_term)
            .working(stores.working)
            .skills(stores.skills, stores.skill_usage)
            .rules(stores.rules)
            .feedback(stores.feedback);
        let kept = Stores::new().with_conversation_memory(stores.conversations);
        Self::with(memory, |builder| builder.stores(kept))
    }

    fn with(memory: Memory, change: impl FnOnce(AgentHostBuilder) -> AgentHostBuilder) -> Self {
        let model = ScriptedModel::new();
        let builder = host_of(&model)
            .add(memory)
            .give::<dyn ChatClient>(Arc::new(ScriptedModel::new()))
            .tool(noting_tool("pay").0.needs_approval());
        Self {
            host: change(builder).build().unwrap(),
            model,
        }
    }

    fn agent(&self, principal: &str) -> Agent {
        self.host.agent().for_principal(principal)
    }

    /// Lets the model of `principal` call a tool, and returns the end of the turn with what the model
    /// was told.
    async fn call(&self, principal: &str, session: &str, tool: &str, arguments: Value) -> (TurnOutcome, String) {
        let _ = self.model.clone().calls(tool, arguments).says("done");
        let agent = self.agent(principal);
        let outcome = agent.run(agent.request(session, "go")).await.unwrap();
        let told = results(self.model.requests().last().unwrap());
        (outcome, told.join("\n"))
    }

    /// Everything that is stored for `principal`, in one text.
    async fn state(&self, principal: &str) -> String {
        let me = Principal::from(principal);
        let parts = self.host.parts();
        let facts = parts.get::<dyn LongTermMemory>().unwrap().list(&me).await.unwrap();
        let mut facts: Vec<_> = facts
            .iter()
            .map(|fact| (fact.content.clone(), fact.is_live()))
            .collect();
        facts.sort();
        let skills = parts.get::<dyn SkillStore>().unwrap().list(&me).await.unwrap();
        let skills: Vec<_> = skills
            .iter()
            .map(|skill| (skill.content.clone(), skill.is_live()))
            .collect();
        let rules = parts.get::<dyn RulesStore>().unwrap();
        let zone = rules.time_zone(&me).await.unwrap();
        let rules = rules.list(&me).await.unwrap();
        let notes = parts.get::<dyn WorkingMemory>().unwrap().list(&me, None).await.unwrap();
        let mut notes: Vec<_> = notes
            .iter()
            .map(|note| (note.key.clone(), note.value.clone()))
            .collect();
        notes.sort();
        let agent = self.agent(principal);
        let mut said = Vec::new();
        let mut sessions = agent.sessions().await.unwrap();
        sessions.sort();
        for session in sessions {
            let history = agent.history(session.clone()).await.unwrap();
            said.push((
                session,
                history
                    .iter()
                    .map(|entry| entry.content.to_string())
                    .collect::<Vec<_>>(),
            ));
        }
        format!("{facts:?} {skills:?} {zone:?} {rules:?} {notes:?} {said:?}")
    }

    /// Gives Ann something of each kind, and a turn that waits for her. Returns the id of her memory,
    /// the waiting call and a turn that has ended.
    async fn furnish(&self) -> (String, ApprovalRequest, TurnId) {
        let secret = |text: &str| format!("{SECRET} {text}");
        let writes = [
            ("save_skill", json!({"name": "mail", "content": secret("skill")})),
            ("change_rules", json!({"add": secret("rule")})),
            ("set_timezone", json!({"timezone_id": "Europe/Paris"})),
            (
                "save_to_working_memory",
                json!({"key": "shared/note", "data": secret("note"), "ttl_minutes": 60}),
            ),
            (
                "save_to_working_memory",
                json!({"key": "own", "data": secret("own"), "ttl_minutes": 60}),
            ),
            (
                "save_memory",
                json!({"content": secret("fact"), "category": "anns/own"}),
            ),
        ];
        let mut last = None;
        for (tool, arguments) in writes {
            last = Some(self.call(ANN, "s", tool, arguments).await);
        }
        let (ended, told) = last.unwrap();
        let id = told.split('`').nth(1).unwrap().to_owned();
        let _ = self.model.clone().calls("pay", json!({"n": 7}));
        let ann = self.agent(ANN);
        let parked = ann.run(ann.request("t", "go")).await.unwrap();
        let TurnStatus::Parked(asks) = parked.status else {
            panic!("the call waits for Ann: {parked:?}")
        };
        (id, asks[0].clone(), ended.turn)
    }
}

/// The calls by which a model of Bob's may reach for what is Ann's.
fn reaching(id: &str) -> Vec<(&'static str, Value)> {
    let mut calls = vec![
        ("search_memory", json!({"query": ""})),
        ("search_memory", json!({"query": "fact", "with_archived": true})),
        ("search_memory", json!({"query": "", "category": "anns"})),
        ("save_memory", json!({"id": id, "content": "Bob was here."})),
        ("archive_memory", json!({"id": id})),
        ("restore_memory", json!({"id": id})),
        ("get_skill", json!({"name": "mail"})),
        ("get_skill", json!({})),
        (
            "edit_skill",
            json!({"name": "mail", "old_string": "skill", "new_string": "Bob"}),
        ),
        ("delete_skill", json!({"name": "mail"})),
        ("restore_skill", json!({"name": "mail"})),
        ("change_rules", json!({})),
        ("change_rules", json!({"remove": format!("{SECRET} rule")})),
        ("list_working_memory", json!({"namespace": "*"})),
        ("list_working_memory", json!({"namespace": "shared"})),
        ("search_working_memory", json!({"query": "note own", "namespace": "*"})),
        ("search_tool_output", json!({"query": "own"})),
    ];
    for key in [
        "shared/note",
        "own",
        "session/s/own",
        "@ann/shared/note",
        "ann/shared/note",
        "../ann/shared/note",
    ] {
        calls.push(("get_from_working_memory", json!({"key": key})));
        calls.push(("delete_from_working_memory", json!({"key": key})));
        let edit = json!({"key": key, "old_string": "own", "new_string": "Bob"});
        calls.push(("edit_working_memory", edit));
    }
    calls
}

/// Returns `true` if a conversation of Bob's has more of Ann's than his model wrote itself, as
/// arguments of a call.
fn has_leaked(entries: &[ConversationTurn]) -> bool {
    let count = |text: &str| text.matches(SECRET).count();
    let is_leak = |call: &PastCall| count(&call.result.text()) > count(&call.arguments);
    entries.iter().any(|entry| {
        let mut calls = entry.rounds.iter().flat_map(|round| &round.calls);
        count(&entry.content.text()) > 0 || calls.any(is_leak)
    })
}

async fn check(world: World) {
    let (id, ask, ended) = world.furnish().await;
    let before = world.state(ANN).await;
    assert!(before.matches(SECRET).count() >= 5, "{before}");
    let bob = world.agent(BOB);

    for (tool, arguments) in reaching(&id) {
        for session in ["s", "@ann/s"] {
            let at = format!("{tool} {arguments} in {session}");
            let (outcome, told) = world.call(BOB, session, tool, arguments.clone()).await;
            // What Bob's model wrote itself is his own.
            let own = arguments.to_string().matches(SECRET).count();
            assert!(
                told.matches(SECRET).count() <= own && !outcome.text.contains(SECRET),
                "{at}: {told}"
            );
            let shown = world
                .model
                .requests()
                .last()
                .unwrap()
                .messages
                .iter()
                .any(|message| message.tool_calls.is_empty() && message.text().contains(SECRET));
            assert!(!shown || own > 0, "{at}: recalled");
            assert_eq!(world.state(ANN).await, before, "{at}");
        }
    }
    for session in SESSIONS {
        let history = bob.history(session).await;
        assert!(
            !has_leaked(history.as_deref().unwrap_or_default()),
            "{session:?}: {history:?}"
        );
        let export = bob.conversation(session).export().await;
        let exported = export.as_ref().map_or(&[][..], |export| &export.entries);
        assert!(!has_leaked(exported), "{session:?}: {export:?}");
        let _ = bob.reset(session).await;
        assert_eq!(world.state(ANN).await, before, "reset of {session:?}");
    }
    assert!(!format!("{:?}", bob.sessions().await.unwrap()).contains("\"t\""));

    assert_eq!(bob.approvals(), []);
    for turn in [&ask.turn, &ended] {
        let read = bob.outcome(turn).await;
        assert!(matches!(read, Err(TurnError::NotFound(_))), "{read:?}");
        let cancelled = bob.cancel(turn).await;
        assert!(matches!(cancelled, Err(TurnError::NotFound(_))), "{cancelled:?}");
    }
    for decision in [ask.approve(), ask.deny("no"), ask.approve().by_user(ANN)] {
        let decided = bob.decide(decision).await;
        assert!(matches!(decided, Err(TurnError::NoSuchApproval { .. })), "{decided:?}");
    }
    assert_eq!(world.state(ANN).await, before);

    // What is refused to Bob is open to Ann.
    let ann = world.agent(ANN);
    assert_eq!(ann.approvals(), std::slice::from_ref(&ask));
    let _ = world.model.clone().says("paid");
    ann.decide(ask.approve()).await.unwrap();
    assert_eq!(ann.outcome(&ask.turn).await.unwrap().status, TurnStatus::Answered);
    assert_eq!(ann.outcome(&ended).await.unwrap().turn, ended);
    let (_, told) = world.call(ANN, "u", "search_memory", json!({"query": "fact"})).await;
    assert!(told.contains(SECRET), "{told}");
}

#[tokio::test]
async fn no_door_leads_to_another_principal_in_memory() {
    check(World::open(None)).await;
}

#[tokio::test]
async fn no_door_leads_to_another_principal_in_files() {
    let folder = tempfile::tempdir().unwrap();
    check(World::open(Some(folder.path()))).await;
}

#[tokio::test]
async fn no_door_leads_to_another_principal_in_a_database() {
    let folder = tempfile::tempdir().unwrap();
    check(World::in_database(folder.path())).await;
}

/// Bob's doors over a bus. He is authenticated as himself on a trusted bus; on an untrusted one
/// he claims to be Ann.
async fn check_over_a_bus(trust: Trust, claims: &str) {
    let bus = InProcessBus::with_options(InProcessBusOptions::default().with_trust(trust));
    let world = World::with(Memory::default(), |builder| builder.bus(bus.clone()).serve_users());
    world.host.start().await.unwrap();
    let (id, ask, _) = world.furnish().await;
    let before = world.state(ANN).await;
    let spent = world.host.spending().of_principal(&ANN.into());
    let bob = UserProxy::new(Arc::new(bus.clone()) as Arc<dyn Bus>, "bob").with_user_id(claims);

    for session in SESSIONS {
        let shown = bob.history(session).await;
        assert!(
            !format!("{shown:?}").contains(SECRET),
            "{trust:?}, {session:?}: {shown:?}"
        );
    }
    for (tool, arguments) in reaching(&id) {
        let at = format!("{trust:?}: {tool} {arguments}");
        let _ = world.model.clone().calls(tool, arguments.clone()).says("done");
        let reply = bob.send("s", "go").await.unwrap();
        assert_eq!(reply.content, "done", "{at}");
        let own = arguments.to_string().matches(SECRET).count();
        let told = results(world.model.requests().last().unwrap()).join("\n");
        assert!(told.matches(SECRET).count() <= own, "{at}: {told}");
        assert_eq!(world.state(ANN).await, before, "{at}");
    }
    for decision in [ask.approve(), ask.deny("no"), ask.approve().by_user(claims)] {
        bob.decide(&decision).await.unwrap();
    }
    let liked = UserFeedback::new("s", "m", true).with_user_id(claims);
    let _ = bob.feedback(&liked).await;
    // A message that cannot be answered becomes a dead letter, which is the operator's alone.
    let blank = bob.send("s", " ").await.unwrap();
    assert!(!blank.content.text().contains(SECRET));
    settle().await;
    assert_eq!(
        world.agent(ANN).approvals(),
        std::slice::from_ref(&ask),
        "Ann's call still waits"
    );
    assert_eq!(world.state(ANN).await, before);
    assert_eq!(
        world.host.spending().of_principal(&ANN.into()),
        spent,
        "Bob pays for himself"
    );
    let letters = bus.dead_letters(100).await.unwrap();
    assert!(
        !letters.is_empty() && !format!("{letters:?}").contains(SECRET),
        "{letters:?}"
    );
    let feedback = world.host.parts().get::<dyn FeedbackStore>().unwrap();
    let of_ann = feedback
        .query_recent(&ANN.into(), Timestamp::from_millis(0), 100)
        .await
        .unwrap();
    assert_eq!(of_ann, []);
}

#[tokio::test(start_paused = true)]
async fn no_door_of_a_bus_leads_to_another_principal() {
    check_over_a_bus(Trust::User, BOB).await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_claimed_on_an_untrusted_bus_opens_no_door() {
    check_over_a_bus(Trust::Untrusted, ANN).await;
}

/// A small generator of numbers, so that a failing interleaving can be run again.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// The `n`th thing that a principal does, in one of two sessions.
fn step(kind: u64, n: usize) -> (&'static str, Value) {
    match kind {
        0 => ("save_memory", json!({"content": format!("Fact number {n}.")})),
        1 => ("change_rules", json!({"add": format!("Rule number {n}.")})),
        2 => (
            "save_skill",
            json!({"name": "mail", "content": format!("Skill number {n}.")}),
        ),
        3 => (
            "save_to_working_memory",
            json!({"key": "shared/note", "data": format!("{n}"), "ttl_minutes": 60}),
        ),
        4 => ("change_rules", json!({"remove": format!("Rule number {}.", n / 2)})),
        _ => ("delete_from_working_memory", json!({"key": "shared/note"})),
    }
}

#[tokio::test]
async fn in_two_hundred_interleavings_each_has_what_it_would_have_alone() {
    for seed in 0..200 {
        let mut numbers = Numbers(seed);
        let steps: Vec<_> = (0..10)
            .map(|n| {
                let who = [ANN, BOB][numbers.below(2) as usize];
                let session = ["s", "@bob/s"][numbers.below(2) as usize];
                (who, session, step(numbers.below(6), n))
            })
            .collect();
        let both = World::open(None);
        let alone = [World::open(None), World::open(None)];
        for (who, session, (tool, arguments)) in &steps {
            both.call(who, session, tool, arguments.clone()).await;
            let own = &alone[usize::from(*who == BOB)];
            own.call(who, session, tool, arguments.clone()).await;
        }
        for (who, own) in [(ANN, &alone[0]), (BOB, &alone[1])] {
            assert_eq!(
                both.state(who).await,
                own.state(who).await,
                "{who}, seed {seed}: {steps:?}"
            );
        }
    }
}
