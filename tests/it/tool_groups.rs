//! Tools that a model sees on demand: groups that it activates, and tools that appear when a
//! result needs them.

use std::path::Path;
use std::time::Duration;

use rockbot_core::Principal;
use rockbot_core::chat::{ChatRequest, Provenance};
use rockbot_core::config::Config;
use rockbot_core::store::LongTermMemory;
use rockbot_core::testing::ScriptedModel;
use rockbot_core::tool::{Tool, ToolGroup, tool};
use rockbot_host::settings::HostSettings;
use rockbot_host::{AgentHost, AgentHostBuilder, TurnError, TurnPolicies};
use rockbot_memory::Memory;
use serde_json::json;

use crate::support::{Anything, host_of, results};

fn named(name: &'static str) -> Tool {
    tool(name, |_: Anything| async { "done" })
        .description("Does it.")
        .pure()
}

/// A host with one tool that is always shown, and groups of two and of one.
fn host(model: &ScriptedModel) -> AgentHostBuilder {
    let files = ToolGroup::new("files", "reading and writing files").with_guide("# Files\n\nRead first.");
    let mail = ToolGroup::new("mail", "sending mail");
    host_of(model)
        .tool(named("read_file").on_demand(&files))
        .tool(named("add"))
        .tool(named("send").on_demand(&mail))
        .tool(named("write_file").on_demand(&files))
}

fn shown(request: &ChatRequest) -> Vec<&str> {
    request.tools.names().map(|name| name.as_str()).collect()
}

fn activates(model: ScriptedModel, group: &str) -> ScriptedModel {
    model.calls("activate_tools", json!({ "group": group }))
}

#[tokio::test]
async fn a_group_is_one_line_until_the_model_activates_it() {
    let model = activates(activates(ScriptedModel::new(), "files"), "mial").says("done");
    let host = host(&model).build().unwrap();
    host.agent().ask("s", "Go.").await.unwrap();
    let requests = model.requests();
    assert_eq!(shown(&requests[0]), ["add", "activate_tools"]);
    let all = ["add", "activate_tools", "read_file", "write_file"];
    assert_eq!([shown(&requests[1]), shown(&requests[2])], [all, all]);
    assert_eq!(
        results(&requests[2]),
        [
            "call_1: You have these tools now: read_file, write_file.\n\n# Files\n\nRead first.",
            "call_2: there is no group `mial`. The groups are: files, mail",
        ]
    );
    let before = requests[0].tools.json();
    let after = requests[1].tools.json();
    let end = before.len() - 1;
    assert_eq!(before[..end], after[..end], "the cached beginning stays valid");
    insta::assert_snapshot!(std::str::from_utf8(before).unwrap());
}

#[tokio::test]
async fn a_group_stays_active_in_its_conversation_across_a_restart_and_in_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let model = activates(activates(ScriptedModel::new(), "mail"), "files")
        .says("done")
        .says("hi")
        .says("hi");
    let first = host(&model).data_dir(folder.path()).build().unwrap();
    for (session, text) in [("s", "Go."), ("other", "Hi."), ("s", "Hi.")] {
        first.agent().ask(session, text).await.unwrap();
    }
    let requests = model.requests();
    let all = ["add", "activate_tools", "send", "read_file", "write_file"];
    assert_eq!(shown(&requests[2]), all);
    assert_eq!(shown(&requests[3]), ["add", "activate_tools"]);
    assert_eq!(shown(&requests[4]), all);
    assert_eq!(
        requests[2].tools.json(),
        requests[4].tools.json(),
        "the same bytes, which are cached"
    );
    first.shutdown(Duration::from_secs(1)).await;
    drop(first);

    let model = ScriptedModel::new().says("hi").says("hi");
    let second = host(&model).data_dir(folder.path()).build().unwrap();
    second.agent().ask("s", "Hi.").await.unwrap();
    second.agent().ask("s", "Hi.").await.unwrap();
    assert_eq!([shown(&model.requests()[0]), shown(&model.requests()[1])], [all, all]);
}

#[tokio::test]
async fn a_turn_that_resumes_has_the_groups_that_it_activated() {
    let folder = tempfile::tempdir().unwrap();
    let open = |model: &ScriptedModel| {
        let pay = named("pay").needs_approval();
        host(model).tool(pay).data_dir(folder.path()).build().unwrap()
    };
    let model = activates(ScriptedModel::new(), "mail").calls("pay", json!({}));
    let first = open(&model);
    let Err(TurnError::NeedsApproval(parked)) = first.agent().ask("s", "Pay.").await else {
        panic!("the payment waits for a person");
    };
    first.shutdown(Duration::from_secs(1)).await;
    drop((first, model));

    let model = ScriptedModel::new().says("paid");
    let second = open(&model);
    second.start().await.unwrap();
    let waiting = second.agent().approvals();
    second.agent().decide(waiting[0].approve()).await.unwrap();
    assert_eq!(second.agent().outcome(&parked.turn).await.unwrap().text, "paid");
    assert_eq!(shown(&model.requests()[0]), ["add", "pay", "activate_tools", "send"]);
}

