//! The list of tasks that a turn's model keeps: within its turn, after a crash, and invisible to
//! other turns.

use rockbot::testing::ScriptedModel;
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatError, ChatRequest, ChatResponse, ContentPart, ModelInfo, ModelTier, Provenance, Role,
    ToolCall,
};
use rockbot_core::context::Trust;
use rockbot_core::turn::TurnRequest;
use rockbot_host::{AgentHost, AgentHostBuilder, Briefing};
use serde_json::{Value, json};

use crate::crash::{prefixes, read_journal};
use crate::support::{Notes, host_of, noting_tool, results};

/// A briefing with the list alone.
fn list() -> Briefing {
    let mut briefing = Briefing::none();
    briefing.task_list = true;
    briefing
}

fn host(model: &ScriptedModel) -> AgentHostBuilder {
    host_of(model).tool(noting_tool("look").0).briefing(list())
}

fn create(items: &[&str]) -> (&'static str, Value) {
    ("task_create", json!({ "items": items }))
}

fn update(id: i64, status: &str) -> (&'static str, Value) {
    ("task_update", json!({ "id": id, "status": status }))
}

/// Returns the end of a request.
fn closing(request: &ChatRequest) -> String {
    request.messages.last().unwrap().text().into_owned()
}

fn names(request: &ChatRequest) -> Vec<String> {
    request.tools.names().map(ToString::to_string).collect()
}

#[tokio::test]
async fn the_list_stands_at_the_end_of_each_request_as_it_is_then() {
    let model = ScriptedModel::new()
        .calls_all([create(&["Look", "Tell"]), update(1, "in_progress")])
        .calls("look", json!({}))
        .calls_all([update(1, "completed"), update(2, "in_progress")])
        .says("Nothing there.");
    let outcome = host(&model)
        .build()
        .unwrap()
        .agent()
        .ask("s", "What is there?")
        .await
        .unwrap();
    let requests = model.requests();
    assert_eq!(closing(&requests[0]), "What is there?");
    let begun = "Current task list:\n1. [in_progress] Look\n2. [pending] Tell";
    assert_eq!([closing(&requests[1]), closing(&requests[2])], [begun, begun]);
    assert_eq!(
        closing(&requests[3]),
        "Current task list:\n1. [completed] Look\n2. [in_progress] Tell"
    );
    let told = [
        "call_1: The task list has the ids 1 to 2.",
        "call_2: Task 1 is in_progress.",
        "call_3: look is done",
        "call_4: Task 1 is completed.",
        "call_5: Task 2 is in_progress.",
    ];
    assert_eq!(results(&requests[3]), told);
    assert_eq!(outcome.calls.len(), 5);
    for request in &requests {
        assert_eq!(names(request), ["look", "task_create", "task_update"]);
        assert_eq!(
            request.tools.json(),
            requests[0].tools.json(),
            "the tools are the same bytes"
        );
    }
}

#[tokio::test]
async fn what_the_model_wrote_stays_marked_as_its_own() {
    let model = ScriptedModel::new()
        .calls_all([create(&["Look"])])
        .says("Done looking.");
    host(&model).build().unwrap().agent().ask("s", "hi").await.unwrap();
    let request = model.requests()[1].clone();
    let last = request.messages.last().unwrap();
    let parts: Vec<_> = last.content.parts().iter().map(ContentPart::provenance).collect();
    assert_eq!(
        (last.role, parts),
        (Role::User, vec![&Provenance::HOST, &Provenance::MODEL])
    );
    assert_eq!(last.content.parts()[1].provenance().trust, Trust::Untrusted);
}

#[tokio::test]
async fn what_is_wrong_with_a_call_is_told() {
    let many: Vec<_> = (0..51).map(|_| "Look").collect();
    let long = "x".repeat(201);
    for (call, expected) in [
        (
            update(1, "completed"),
            "there is no task 1: the list is empty, write it with `task_create` first",
        ),
        (
            update(1, "done"),
            r#"`status` must be "pending" | "in_progress" | "completed", got the string "done""#,
        ),
        (create(&many), "`items` must have at most 50 items, got 51"),
        (create(&[&long]), "`items/0` must have at most 200 characters, got 201"),
        (
            create(&["Look", " \n"]),
            "item 2 is empty: say in a few words what is to be done",
        ),
    ] {
        let model = ScriptedModel::new().calls_all([call]).says("I see.");
        let outcome = host(&model).build().unwrap().agent().ask("s", "hi").await.unwrap();
        let told = results(&model.requests()[1]);
        assert!(told[0].contains(expected), "{told:?}");
        assert!(outcome.calls[0].is_error);
        assert_eq!(
            model.requests()[1].messages.last().unwrap().role,
            Role::Tool,
            "there is no list"
        );
    }
    let model = ScriptedModel::new()
        .calls_all([create(&["Look"]), update(2, "completed")])
        .says("I see.");
    host(&model).build().unwrap().agent().ask("s", "hi").await.unwrap();
    assert_eq!(
        results(&model.requests()[1])[1],
        "call_2: there is no task 2: the ids are 1 to 1"
    );
}

