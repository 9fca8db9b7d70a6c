//! The trace of a turn: its journal, read for people and tests.

use std::sync::Arc;

use rockbot_core::chat::{ChatMessage, ChatResponse, ModelTier, ToolCall};
use rockbot_core::tool::ToolInvokeResponse;
use rockbot_core::turn::{RunState, StoredRun, TurnOutcome};
use rockbot_core::{CallId, Timestamp, TurnId};

use super::event::{Recalled, TurnEvent};
use super::machine::Turn;
use super::record::{RecordedEvent, UnknownVersion, parse_accepted, parse_record};
use super::step::{Purpose, TurnStep};

/// The trace of a turn, read from its journal: its events, its decisions, and the messages that
/// its models were shown.
///
/// A host returns it by [`AgentHost::trace`](crate::AgentHost::trace). It is for people and
/// tests, and it is read-only: the records themselves may change their form between versions.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rockbot_core::BoxError> {
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_host::AgentHost;
/// use rockbot_host::turn::TraceEvent;
///
/// let host = AgentHost::builder("weather").chat(ScriptedModel::new().says("Sunny.")).build()?;
/// let outcome = host.agent().ask("session", "What is the weather?").await?;
/// let trace = host.trace(&outcome.turn).await?.expect("the turn has just ended");
/// let answers = trace.entries().iter().filter_map(|entry| match &entry.event {
///     TraceEvent::ModelAnswered { response, .. } => Some(&*response.text),
///     _ => None,
/// });
/// assert_eq!(answers.collect::<Vec<_>>(), ["Sunny."]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct TurnTrace {
    run: StoredRun,
    entries: Vec<TraceEntry>,
    turn: Turn,
}

/// A record of a turn: an event, and the decisions on it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TraceEntry {
    /// Time of the event.
    pub at: Timestamp,
    /// The event.
    pub event: TraceEvent,
    /// Decisions, in words for people.
    pub decisions: Vec<String>,
    /// Questions to models that were decided.
    pub requests: Vec<TraceRequest>,
    /// Tool calls that were decided to run.
    pub calls: Vec<ToolCall>,
    /// `true` if this version of the program decides the same. `false` after an upgrade that changed
    /// a policy.
    pub is_reproducible: bool,
}

/// An event of a turn.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum TraceEvent {
    /// The turn began to work.
    Started {
        /// Number of messages that the model was to read.
        messages: usize,
        /// The entries that context sources returned for the message.
        recalled: Vec<Recalled>,
    },
    /// A model answered.
    ModelAnswered {
        /// The answer.
        response: ChatResponse,
        /// The tier that was asked.
        tier: ModelTier,
    },
    /// The context sources were asked again within the turn.
    Gathered {
        /// The entries that they returned.
        recalled: Vec<Recalled>,
    },
    /// A tool call began to run.
    ToolStarted {
        /// The call.
        call: CallId,
    },
    /// The turn of another agent, which a tool call ran, ended.
    Delegated {
        /// The turn, whose own trace its host has; `None` in a record of an earlier version.
        turn: Option<TurnId>,
    },
    /// A tool call ended.
    ToolReturned(ToolInvokeResponse),
    /// Any other event, in words for people.
    Other(String),
}

/// A question to a model.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TraceRequest {
    /// `true` for a judge's question, which the conversation does not show.
    pub is_out_of_band: bool,
    /// The messages that the model was shown, shared with the requests before; empty for an
    /// out-of-band question.
    pub messages: Vec<Arc<ChatMessage>>,
}

impl TurnTrace {
    /// Reads the trace of a run that a journal stores.
    ///
    /// # Errors
    ///
    /// Returns an error if a record has another version, or an event that this version does not know.
    pub fn from_run(run: StoredRun) -> Result<Self, UnknownVersion> {
        let accepted = parse_accepted(&run)?;
        let mut reader = Reader {
            turn: Turn::new(accepted.request, accepted.policy, run.accepted.at),
            is_out_of_band: false,
        };
        let mut entries = Vec::with_capacity(run.records.len());
        for record in &run.records {
            entries.push(reader.read(parse_record(record)?, record.at));
        }
        let turn = reader.turn;
        Ok(Self { run, entries, turn })
    }