#[tokio::test]
async fn all_tools_are_shown_where_the_host_wants_that() {
    let model = ScriptedModel::new().says("hi").says("hi");
    let off = TurnPolicies::new().with_tools_on_demand(false);
    let shows_all = host(&model).policies(off).build().unwrap();
    shows_all.agent().ask("s", "Hi.").await.unwrap();
    let config = Config::new().with_text("agent.json", r#"{"AgentHost": {"ToolsOnDemand": false}}"#);
    let folder = tempfile::tempdir().unwrap();
    let settings = HostSettings::read(&config.unwrap(), folder.path()).unwrap();
    let by_setting = host(&model).settings(&settings).build().unwrap();
    by_setting.agent().ask("s", "Hi.").await.unwrap();
    let all = ["read_file", "add", "send", "write_file"];
    assert_eq!([shown(&model.requests()[0]), shown(&model.requests()[1])], [all, all]);
}

#[tokio::test]
async fn tools_that_read_long_results_appear_with_the_first_one() {
    let long = || {
        tool("dump", |_: Anything| async { "word ".repeat(20_000) })
            .description("Dumps.")
            .pure()
    };
    let model = ScriptedModel::new().calls("dump", json!({})).says("long").says("hi");
    let host = host_of(&model).tool(long()).add(Memory::default()).build().unwrap();
    host.agent().ask("s", "Dump it.").await.unwrap();
    host.agent().ask("s", "Hi.").await.unwrap();
    let readers = ["get_from_working_memory", "search_tool_output"];
    let reads = |request: &ChatRequest| readers.map(|reader| shown(request).contains(&reader));
    let seen: Vec<_> = model.requests().iter().map(|request| reads(request)).collect();
    assert_eq!(seen, [[false; 2], [true; 2], [true; 2]]);
}

#[tokio::test]
async fn a_shown_entry_brings_the_tool_that_reads_it() {
    let keep = json!({"key": "shared/plan", "data": "Meet at noon."});
    let model = ScriptedModel::new()
        .calls("save_to_working_memory", keep)
        .says("kept")
        .says("hi");
    let host = host_of(&model).add(Memory::default()).build().unwrap();
    host.agent().ask("a", "Keep it.").await.unwrap();
    host.agent().ask("b", "What is the plan?").await.unwrap();
    let seen = model
        .requests()
        .iter()
        .map(|request| shown(request).contains(&"get_from_working_memory"))
        .collect::<Vec<_>>();
    assert_eq!(seen, [false, true, true]);
}

#[tokio::test]
async fn activating_tools_taints_nothing() {
    let model = activates(ScriptedModel::new(), "memory")
        .calls("save_memory", json!({"content": "Ann likes tea."}))
        .says("saved");
    let host = host_of(&model).add(Memory::default()).build().unwrap();
    host.agent().ask("s", "Remember that Ann likes tea.").await.unwrap();
    let memory = host.parts().get::<dyn LongTermMemory>().unwrap();
    let entries = memory.list(&Principal::default()).await.unwrap();
    assert_eq!(entries[0].provenance, Provenance::USER);
}

/// Tokens as this workspace estimates them: 4 bytes each.
fn tokens(request: &ChatRequest) -> usize {
    let tools = request.tools.json().len();
    let messages: usize = request.messages.iter().map(|message| message.text().len()).sum();
    (tools + messages) / 4
}

#[tokio::test]
async fn memory_costs_a_first_request_little() {
    let first = async |builder: AgentHostBuilder, model: &ScriptedModel| {
        let host = builder.build().unwrap();
        host.agent().ask("s", "What is 17 * 23?").await.unwrap();
        let request = model.requests().remove(0);
        (request.tools.names().count(), tokens(&request))
    };
    let model = ScriptedModel::new().says("391");
    let bare = first(host_of(&model), &model).await;
    let model = ScriptedModel::new().says("391");
    let (tools, all) = first(host_of(&model).add(Memory::default()), &model).await;
    assert!(tools <= 6, "{tools} tools");
    assert!(all - bare.1 <= 480, "{} tokens", all - bare.1);
}

#[tokio::test]
async fn nothing_is_recalled_for_a_question_that_no_memory_fits() {
    let folder = tempfile::tempdir().unwrap();
    let fill = async |folder: &Path| {
        let model = ScriptedModel::new();
        let _ = model
            .clone()
            .calls("save_memory", json!({"content": "Ann likes tea."}))
            .says("saved");
        let host = host_of(&model).data_dir(folder).add(Memory::default()).build().unwrap();
        host.agent().ask("s", "Remember it.").await.unwrap();
        host.shutdown(Duration::from_secs(1)).await;
    };
    fill(folder.path()).await;
    let model = ScriptedModel::new().says("391");
    let host: AgentHost = host_of(&model)
        .data_dir(folder.path())
        .add(Memory::default())
        .build()
        .unwrap();
    host.agent().ask("new", "What is 17 * 23?").await.unwrap();
    let request = &model.requests()[0];
    let texts: Vec<_> = request
        .messages
        .iter()
        .map(|message| message.text().into_owned())
        .collect();
    assert_eq!(texts[1..], ["What is 17 * 23?"]);
}