#[tokio::test]
async fn each_turn_has_its_own() {
    let model = ScriptedModel::new()
        .calls_all([create(&["Look"])])
        .says("Done looking.")
        .calls_all([update(1, "completed")])
        .says("There is none.");
    let host = host(&model).build().unwrap();
    host.agent().ask("s", "one").await.unwrap();
    host.agent().ask("s", "two").await.unwrap();
    let told = results(&model.requests()[3]);
    assert!(
        told[0].starts_with("call_2: there is no task 1: the list is empty"),
        "{told:?}"
    );
}

/// Does the same in every turn, with tasks that are named after its message, and takes its time.
/// It knows nothing but the request, so it can be asked again after a crash.
#[derive(Debug, Clone, Default)]
struct Planner(Notes);

#[async_trait::async_trait]
impl ChatClient for Planner {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        tokio::task::yield_now().await;
        let messages = &call.request.messages;
        let rounds = messages.iter().filter(|message| !message.tool_calls.is_empty()).count();
        let asked = messages
            .iter()
            .find(|message| message.role == Role::User)
            .unwrap()
            .text();
        self.0.add(format!(
            "{asked} {rounds} {}",
            closing(&call.request).replace('\n', " / ")
        ));
        let next: &[(&str, Value)] = match rounds {
            0 => &[
                create(&[&format!("Look for {asked}"), "Tell"]),
                update(1, "in_progress"),
            ],
            1 => &[("look", json!({}))],
            2 => &[update(1, "completed"), update(2, "in_progress")],
            _ => return Ok(ChatResponse::text("Nothing there.")),
        };
        let call = |(index, (tool, arguments)): (usize, &(&str, Value))| {
            ToolCall::new(format!("{rounds}{index}"), *tool, arguments.to_string())
        };
        Ok(ChatResponse::calls(next.iter().enumerate().map(call)))
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

/// Returns what the planner sees in a turn of `asked`, request by request.
fn seen(asked: &str) -> [String; 4] {
    let begun = format!("Current task list: / 1. [in_progress] Look for {asked} / 2. [pending] Tell");
    let done = format!("Current task list: / 1. [completed] Look for {asked} / 2. [in_progress] Tell");
    [asked, &begun, &begun, &done].map(str::to_owned)
}

fn planning(planner: &Planner) -> AgentHostBuilder {
    let looks = noting_tool("look").0;
    AgentHost::in_memory()
        .chat(planner.clone())
        .tool(looks)
        .briefing(list())
}

#[tokio::test]
async fn two_turns_at_once_do_not_see_each_others() {
    let planner = Planner::default();
    let host = planning(&planner).build().unwrap();
    let (one, two) = tokio::join!(host.agent().ask("a", "keys"), host.agent().ask("b", "coins"));
    assert!(one.is_ok() && two.is_ok());
    let notes = planner.0.all();
    for asked in ["keys", "coins"] {
        let own: Vec<_> = notes.iter().filter(|note| note.starts_with(asked)).cloned().collect();
        let expected = seen(asked).into_iter().enumerate();
        assert_eq!(
            own,
            expected
                .map(|(round, end)| format!("{asked} {round} {end}"))
                .collect::<Vec<_>>()
        );
    }
    assert_ne!(
        notes[..4].iter().filter(|note| note.starts_with("keys")).count(),
        4,
        "they ran at once"
    );
}

#[tokio::test]
async fn the_list_survives_a_journal_that_is_cut_after_any_record() {
    let folder = tempfile::tempdir().unwrap();
    let request = TurnRequest::new("s", "m", "keys");
    let host = planning(&Planner::default()).data_dir(folder.path()).build().unwrap();
    host.agent().run(request.clone()).await.unwrap();
    let journal = read_journal(folder.path());
    drop(host);
    let mut cut = 0;
    for (prefix, folder) in prefixes(&journal) {
        let planner = Planner::default();
        let host = planning(&planner).data_dir(folder.path()).build().unwrap();
        let outcome = host.agent().run(request.clone()).await.unwrap();
        assert_eq!(outcome.text, "Nothing there.");
        // However far it was, the rest goes on with the list as it was.
        let notes = planner.0.all();
        let expected = seen("keys");
        for note in &notes {
            let round: usize = note["keys ".len()..][..1].parse().unwrap();
            assert_eq!(note["keys 0 ".len()..], expected[round], "after\n{prefix}");
        }
        cut += usize::from((1..4).contains(&notes.len()));
    }
    assert!(cut >= 10, "most cuts fall within the turn: {cut}");
}

#[tokio::test]
async fn no_other_turn_finds_the_tools() {
    let model = ScriptedModel::new().calls_all([create(&["Look"])]).says("I see.");
    let without = host_of(&model).tool(noting_tool("look").0).build().unwrap();
    let outcome = without.agent().ask("s", "hi").await.unwrap();
    assert!(outcome.calls[0].is_error);
    assert_eq!(names(&model.requests()[0]), ["look"]);
    let told = results(&model.requests()[1]);
    assert!(
        told[0].starts_with("call_1: there is no tool `task_create`"),
        "{told:?}"
    );

    let alone = ScriptedModel::new().says("Hello.");
    host_of(&alone)
        .briefing(Briefing::full())
        .build()
        .unwrap()
        .agent()
        .ask("s", "hi")
        .await
        .unwrap();
    assert!(alone.requests()[0].tools.is_empty(), "a list alone is of no use");
}
