//! Random trees of agents that call each other: children answer, fail, hang or ask for an
//! approval, within any budget, and the process is killed after any record.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rockbot_core::chat::{
    ChatCall, ChatClient, ChatError, ChatErrorKind, ChatResponse, ModelInfo, ModelTier, ToolCall,
};
use rockbot_core::tool::Effect;
use rockbot_core::turn::{Budget, TurnOutcome, TurnQuery, TurnRequest, TurnRunner, TurnStatus};
use rockbot_host::{Agent, AgentHost};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::crash::{prefixes, read_journal};
use crate::support::{Notes, noting_tool, results};

/// An agent of a tree, and the agents that it calls. It is the task of its own turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Node {
    does: Does,
    below: Vec<Self>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Does {
    Answers,
    Fails,
    Hangs,
    Pays,
}

impl Node {
    /// Returns the number of agents that pay, above none that never comes to its end.
    fn payments(&self) -> usize {
        match self.does {
            Does::Fails | Does::Hangs => 0,
            does => usize::from(does == Does::Pays) + self.below.iter().map(Self::payments).sum::<usize>(),
        }
    }

    /// Reports whether the time of this agent is used up: it hangs, or waits for one that does.
    fn is_late(&self) -> bool {
        let hangs = self.does == Does::Hangs;
        hangs || self.does != Does::Fails && self.below.iter().any(Self::is_late)
    }

    /// Returns the answer of this agent, which tells of one result of each agent below it.
    fn answer(&self) -> String {
        let told = self.below.iter().map(|node| match node.does {
            Does::Fails => "failed".to_owned(),
            _ if node.is_late() => "late".to_owned(),
            _ => node.answer(),
        });
        format!("[{}]", told.collect::<Vec<_>>().join(" "))
    }
}

/// The model of all agents: it does what its task says.
#[derive(Debug, Default)]
struct TreeModel {
    asked: AtomicU32,
    sessions: Mutex<BTreeSet<String>>,
}

#[async_trait]
impl ChatClient for TreeModel {
    async fn chat(&self, call: ChatCall) -> Result<ChatResponse, ChatError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.sessions.lock().unwrap().insert(call.cx.session().to_string());
        let mut texts = call.request.messages.iter().map(|message| message.text().into_owned());
        let node: Node = texts.find_map(|text| serde_json::from_str(&text).ok()).expect("a task");
        let done = results(&call.request);
        let has_tools = !call.request.tools.is_empty();
        let has_paid = done.iter().any(|result| result.starts_with("pay: "));
        let told: Vec<_> = done.iter().filter_map(|result| result.strip_prefix("below_")).collect();
        match node.does {
            Does::Fails => Err(ChatError::new(ChatErrorKind::Other, "it failed")),
            Does::Hangs => std::future::pending().await,
            _ if !has_tools => Ok(ChatResponse::text("cut")),
            Does::Pays if !has_paid => Ok(ChatResponse::calls([ToolCall::new("pay", "pay", "{}")])),
            _ if told.len() < node.below.len() => Ok(ChatResponse::calls(calls_of(&node))),
            _ => Ok(ChatResponse::text(format!(
                "[{}]",
                told.iter().map(|told| mark(told)).collect::<Vec<_>>().join(" ")
            ))),
        }
    }

    fn describe(&self, _: ModelTier) -> ModelInfo {
        ModelInfo::unknown()
    }
}

fn calls_of(node: &Node) -> Vec<ToolCall> {
    // With the number, no two calls of an agent are equal.
    let task = |n: usize, node: &Node| json!({"n": n, "does": node.does, "below": node.below}).to_string();
    let call = |(n, node): (usize, &Node)| {
        let arguments = json!({"task": task(n, node)}).to_string();
        ToolCall::new(format!("below_{n}"), "helper", arguments)
    };
    node.below.iter().enumerate().map(call).collect()
}

/// Returns what an agent tells of a result.
fn mark(result: &str) -> &str {
    let (_, said) = result.split_once(": ").unwrap_or_default();
    match said {
        said if said.contains("the time for this task was used up") => "late",
        said if said.starts_with('[') && said.ends_with(']') => said,
        "cut" => said,
        said if said.ends_with("\ncut") => "cut",
        _ => "failed",
    }
}

/// A host of the agents, with what it counts.
struct World {
    host: AgentHost,
    model: Arc<TreeModel>,
    paid: Notes,
}

impl World {
    fn new(folder: Option<&Path>) -> Self {
        let model = Arc::new(TreeModel::default());
        let (pay, paid) = noting_tool("pay");
        let host = AgentHost::in_memory()
            .chat(model.clone())
            .tool(pay.effect(Effect::Mutating).needs_approval());
        let host = match folder {
            Some(folder) => host.data_dir(folder),
            None => host,
        };
        let host = host.build().unwrap();
        let helper = host.agent().as_tool("helper", "Does a part of the work.");
        // The agents below end before the one at the top, whose time is an hour.
        let helper = helper.with_budget(Budget::default().with_max_model_calls(u32::MAX));
        host.add_tool(helper.into_tool().pure()).unwrap();
        Self { host, model, paid }
    }

