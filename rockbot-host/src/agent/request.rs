//! A request to the agent: put together with setters, then awaited or streamed.

use std::future::IntoFuture;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rockbot_core::chat::{ChatMessage, ModelSettings, ModelTier, OutputMode, OutputSchema};
use rockbot_core::tool::ToolFilter;
use rockbot_core::turn::{Budget, BusyPolicy, OutputValidator, ProgressSink, TurnRequest};
use rockbot_core::{MessageId, Principal, TurnId};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::answer::{AnswerKind, Reply, Typed};
use super::handle::TurnHandle;
use super::stream::TurnStream;
use super::{Agent, turn_call};
use crate::engine::TurnError;

/// A message to the agent and how it is to be answered. [`Agent::ask`] creates one.
///
/// Awaiting it sends the message and waits for the answer; [`stream`](Self::stream) reports the
/// progress of the turn, too, and [`start`](Self::start) leaves the turn to itself. The setters
/// can be combined freely, and nothing is sent before. Dropping the future of an awaited request
/// cancels the turn, so a time limit around it does, too.
///
/// `A` is the kind of the answer: a [`Reply`], or after [`output`](Self::output) a value of a type.
///
/// # Examples
///
/// ```
/// use rockbot_core::chat::{ModelSettings, ModelTier};
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_core::turn::Budget;
/// use rockbot_host::AgentHost;
///
/// /// A dish and its ingredients.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Dish {
///     name: String,
///     ingredients: Vec<String>,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let model = ScriptedModel::new().says(r#"{"name": "Toast", "ingredients": ["bread", "butter"]}"#);
/// let host = AgentHost::in_memory().chat(model).build()?;
/// let dish = host
///     .agent()
///     .ask("kitchen", "What can I cook today?")
///     .tier(ModelTier::High)
///     .model_settings(ModelSettings::new().with_temperature(1.0))
///     .budget(Budget::default().with_max_model_calls(5))
///     .instructions("There is no meat in the house.")
///     .output::<Dish>()
///     .await?;
/// assert_eq!((dish.name.as_str(), dish.ingredients.len()), ("Toast", 2));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing is sent until the request is awaited, streamed or started"]
pub struct AgentRequest<A = Reply> {
    pub(super) agent: Agent,
    pub(super) request: TurnRequest,
    pub(super) validators: Vec<Arc<dyn OutputValidator>>,
    pub(super) answer: A,
}

impl AgentRequest {
    pub(super) fn new(agent: Agent, request: TurnRequest) -> Self {
        Self {
            agent,
            request,
            validators: Vec::new(),
            answer: Reply,
        }
    }

    /// Requests an answer that is JSON of the schema `output`, for schemas that are not known when
    /// the program is compiled. The text of the outcome is the JSON. For a type of the program's own
    /// there is [`output`](Self::output).
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::chat::OutputSchema;
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::AgentHost;
    /// use serde_json::{Value, json};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().says(r#"{"celsius": 21}"#);
    /// let host = AgentHost::in_memory().chat(model).build()?;
    /// let schema = json!({
    ///     "type": "object",
    ///     "properties": {"celsius": {"type": "number"}},
    ///     "required": ["celsius"]
    /// });
    /// let request = host.agent().ask("weather", "How warm is it?");
    /// let answer = request.output_schema(OutputSchema::new("weather", schema)).await?;
    /// let answer: Value = serde_json::from_str(&answer.text)?;
    /// assert_eq!(answer["celsius"], 21);
    /// # Ok(())
    /// # }
    /// ```
    pub fn output_schema(self, output: OutputSchema) -> Self {
        self.change(|request| request.output = Some(output))
    }

    /// Sends the message and returns a stream of the turn's progress, up to its outcome.
    ///
    /// The turn is spawned at once, before the stream is polled. Outside a tokio runtime the stream
    /// has an error alone.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_core::turn::TurnProgress;
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().says("Tea, then.");
    /// let host = AgentHost::in_memory().chat(model).build()?;
    /// let mut turn = host.agent().ask("kitchen", "Coffee is out.").instructions("Be brief.").stream();
    /// while let Some(progress) = turn.next().await {
    ///     match progress? {
    ///         TurnProgress::Delta(text) => print!("{text}"),
    ///         TurnProgress::Final(outcome) => assert_eq!(outcome.text, "Tea, then."),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(self) -> TurnStream {
        self.agent.stream_checked(self.request, self.validators)
    }

    /// Sends the message and returns a handle to its turn, which goes on by itself. Once this
    /// returns, the turn is in the journal, and a crash cannot lose it.
    ///
    /// # Errors
    ///
    /// Returns an error if the message cannot be accepted.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let host = AgentHost::in_memory().chat(ScriptedModel::new().says("Tea, then.")).build()?;
    /// let turn = host.agent().ask("kitchen", "Coffee is out.").start().await?;
    /// assert_eq!(turn.outcome().await?.text, "Tea, then.");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start(self) -> Result<TurnHandle, TurnError> {
        self.agent.start(self.request, self.validators).await
    }
}

