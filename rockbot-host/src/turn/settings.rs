//! The settings of the policies, as the journal keeps them with each turn.

use std::time::Duration;

use rockbot_core::chat::{ModelTier, OutputMode};
use rockbot_core::turn::Budget;
use serde::{Deserialize, Serialize};

/// The settings of a turn, as they were when it was accepted.
///
/// The journal keeps them with the turn, so a restart with another configuration does not change
/// the rules of a turn that has begun. A field that a journal does not name has its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PolicySnapshot {
    /// The budget of the turn.
    pub(crate) budget: Budget,
    /// Number of resumes after an interruption before the turn is abandoned. Default 3.
    pub(crate) max_resumes: u32,
    /// Time that the turn waits for a user's decision about a call. Default 7 days.
    pub(crate) approval_expiry: Duration,
    /// Number of further attempts to give an answer the requested shape. Default 2.
    pub(crate) max_shape_attempts: u32,
    /// The tier that the selector chose for a message that names none; `None`, the default, without a
    /// selector.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tier: Option<ModelTier>,
    /// The way to make the model match the schema of the request. Default [`OutputMode::Auto`] for
    /// turns without a schema, and for turns of older versions, where it means
    /// [`OutputMode::Native`].
    #[serde(skip_serializing_if = "OutputMode::is_auto")]
    pub(crate) output_mode: OutputMode,
    /// Maximum length in characters of a tool result that stays in the conversation; `None`, the
    /// default, is the host's [`LargeResultPolicy`](crate::large_result::LargeResultPolicy).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) result_threshold: Option<usize>,
    /// The weaknesses of models that are answered with a nudge.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) nudges: Nudges,
    /// The limits of self-evaluation.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) evaluation: Evaluation,
    /// The limits of the conversation's length.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) economy: ContextEconomy,
    /// The limits of hooks.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) hooks: HookLimits,
    /// `true` when the model keeps a list of tasks. Default `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) task_list: bool,
    /// `true` when no person decides about calls: calls that need an approval are refused. Default
    /// `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) has_no_approver: bool,
    /// `true` when the turn's agent is a program: its own answers are free and do not count. Default
    /// `false`.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) is_program: bool,
}

impl PolicySnapshot {
    /// Returns the settings of a program's turn in a host with these settings: no policy changes or
    /// repeats its answers, and it sees its results whole.
    pub(crate) fn of_program(self) -> Self {
        Self {
            budget: self.budget,
            max_resumes: self.max_resumes,
            approval_expiry: self.approval_expiry,
            has_no_approver: self.has_no_approver,
            result_threshold: Some(usize::MAX),
            nudges: Nudges::OFF,
            is_program: true,
            ..Self::default()
        }
    }
}

/// Reports whether a field has its default value, so that the journal can leave it out.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for PolicySnapshot {
    fn default() -> Self {
        Self {
            budget: Budget::default(),
            max_resumes: 3,
            approval_expiry: Duration::from_secs(7 * 24 * 60 * 60),
            max_shape_attempts: 2,
            tier: None,
            output_mode: OutputMode::Auto,
            result_threshold: None,
            nudges: Nudges::default(),
            evaluation: Evaluation::default(),
            economy: ContextEconomy::default(),
            hooks: HookLimits::default(),
            task_list: false,
            has_no_approver: false,
            is_program: false,
        }
    }
}

/// The weaknesses of models that are answered with a nudge: a note to the model, which answers
/// once more.
///
/// Each kind of nudge is given at most once in a turn, and costs one call to the model unless its
/// field states otherwise. The nudges that did not pay when they were measured are off (56 tasks,
/// two small models, see `benches/README.md`):
///
/// | model | nudges | solved | calls for each solved task | tokens for each solved task |
/// |---|---|---|---|---|
/// | 1.5B | none | 13 | 13.2 | 12 978 |
/// | | set-up, give-up, repeated calls, empty answer | 12 | 14.2 | 14 317 |
/// | 0.5B | none | 3 | 87.0 | 91 003 |
/// | | the same | 3 | 85.0 | 90 878 |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Nudges {
    /// The model announces its next step and does not take it: its answer ends in `:` or `...`.
    /// Default `false`.
    pub on_unfinished_set_up: bool,
    /// The model claims that it did something, and called no tool. The claim is taken out of the
    /// conversation, and an answer that claims it again ends with the sentence that no tool was
    /// called. Default `true`: small models that were measured claim less so (`benches/README.md`).
    pub on_hallucinated_calls: bool,
    /// The model writes the syntax of its tool calls as text (`to=functions.…`). Default `false`.
    pub on_leaked_syntax: bool,
    /// The model writes Chinese or Japanese, and the user's message does not. Default `false`, since
    /// it suits only users who read neither.
    pub on_unexpected_cjk: bool,
    /// A tool failed, and the model gives up instead of trying again. Default `false`.
    pub on_tool_failure_giveup: bool,
    /// The model repeats a call whose result does not change. The note is added to each such result
    /// from the third equal call on, so it costs no call to the model. Default `true`.
    ///
    /// From the fourth equal failing call on it is refused with its earlier result, and the fifth
    /// ends the turn with a partial answer; calls that succeed get five times as many. Up to three
    /// calls that alternate count as one.
    pub on_repeated_calls: bool,
    /// The model's answer is empty, or the question itself: it is asked once more. Default `true`.
    pub on_empty_answer: bool,
}