    /// Runs a tree to its end, and approves whatever is asked.
    async fn run(&self, tree: &Node, budget: Budget) -> TurnOutcome {
        let task = serde_json::to_string(tree).unwrap();
        let approving = tokio::spawn(approve_all(self.host.agent().clone()));
        let budget = budget.with_max_wall_clock(Duration::from_secs(60 * 60));
        let request = TurnRequest::new("s", "m", task).with_budget(budget);
        let turn = self.host.agent().run(request).await.unwrap().turn;
        let outcome = self.host.agent().outcome(&turn).await.unwrap();
        approving.abort();
        self.check_nothing_is_left().await;
        outcome
    }

    async fn check_nothing_is_left(&self) {
        // What an earlier process left is cancelled in tasks of its own.
        sleep(Duration::from_secs(5)).await;
        let turns = self.host.parts().get::<dyn TurnRunner>().unwrap();
        assert_eq!(turns.live(&TurnQuery::default()), []);
        assert!(turns.is_idle());
        assert_eq!(self.host.agent().approvals(), []);
        let sessions = self.host.agent().sessions().await.unwrap();
        assert!(sessions.iter().all(|session| session.as_str() == "s"), "{sessions:?}");
    }
}

async fn approve_all(agent: Agent) {
    loop {
        sleep(Duration::from_secs(1)).await;
        for request in agent.approvals() {
            let _ = agent.decide(request.approve()).await;
        }
    }
}

/// Trees of at most 25 agents, three deep.
fn trees() -> impl Strategy<Value = Node> {
    let does = || {
        prop_oneof![
            4 => Just(Does::Answers),
            1 => Just(Does::Fails),
            1 => Just(Does::Hangs),
            2 => Just(Does::Pays),
        ]
    };
    let leaf = does().prop_map(|does| Node {
        does,
        below: Vec::new(),
    });
    let tree = leaf.prop_recursive(2, 24, 4, move |below| {
        (does(), prop::collection::vec(below, 0..=4)).prop_map(|(does, below)| Node { does, below })
    });
    let of_root = prop_oneof![Just(Does::Answers), Just(Does::Pays)];
    (of_root, prop::collection::vec(tree, 1..=4)).prop_map(|(does, below)| Node { does, below })
}

fn in_paused_time(work: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(work);
}

fn for_trees<T: std::fmt::Debug>(cases: u32, budgets: impl Strategy<Value = T>, check: impl Fn(Node, T)) {
    let mut runner = TestRunner::new(Config {
        cases,
        ..Config::default()
    });
    let checked = runner.run(&(trees(), budgets), |(tree, budget)| {
        check(tree, budget);
        Ok(())
    });
    checked.unwrap();
}

#[test]
fn each_agent_of_a_tree_has_exactly_one_result() {
    for_trees(24, Just(()), |tree, ()| {
        in_paused_time(async {
            let world = World::new(None);
            let budget = Budget::default().with_max_model_calls(400);
            let outcome = world.run(&tree, budget).await;
            assert_eq!(outcome.text, tree.answer(), "{}", serde_json::to_string(&tree).unwrap());
            assert_eq!(world.paid.all().len(), tree.payments());
            // A question that was decided on counts, also when the time was up before it was asked.
            assert!(outcome.model_calls >= world.model.asked.load(Ordering::SeqCst));
        });
    });
}

#[test]
fn a_tree_never_spends_more_than_the_budget_of_its_root() {
    for_trees(24, 1_u32..40, |tree, calls| {
        in_paused_time(async {
            let world = World::new(None);
            world.run(&tree, Budget::default().with_max_model_calls(calls)).await;
            let turns = u32::try_from(world.model.sessions.lock().unwrap().len()).unwrap();
            let asked = world.model.asked.load(Ordering::SeqCst);
            // Each turn may give a last answer beyond the limit.
            assert!(asked <= calls + turns, "{asked} of {calls} with {turns} turns");
            assert!(world.paid.all().len() <= tree.payments());
        });
    });
}

#[test]
fn a_tree_goes_on_after_a_kill_at_any_record() {
    for_trees(2, Just(()), |tree, ()| {
        in_paused_time(async {
            let folder = tempfile::tempdir().unwrap();
            let budget = Budget::default().with_max_model_calls(400);
            let world = World::new(Some(folder.path()));
            world.run(&tree, budget).await;
            let journal = read_journal(folder.path());
            for (prefix, folder) in prefixes(&journal).step_by(3) {
                let world = World::new(Some(folder.path()));
                world.host.start().await.unwrap();
                let outcome = world.run(&tree, budget).await;
                let begun = prefix.lines().filter(|line| begins_to_pay(line)).count();
                let paid = world.paid.all().len() + begun;
                // The agents that are late after a restart depend on the times that were recorded before.
                if tree.is_late() {
                    assert_eq!(outcome.status, TurnStatus::Answered, "after\n{prefix}");
                    assert!(paid <= tree.payments(), "after\n{prefix}");
                } else {
                    assert_eq!(outcome.text, tree.answer(), "after\n{prefix}");
                    assert_eq!(paid, tree.payments(), "after\n{prefix}");
                }
            }
        });
    });
}

/// Reports whether a line of the journal says that a payment begins.
fn begins_to_pay(line: &str) -> bool {
    let line: Value = serde_json::from_str(line).unwrap();
    line["record"]["record"]["body"]["event"]["tool_started"]["call"] == "pay"
}