    /// Returns the records as the journal stores them, with the identity of the message and the times.
    pub fn run(&self) -> &StoredRun {
        &self.run
    }

    /// Returns the entries, in order; none if the journal has removed the records of the ended turn.
    pub fn entries(&self) -> &[TraceEntry] {
        &self.entries
    }

    /// Returns the conversation after the last entry, as the model would read it.
    pub fn messages(&self) -> &[Arc<ChatMessage>] {
        self.turn.messages()
    }

    /// Returns the tier that was selected for the message; `None` without a tier selector.
    pub fn selected_tier(&self) -> Option<ModelTier> {
        self.turn.selected_tier()
    }

    /// Returns the tier that the turn was escalated to; `None` if the selected one was high enough.
    pub fn escalated_tier(&self) -> Option<ModelTier> {
        self.turn.escalated_tier()
    }

    /// Returns the outcome that the entries lead to; `None` until the turn has ended.
    pub fn outcome(&self) -> Option<TurnOutcome> {
        self.turn.outcome()
    }

    /// Returns `true` if the journal has noted the end of the turn, after its reply was sent.
    pub fn is_finished(&self) -> bool {
        matches!(self.run.state, RunState::Finished(_))
    }
}

/// A replay of a turn, record by record.
struct Reader {
    turn: Turn,
    /// The last question was out-of-band: a judge's, on the lowest tier.
    is_out_of_band: bool,
}

impl Reader {
    fn read(&mut self, recorded: RecordedEvent, at: Timestamp) -> TraceEntry {
        let RecordedEvent { event, steps } = recorded;
        // A second turn decides afresh; the trace itself repeats the recorded decisions.
        let is_reproducible = self.turn.clone().on(&event, at) == steps;
        self.turn.replay(&event, &steps, at);
        let decisions = steps.iter().map(|step| format!("{step:?}")).collect();
        let calls = self.calls(&steps);
        let event = self.event(event);
        let requests = steps.iter().filter_map(|step| self.request(step)).collect();
        TraceEntry {
            at,
            event,
            decisions,
            requests,
            calls,
            is_reproducible,
        }
    }

    fn event(&self, event: TurnEvent) -> TraceEvent {
        match event {
            TurnEvent::Started { context, recalled, .. } => TraceEvent::Started {
                messages: context.len(),
                recalled,
            },
            TurnEvent::ModelAnswered { response, .. } => TraceEvent::ModelAnswered {
                tier: response.tier.unwrap_or(self.turn.tier_of(self.is_out_of_band)),
                response,
            },
            TurnEvent::Gathered { recalled, .. } => TraceEvent::Gathered { recalled },
            TurnEvent::ToolStarted { call } => TraceEvent::ToolStarted { call },
            TurnEvent::Delegated(work) => TraceEvent::Delegated { turn: work.turn },
            TurnEvent::ToolReturned(response) => TraceEvent::ToolReturned(response),
            other => TraceEvent::Other(format!("{other:?}")),
        }
    }

    fn request(&mut self, step: &TurnStep) -> Option<TraceRequest> {
        let TurnStep::AskModel(purpose) = step else {
            return None;
        };
        self.is_out_of_band = purpose.is_out_of_band();
        Some(TraceRequest {
            is_out_of_band: self.is_out_of_band,
            messages: self.messages(purpose),
        })
    }

    fn messages(&self, purpose: &Purpose) -> Vec<Arc<ChatMessage>> {
        if purpose.is_out_of_band() {
            Vec::new()
        } else {
            self.turn.messages_for(purpose)
        }
    }

    fn calls(&self, steps: &[TurnStep]) -> Vec<ToolCall> {
        let groups = steps.iter().filter_map(|step| match step {
            TurnStep::CallTools(group) => Some(group),
            _ => None,
        });
        let called = |group: &Vec<CallId>| {
            let calls = self.turn.calls().iter();
            let called = calls.filter(|call| group.contains(&call.call.id));
            called.map(|call| call.call.clone()).collect::<Vec<_>>()
        };
        groups.flat_map(called).collect()
    }
}