impl Default for Nudges {
    fn default() -> Self {
        Self {
            on_hallucinated_calls: true,
            on_repeated_calls: true,
            on_empty_answer: true,
            ..Self::OFF
        }
    }
}

impl Nudges {
    /// No nudge at all.
    const OFF: Self = Self {
        on_unfinished_set_up: false,
        on_hallucinated_calls: false,
        on_leaked_syntax: false,
        on_unexpected_cjk: false,
        on_tool_failure_giveup: false,
        on_repeated_calls: false,
        on_empty_answer: false,
    };

    /// Sets whether an answer that announces a next step and does not take it is nudged. Default
    /// `false`.
    #[must_use]
    pub fn with_on_unfinished_set_up(mut self, nudges: bool) -> Self {
        self.on_unfinished_set_up = nudges;
        self
    }

    /// Sets whether an answer that claims an action without a tool call is nudged. Default `true`.
    #[must_use]
    pub fn with_on_hallucinated_calls(mut self, nudges: bool) -> Self {
        self.on_hallucinated_calls = nudges;
        self
    }

    /// Sets whether an answer with the syntax of tool calls in its text is nudged. Default `false`.
    #[must_use]
    pub fn with_on_leaked_syntax(mut self, nudges: bool) -> Self {
        self.on_leaked_syntax = nudges;
        self
    }

    /// Sets whether an answer in Chinese or Japanese to a message in neither is nudged. Default
    /// `false`.
    #[must_use]
    pub fn with_on_unexpected_cjk(mut self, nudges: bool) -> Self {
        self.on_unexpected_cjk = nudges;
        self
    }

    /// Sets whether an answer that gives up after a failed tool call is nudged. Default `false`.
    #[must_use]
    pub fn with_on_tool_failure_giveup(mut self, nudges: bool) -> Self {
        self.on_tool_failure_giveup = nudges;
        self
    }

    /// Sets whether the results of repeated equal calls get a note. Default `true`.
    #[must_use]
    pub fn with_on_repeated_calls(mut self, nudges: bool) -> Self {
        self.on_repeated_calls = nudges;
        self
    }

    /// Sets whether an empty answer is asked for once more. Default `true`.
    #[must_use]
    pub fn with_on_empty_answer(mut self, asks: bool) -> Self {
        self.on_empty_answer = asks;
        self
    }
}

/// The limits of self-evaluation: how often a judge's verdict may prolong a turn.
///
/// The judge is asked out-of-band, on the lowest tier, with temperature 0. It reads the user's
/// words, the calls and the answer. Only turns that a user's message began are judged: the answer
/// to a schedule or to another turn is its result. It is off by default: it did not pay where it
/// was measured (56 tasks, 0.5B model, see `benches/README.md`).
///
/// | judge | solved | calls for each solved task | tokens for each solved task | judge's calls |
/// |---|---|---|---|---|
/// | off | 3 | 87.0 | 91 003 | |
/// | 2 reprompts | 3 | 88.0 | 92 097 | 6 |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Evaluation {
    /// Maximum number of times that an answer judged incomplete is sent back to the model. Default 0,
    /// which asks no judge.
    pub max_completion_reprompts: u32,
    /// Maximum number of follow-ups after a complete answer, one after the other while each does
    /// something. Default 0, which asks no judge.
    pub max_follow_up_passes: u32,
}

impl Evaluation {
    /// Sets the maximum number of times that an answer judged incomplete is sent back to the model.
    /// Default 0, which asks no judge.
    #[must_use]
    pub const fn with_max_completion_reprompts(mut self, max_completion_reprompts: u32) -> Self {
        self.max_completion_reprompts = max_completion_reprompts;
        self
    }

    /// Sets the maximum number of follow-ups after a complete answer. Default 0, which asks no judge.
    #[must_use]
    pub const fn with_max_follow_up_passes(mut self, max_follow_up_passes: u32) -> Self {
        self.max_follow_up_passes = max_follow_up_passes;
        self
    }

