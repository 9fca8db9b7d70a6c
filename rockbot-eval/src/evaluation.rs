//! An evaluation: all cases of a dataset, several at a time.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _, stream};
use rockbot_core::chat::ChatClient;
use rockbot_core::{BoxError, IdSource as _, RandomIds, SessionId};
use tokio::time::{Instant, timeout};

use crate::dataset::{Case, CaseTurn, Dataset};
use crate::judge;
use crate::report::{CaseResult, Report};
use crate::subject::{Answer, Subject};

/// A listener of results, called as each run of a case ends.
type Listener = Arc<dyn Fn(&CaseResult) + Send + Sync>;

/// An evaluation of an agent, or of any other [`Subject`].
///
/// ```
/// use rockbot_core::testing::ScriptedModel;
/// use rockbot_eval::{Case, Dataset, Evaluation, Expect};
/// use rockbot_host::AgentHost;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), rockbot_core::BoxError> {
/// let host = AgentHost::in_memory().chat(ScriptedModel::new().says("It is Oslo.").says("No idea.")).build()?;
/// let dataset = Dataset::new([
///     Case::new("norway").ask("The capital of Norway?", Expect::default().with_states(["Oslo"])),
///     Case::new("peru").ask("The capital of Peru?", Expect::default().with_states(["Lima"])),
/// ])?;
///
/// let report = Evaluation::new(dataset).with_parallel(1).run(host.agent().clone()).await?;
/// assert_eq!((report.passed(), report.results.len()), (1, 2));
/// assert_eq!(report.results[1].failures, ["the answer does not state `Lima`: No idea."]);
/// println!("{report}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Evaluation {
    dataset: Dataset,
    runs: u32,
    parallel: usize,
    time_limit: Duration,
    judge: Option<Arc<dyn ChatClient>>,
    listener: Option<Listener>,
}

impl fmt::Debug for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evaluation")
            .field("cases", &self.dataset.cases().len())
            .field("runs", &self.runs)
            .field("parallel", &self.parallel)
            .field("time_limit", &self.time_limit)
            .finish_non_exhaustive()
    }
}

/// An error of an evaluation that cannot begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// A case needs a judge, and the evaluation has none.
    #[error("case `{0}` needs a judge: name a model with `Evaluation::with_judge`")]
    NoJudge(String),
}

impl EvaluationError {
    /// Returns `false`: the evaluation stays as it is.
    pub fn retry_helps(&self) -> bool {
        false
    }
}

impl Evaluation {
    /// Creates an evaluation that runs each case once, four at a time.
    pub fn new(dataset: Dataset) -> Self {
        Self {
            dataset,
            runs: 1,
            parallel: 4,
            time_limit: Duration::from_secs(300),
            judge: None,
            listener: None,
        }
    }

    /// Sets the number of runs of each case, at least one. Models answer differently each time: three
    /// runs or more tell how steady an answer is. Default 1.
    #[must_use]
    pub fn with_runs(mut self, runs: u32) -> Self {
        self.runs = runs.max(1);
        self
    }

    /// Sets the number of cases that run at once, at least one. Default 4.
    #[must_use]
    pub fn with_parallel(mut self, parallel: usize) -> Self {
        self.parallel = parallel.max(1);
        self
    }

    /// Sets the time for one answer. An answer that takes longer is a failure. Default 5 minutes.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Sets the model that judges statements about answers. Default: none, and a dataset with such
    /// statements is refused.
    #[must_use]
    pub fn with_judge(mut self, model: impl ChatClient) -> Self {
        self.judge = Some(Arc::new(model));
        self
    }

    /// Sets a listener, which is called as each run of a case ends. It must not block. Default: none.
    #[must_use]
    pub fn with_listener(mut self, listener: impl Fn(&CaseResult) + Send + Sync + 'static) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// Runs all cases. A case that fails, panics or takes too long is a result, and no error.
    ///
    /// # Errors
    ///
    /// Returns [`EvaluationError::NoJudge`] if a case needs a judge and there is none.
    pub async fn run(&self, subject: impl Subject) -> Result<Report, EvaluationError> {
        let cases = self.dataset.cases();
        let asks_judge = |case: &&Case| case.turns.iter().any(|turn| turn.expect.judge.is_some());
        if let Some(case) = cases.iter().find(asks_judge).filter(|_| self.judge.is_none()) {
            return Err(EvaluationError::NoJudge(case.id.clone()));
        }
        // Conversations of an earlier evaluation must not be gone on with.
        let evaluation = RandomIds.next_id();
        let subject: &dyn Subject = &subject;
        let runs = cases
            .iter()
            .enumerate()
            .flat_map(|(number, case)| (1..=self.runs).map(move |run| (number, case, run)));
        let runs = runs.map(|(number, case, run)| {
            let conversation = SessionId::from(format!("eval-{evaluation}-{number}-{run}"));
            async move { self.run_case(subject, case, run, &conversation).await }
        });
        let results = stream::iter(runs).buffered(self.parallel).collect().await;
        Ok(Report { results })
    }

    async fn run_case(&self, subject: &dyn Subject, case: &Case, run: u32, conversation: &SessionId) -> CaseResult {
        let mut result = CaseResult::new(case.id.clone(), run);
        for (number, turn) in case.turns.iter().enumerate() {
            let (answer, failures) = match self.answer(subject, conversation, &turn.ask).await {
                Ok(answer) => {
                    let failures = self.failures(turn, &answer).await;
                    (answer, failures)
                }
                Err(error) => (Answer::default(), vec![format!("no answer: {error}")]),
            };
            let has_answer = !answer.text.is_empty();
            result.answers.push(answer);
            let is_alone = case.turns.len() == 1;
            let named = failures.into_iter().map(|failure| {
                if is_alone {
                    failure
                } else {
                    format!("question {}: {failure}", number + 1)
                }
            });
            result.failures.extend(named);
            if !has_answer {
                // What follows builds upon an answer that is not there.
                break;
            }
        }
        // A subject that panics here, or hangs, has answered.
        let _ = timeout(
            self.time_limit,
            AssertUnwindSafe(subject.end(conversation)).catch_unwind(),
        )
        .await;
        if let Some(listener) = &self.listener {
            listener(&result);
        }
        result
    }

    async fn answer(
        &self,
        subject: &dyn Subject,
        conversation: &SessionId,
        question: &str,
    ) -> Result<Answer, BoxError> {
        let begun = Instant::now();
        let answer = AssertUnwindSafe(subject.answer(conversation, question)).catch_unwind();
        let Ok(ended) = timeout(self.time_limit, answer).await else {
            return Err(format!("it took longer than {:?}", self.time_limit).into());
        };
        let answer = ended.map_err(|_| "the subject panicked; its message is on standard error")??;
        Ok(answer.with_time(begun.elapsed()))
    }

    async fn failures(&self, turn: &CaseTurn, answer: &Answer) -> Vec<String> {
        let mut failures = turn.expect.failures(answer);
        if let (Some(statement), Some(judge)) = (&turn.expect.judge, &self.judge) {
            let judged = timeout(self.time_limit, judge::judge(&**judge, statement, &turn.ask, answer));
            let late = || Err("the judge took too long".to_owned());
            failures.extend(judged.await.unwrap_or_else(|_| late()).err());
        }
        failures
    }
}