impl<A: AnswerKind> AgentRequest<A> {
    /// Returns the id of the turn, which follows from the message: a program can keep it before it
    /// sends the message.
    pub fn turn_id(&self) -> TurnId {
        self.request.turn_id()
    }

    /// Sets the tier of the model. By default the host's tier selector decides.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::chat::ModelTier;
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().says("It depends.");
    /// let host = AgentHost::in_memory().chat(model.clone()).build()?;
    /// host.agent().ask("main", "What is justice?").tier(ModelTier::High).await?;
    /// assert_eq!(model.requests()[0].tier, Some(ModelTier::High));
    /// # Ok(())
    /// # }
    /// ```
    pub fn tier(self, tier: ModelTier) -> Self {
        self.change(|request| request.tier = Some(tier))
    }

    /// Sets the budget, instead of the host's. Its wall-clock time is the time limit of the turn,
    /// which ends with its work so far.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_core::turn::Budget;
    /// use rockbot_host::AgentHost;
    /// use std::time::Duration;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().says("Red.");
    /// let host = AgentHost::in_memory().chat(model).build()?;
    /// let budget = Budget::default().with_max_model_calls(2).with_max_wall_clock(Duration::from_secs(20));
    /// let answer = host.agent().ask("main", "Red or blue?").budget(budget).await?;
    /// assert_eq!(answer.model_calls, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn budget(self, budget: Budget) -> Self {
        self.change(|request| request.budget = Some(budget))
    }

    /// Sets the filter of the tools of the turn. Default all tools of the host. After a restart the
    /// turn has the same tools.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_core::tool::{ToolFilter, tool};
    /// use rockbot_host::AgentHost;
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Nothing {}
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().says("Rain.");
    /// let look = tool("look", |_: Nothing| async { "rain" }).description("Looks outside.");
    /// let open = tool("open", |_: Nothing| async { "opened" }).description("Opens the window.");
    /// let host = AgentHost::in_memory().chat(model.clone()).tool(look).tool(open).build()?;
    /// host.agent().ask("main", "How is the weather?").tools(ToolFilter::only(["look"])).await?;
    /// let names: Vec<_> = model.requests()[0].tools.names().map(|name| name.to_string()).collect();
    /// assert_eq!(names, ["look"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn tools(self, tools: ToolFilter) -> Self {
        self.change(|request| request.tools = Some(Arc::new(tools)))
    }

    /// Sets the principal on whose behalf the turn runs. Default: the agent's, see
    /// [`Agent::for_principal`].
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().says("Hello Ann.");
    /// let host = AgentHost::in_memory().chat(model).build()?;
    /// host.agent().ask("main", "I am Ann.").principal("ann").await?;
    /// assert_eq!(host.agent().for_principal("ann").history("main").await?.len(), 2);
    /// assert!(host.agent().history("main").await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn principal(self, principal: impl Into<Principal>) -> Self {
        self.change(|request| request.principal = principal.into())
    }

    /// Sets the behavior while another turn of the session runs. Default [`BusyPolicy::Queue`].
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_core::turn::BusyPolicy;
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().says("Soup, then.");
    /// let host = AgentHost::in_memory().chat(model).build()?;
    /// let agent = host.agent();
    /// let first = agent.ask("kitchen", "What about trout?");
    /// let second = agent.ask("kitchen", "No, no fish!").busy(BusyPolicy::Supersede);
    /// let (first, second) = tokio::join!(first, second);
    /// assert_eq!(second?.text, "Soup, then.");
    /// assert!(first.is_err(), "its turn was replaced");
    /// # Ok(())
    /// # }
    /// ```
    pub fn busy(self, busy: BusyPolicy) -> Self {
        self.change(|request| request.busy = busy)
    }

    /// Sets settings of the model, such as the temperature, for this turn. They win over the
    /// settings of the model's behavior and tier.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::chat::ModelSettings;
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().says("Roses are red.");
    /// let host = AgentHost::in_memory().chat(model.clone()).build()?;
    /// let settings = ModelSettings::new().with_temperature(1.2).with_max_output_tokens(200);
    /// host.agent().ask("main", "Write a poem.").model_settings(settings).await?;
    /// let sent = model.requests()[0].settings.clone();
    /// assert_eq!(sent.and_then(|settings| settings.temperature), Some(1.2));
    /// # Ok(())
    /// # }
    /// ```
    pub fn model_settings(self, settings: ModelSettings) -> Self {
        self.change(|request| request.model_settings = settings.shared())
    }

    /// Sets instructions for this turn alone. The model reads them at the end of its system message;
    /// the next turn of the session does not have them.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().says("Wasser.").says("Water.");
    /// let host = AgentHost::in_memory().chat(model.clone()).build()?;
    /// let agent = host.agent();
    /// agent.ask("main", "What is H2O?").instructions("Answer in German.").await?;
    /// agent.ask("main", "And now?").await?;
    /// let told = |request: usize| {
    ///     let messages = &model.requests()[request].messages;
    ///     messages.iter().any(|message| message.content.words().contains("German"))
    /// };
    /// assert!(told(0) && !told(1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn instructions(self, instructions: impl Into<String>) -> Self {
        self.change(|request| request.instructions = Some(instructions.into()))
    }

    /// Sets the messages that the model sees instead of the stored conversation, see
    /// [`TurnRequest::with_history`].
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::chat::ChatMessage;
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().says("You are Ann.");
    /// let host = AgentHost::in_memory().chat(model.clone()).build()?;
    /// let before = vec![ChatMessage::user("I am Ann."), ChatMessage::assistant("Hello Ann.")];
    /// host.agent().ask("main", "Who am I?").history(before).await?;
    /// assert_eq!(model.requests()[0].messages.len(), 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn history(self, messages: Vec<ChatMessage>) -> Self {
        self.change(|request| request.history = Some(messages.into()))
    }

    /// Attaches a value for the tools of this turn, which find it with
    /// [`CallContext::extension`](rockbot_core::CallContext::extension): a handle of the caller's
    /// own, such as the connection of the user who asks. A second value of a type replaces the first.
    ///
    /// It stays in memory. A turn that is resumed after a restart has no extensions, so a tool must
    /// do without, for example by failing with an error that the model can report.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::CallContext;
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_core::tool::tool;
    /// use rockbot_host::AgentHost;
    ///
    /// struct Tenant(&'static str);
    ///
    /// /// Tells whose shop this is.
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Owner {}
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let owner = tool("owner", |_: Owner, cx: CallContext| async move {
    ///     cx.extension::<Tenant>().map_or("unknown", |tenant| tenant.0)
    /// });
    /// let model = ScriptedModel::new().calls("owner", serde_json::json!({})).says("It is Ann's.");
    /// let host = AgentHost::in_memory().chat(model).tool(owner.pure()).build()?;
    ///
    /// host.agent().ask("shop", "Whose is it?").extension(Tenant("Ann")).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn extension<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.change(|request| request.extensions.insert(value))
    }

    /// Sets the id of the message. By default it is new. The same id in the same session is the same
    /// turn: it runs once, and its outcome is kept for a day.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().says("Paid.");
    /// let host = AgentHost::in_memory().chat(model.clone()).build()?;
    /// let agent = host.agent();
    /// let once = agent.ask("bills", "Pay bill 7.").message_id("bill-7").await?;
    /// let again = agent.ask("bills", "Pay bill 7.").message_id("bill-7").await?;
    /// assert_eq!((once.turn, model.requests().len()), (again.turn, 1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn message_id(self, id: impl Into<MessageId>) -> Self {
        self.change(|request| request.message = id.into())
    }

    /// Adds a check of the final answer, after the host's own. Its complaint goes back to the model,
    /// which answers again. With [`output`](Self::output) it sees the value as JSON, too.
    ///
    /// A check stays in memory. After a restart the turn needs it once more, from the same message
    /// sent again ([`message_id`](Self::message_id)); without it, the answer is withheld
    /// ([`TurnFailure::Unchecked`](rockbot_core::turn::TurnFailure::Unchecked)).
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_core::turn::{OutputVerdict, validator_fn};
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let no_fish = validator_fn(|answer, _turn| async move {
    ///     Ok(match answer.text.contains("Trout") {
    ///         true => OutputVerdict::complain("The user does not eat fish."),
    ///         false => OutputVerdict::Accept,
    ///     })
    /// });
    /// let model = ScriptedModel::new().says("Trout.").says("Soup.");
    /// let host = AgentHost::in_memory().chat(model).build()?;
    /// let answer = host.agent().ask("kitchen", "What can I cook?").validate(no_fish).await?;
    /// assert_eq!(answer.text, "Soup.");
    /// # Ok(())
    /// # }
    /// ```
    pub fn validate(mut self, validator: impl OutputValidator) -> Self {
        self.validators.push(Arc::new(validator));
        self
    }

    /// Requests an answer of type `T`: an object, a list, a number, an enum, an `Option`, or whatever
    /// else has a JSON Schema.
    ///
    /// The model is given the schema; a `T` that is not an object is requested as `{"value": T}`. An
    /// answer that does not fit the schema is requested again, without tools, before the turn fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::AgentHost;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().says(r#"{"value": 42}"#);
    /// let host = AgentHost::in_memory().chat(model).build()?;
    /// let answer = host.agent().ask("math", "How much is 6 times 7?").output::<u32>().await?;
    /// assert_eq!(answer, 42);
    /// # Ok(())
    /// # }
    /// ```
    pub fn output<T>(self) -> AgentRequest<Typed<T>>
    where
        T: DeserializeOwned + JsonSchema + Send + 'static,
    {
        let (answer, schema) = Typed::new();
        let request = self.change(|request| request.output = Some(schema));
        request.with_answer(|_| answer)
    }

    /// Sets the way to make the model match the schema of the answer. By default the model's client
    /// knows it, from the setting `LLM.{tier}.StructuredOutput`; else it is [`OutputMode::Native`].
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::chat::OutputMode;
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_host::AgentHost;
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().calls("final_answer", json!({"value": 42}));
    /// let host = AgentHost::in_memory().chat(model).build()?;
    /// let request = host.agent().ask("math", "How much is 6 times 7?").output::<u32>();
    /// assert_eq!(request.output_mode(OutputMode::Tool).await?, 42);
    /// # Ok(())
    /// # }
    /// ```
    pub fn output_mode(self, mode: OutputMode) -> Self {
        self.change(|request| request.output_mode = mode)
    }

    /// Lists the statements of the answer that rest on text of others alone, in
    /// [`TurnOutcome::outside_statements`](rockbot_core::turn::TurnOutcome::outside_statements), for
    /// a program that shows them to a person. Default: they are not searched for.
    ///
    /// # Examples
    ///
    /// ```
    /// use rockbot_core::testing::ScriptedModel;
    /// use rockbot_core::tool::tool;
    /// use rockbot_host::AgentHost;
    /// # use serde_json::json;
    /// # #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// # struct Nothing {}
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let model = ScriptedModel::new().calls("get_page", json!({})).says("It costs 1250 euros.");
    /// let page = tool("get_page", |_: Nothing| async { "The rent is 1250 euros." });
    /// let host = AgentHost::in_memory().chat(model).tool(page.description("Reads a page.").pure()).build()?;
    /// let answer = host.agent().ask("main", "What is the rent?").mark_statements().await?;
    /// assert_eq!(answer.outside_statements[0].source, "get_page");
    /// # Ok(())
    /// # }
    /// ```
    pub fn mark_statements(self) -> Self {
        self.change(|request| request.marks_statements = true)
    }

    fn change(mut self, change: impl FnOnce(&mut TurnRequest)) -> Self {
        change(&mut self.request);
        self
    }

    pub(super) fn with_answer<B>(self, answer: impl FnOnce(A) -> B) -> AgentRequest<B> {
        AgentRequest {
            agent: self.agent,
            request: self.request,
            validators: self.validators,
            answer: answer(self.answer),
        }
    }
}

impl<A: AnswerKind> IntoFuture for AgentRequest<A> {
    type Output = Result<A::Value, TurnError>;
    type IntoFuture = BoxFuture<'static, Self::Output>;

    /// Sends the message and waits for the answer.
    ///
    /// # Errors
    ///
    /// The future returns an error if the turn ends without an answer, waits for a person, or the
    /// message cannot be accepted; and if the answer cannot be deserialized as the requested type. A
    /// turn that waits for a person is not cancelled: it continues with [`Agent::decide`], ends with
    /// [`Agent::cancel`], or expires.
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let call = turn_call(self.request, ProgressSink::none(), self.validators);
            self.answer.of(self.agent.shared.turns.call(call).await?)
        })
    }
}