    /// Limits that ask no judge.
    pub const OFF: Self = Self {
        max_completion_reprompts: 0,
        max_follow_up_passes: 0,
    };
}

impl Default for Evaluation {
    fn default() -> Self {
        Self::OFF
    }
}

/// The limits of a conversation's length: above them parts are removed or offloaded, so that
/// requests cost less and fit into the model's context window.
///
/// Originals of shortened tool results are kept in the host's working memory, and the model reads
/// where they are. Whatever these settings are, a request that the model refuses as too long is
/// shortened and sent once more.
///
/// # Examples
///
/// ```
/// use rockbot_host::turn::ContextEconomy;
///
/// let economy = ContextEconomy::default().with_watermark(30_000);
/// assert_eq!((economy.watermark, economy.max_result_len), (Some(30_000), None));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ContextEconomy {
    /// Maximum length of a tool result in bytes; a longer result loses its middle. `None`, the
    /// default, sets no limit beyond
    /// [`TurnPolicies::large_results`](crate::TurnPolicies::large_results). A result that is only a
    /// little longer stays unchanged, since the notice about the removed part takes room, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_result_len: Option<usize>,
    /// Maximum length of a request in tokens, estimated; parts of a longer request are removed.
    /// Default `None`. Set it for models that truncate long requests silently, as Ollama does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watermark: Option<u64>,
    /// Percentage of a shortened result that is its beginning; the rest is its end. Default 60.
    pub head_percent: u8,
    /// Retention of originals. Default 1 hour.
    pub ttl: Duration,
    /// The model's context window in tokens, as it reported when it refused a request of an earlier
    /// turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<u64>,
}

impl Default for ContextEconomy {
    fn default() -> Self {
        Self {
            max_result_len: None,
            watermark: None,
            head_percent: 60,
            ttl: Duration::from_secs(60 * 60),
            window: None,
        }
    }
}

impl ContextEconomy {
    /// Sets the maximum length of a request to about `tokens`.
    #[must_use]
    pub fn with_watermark(mut self, tokens: u64) -> Self {
        self.watermark = Some(tokens);
        self
    }

    /// Sets the maximum length of a tool result to about `bytes`.
    #[must_use]
    pub fn with_max_result_len(mut self, bytes: usize) -> Self {
        self.max_result_len = Some(bytes);
        self
    }

    /// Sets the percentage of a shortened result that is its beginning.
    #[must_use]
    pub fn with_head_percent(mut self, percent: u8) -> Self {
        self.head_percent = percent;
        self
    }

    /// Sets the retention of removed parts.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }
}

/// The limits of hooks: the async functions of the host's program that a turn asks.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use rockbot_host::turn::HookLimits;
///
/// let limits = HookLimits::default().with_time_limit(Duration::from_secs(5));
/// assert_eq!((limits.time_limit.as_secs(), limits.max_policy_questions), (5, 3));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct HookLimits {
    /// Time limit of a hook's decision. Default 30 seconds. It is not cut by the turn's own time,
    /// so that an answer in the last moment is not lost.
    pub time_limit: Duration,
    /// Maximum number of answers in a turn that loop policies send back to the model. Default 3.
    pub max_policy_questions: u32,
    /// Maximum number of answers in a turn that output validators send back to the model. Default 2.
    pub max_corrections: u32,
    /// `true` when the host had loop policies when the turn was accepted.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) has_policies: bool,
    /// `true` when the host or the request had output validators then.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) has_validators: bool,
    /// Number of output validators of the request alone. They are in no journal, so a turn that
    /// another process continues lacks them.
    #[serde(skip_serializing_if = "is_default")]
    pub(crate) request_validators: usize,
}

impl Default for HookLimits {
    fn default() -> Self {
        Self {
            time_limit: Duration::from_secs(30),
            max_policy_questions: 3,
            max_corrections: 2,
            has_policies: false,
            has_validators: false,
            request_validators: 0,
        }
    }
}

impl HookLimits {
    /// Sets the number of validators of the request alone.
    pub(crate) fn add_validators(&mut self, of_request: usize) {
        self.has_validators |= of_request > 0;
        self.request_validators = of_request;
    }

    /// Sets the time limit of a hook's decision.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Sets the maximum number of answers in a turn that loop policies send back to the model.
    #[must_use]
    pub fn with_max_policy_questions(mut self, max: u32) -> Self {
        self.max_policy_questions = max;
        self
    }

    /// Sets the maximum number of answers in a turn that output validators send back to the model.
    #[must_use]
    pub fn with_max_corrections(mut self, max: u32) -> Self {
        self.max_corrections = max;
        self
    }
}
