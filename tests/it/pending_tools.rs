//! Tools that are on their way when a turn begins: the turn waits for them, and for nothing else.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use rockbot_core::BoxError;
use rockbot_core::context::WaitReason;
use rockbot_core::subsystem::{Declarations, Parts, Running, RunningTask, Subsystem};
use rockbot_core::testing::{ScriptedModel, mock_tool};
use rockbot_core::tool::{AwaitedTools, Owner, PendingTools, ToolRegistry};
use rockbot_core::turn::{TurnProgress, TurnRequest, TurnStatus};
use rockbot_host::AgentHost;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::support::settle;

const LIMIT: Duration = Duration::from_secs(20);

fn device() -> WaitReason {
    WaitReason::Servers(vec!["device".to_owned()])
}

/// A device whose tool comes some time after the start.
#[derive(Debug)]
struct Device {
    comes_after: Duration,
    arrival: Arc<Arrival>,
}

#[derive(Debug, Default)]
struct Arrival {
    has_arrived: watch::Sender<bool>,
    until: OnceLock<Instant>,
}

#[async_trait]
impl PendingTools for Arrival {
    fn awaited(&self) -> Option<AwaitedTools> {
        let until = *self.until.get()?;
        let is_awaited = !*self.has_arrived.borrow() && until > Instant::now();
        is_awaited.then(|| AwaitedTools::new(until, device()))
    }

    async fn arrived(&self) {
        let _ = self.has_arrived.subscribe().wait_for(|has_arrived| *has_arrived).await;
    }
}

#[async_trait]
impl Subsystem for Device {
    fn name(&self) -> &str {
        "device"
    }

    fn declare(&mut self, declarations: &mut Declarations) -> Result<(), BoxError> {
        declarations.provide::<dyn PendingTools>(self.arrival.clone());
        Ok(())
    }

    async fn start(self: Box<Self>, parts: &Parts) -> Result<Box<dyn Running>, BoxError> {
        let registry = parts.require::<dyn ToolRegistry>()?;
        self.arrival.until.set(Instant::now() + LIMIT).unwrap();
        let (running, task) = RunningTask::new(|stop| async move {
            let comes = stop.run_until_cancelled(sleep(self.comes_after)).await;
            if comes.is_some() {
                registry
                    .register(&Owner::new("device"), mock_tool("measure").0)
                    .unwrap();
                self.arrival.has_arrived.send_replace(true);
            }
        });
        tokio::spawn(task);
        Ok(Box::new(running))
    }
}

async fn started(comes_after: Duration) -> (AgentHost, ScriptedModel) {
    let model = ScriptedModel::new().says("Done.").says("Done.");
    let device = Device {
        comes_after,
        arrival: Arc::default(),
    };
    let host = AgentHost::in_memory().chat(model.clone()).add(device).build().unwrap();
    host.start().await.unwrap();
    (host, model)
}

/// Returns the tools in each request.
fn tools(model: &ScriptedModel) -> Vec<Vec<String>> {
    let requests = model.requests();
    let tools = requests
        .iter()
        .map(|request| request.tools.names().map(ToString::to_string).collect());
    tools.collect()
}

#[tokio::test(start_paused = true)]
async fn the_first_question_after_a_start_has_the_tools_that_come_soon() {
    let (host, model) = started(Duration::from_secs(5)).await;
    let began = Instant::now();
    host.agent().ask("s", "Measure.").await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 5);
    host.agent().ask("s", "Again.").await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 5, "nothing is on its way any more");
    assert_eq!(tools(&model), [["measure"], ["measure"]]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_begins_without_tools_that_do_not_come_in_time() {
    let (host, model) = started(Duration::from_secs(3600)).await;
    let began = Instant::now();
    host.agent().ask("s", "Measure.").await.unwrap();
    host.agent().ask("s", "Again.").await.unwrap();
    assert_eq!(began.elapsed(), LIMIT, "the second question does not wait anew");
    assert_eq!(tools(&model), [[] as [&str; 0], []]);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_tools_is_reported_unless_it_is_short() {
    for (comes_after, is_reported) in [(Duration::from_millis(500), false), (Duration::from_secs(5), true)] {
        let (host, _model) = started(comes_after).await;
        let mut stream = host.agent().stream("s", "Measure.");
        let mut reasons = Vec::new();
        while let Some(progress) = stream.next().await {
            if let TurnProgress::Waiting { until, why } = progress.unwrap() {
                assert!(until.is_some());
                reasons.push(why);
            }
        }
        let expected = if is_reported { vec![device()] } else { vec![] };
        assert_eq!(reasons, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_waits_for_no_tool() {
    let (host, model) = started(Duration::from_secs(3600)).await;
    let request = TurnRequest::new("s", "m", "Measure.");
    let agent = host.agent().clone();
    let turn = request.turn_id();
    let began = Instant::now();
    let running = tokio::spawn(async move { agent.run(request).await });
    settle().await;
    host.agent().cancel(&turn).await.unwrap();
    let outcome = running.await.unwrap().unwrap();
    assert_eq!(outcome.status, TurnStatus::Cancelled);
    assert_eq!((began.elapsed().as_secs(), model.requests().len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_stops_waits_for_no_tool() {
    let (host, model) = started(Duration::from_secs(3600)).await;
    let agent = host.agent().clone();
    let began = Instant::now();
    let running = tokio::spawn(async move { agent.ask("s", "Measure.").await });
    settle().await;
    host.shutdown(Duration::from_secs(10)).await;
    assert!(running.await.unwrap().is_err(), "the next start resumes it");
    assert!(began.elapsed() < LIMIT);
    assert!(model.requests().is_empty());
}
