//! The step that asks the loop policies of the host's program.

use rockbot_core::content::Content;
use rockbot_core::support::loggable;
use rockbot_core::turn::{JournalError, LoopDecision, LoopPolicy, TurnProgress, TurnView};

use super::{Drive, HookEnd, HookError};
use crate::turn::{Consultation, TurnEvent};

/// The result of asking several policies.
#[derive(Default)]
struct Consulted {
    added: Vec<Content>,
    decision: LoopDecision,
    by: Option<String>,
    failed: Vec<String>,
}

impl Drive<'_> {
    /// Asks the policies in order, until one decides something else than to continue or to add a
    /// message.
    pub(in crate::driver) async fn consult(&mut self, about: &Consultation) -> Result<(), JournalError> {
        // Write-ahead: everything that a policy may act upon is durable, above all an answer that
        // was paid for.
        self.flush().await?;
        let point = self.turn.loop_point(about);
        let view = self.hook_view();
        let driver = self.driver;
        let mut all = Consulted::default();
        for policy in &driver.hooks.policies {
            match self.run_hook(policy.decide(&point, &view)).await {
                HookEnd::Decided(decided) => all.apply(&**policy, decided, &view),
                HookEnd::Cancelled(event) => {
                    self.feed(event);
                    return Ok(());
                }
                HookEnd::Halted => return Ok(()),
            }
            if all.decision != LoopDecision::Continue {
                break;
            }
        }
        let ends = matches!(all.decision, LoopDecision::Answer(_) | LoopDecision::Fail(_));
        if ends && matches!(about, Consultation::AfterAnswer(_)) {
            // The reader of a stream has seen an answer that is not the turn's.
            self.live.progress().send(|| TurnProgress::Retract);
        }
        self.keep_added(&mut all).await;
        self.feed(TurnEvent::Consulted {
            added: all.added,
            decision: all.decision,
            by: all.by,
            failed: all.failed,
        });
        Ok(())
    }

    /// Stores the images and files of the policies' messages and of their answer, so that the journal
    /// refers to them.
    async fn keep_added(&self, all: &mut Consulted) {
        let decided = match &mut all.decision {
            LoopDecision::AskAgain(content) | LoopDecision::Answer(content) => Some(content),
            _ => None,
        };
        for content in all
            .added
            .iter_mut()
            .chain(decided)
            .filter(|content| content.has_media())
        {
            let keeping = self.driver.media.keep_or_describe(self.cx.principal(), content);
            // Boxed: few policies show images, and each turn would have room for this otherwise.
            Box::pin(keeping).await;
        }
    }
}

impl Consulted {
    fn apply(&mut self, policy: &dyn LoopPolicy, decided: Result<LoopDecision, HookError>, turn: &TurnView) {
        let name = policy.name();
        match decided {
            Ok(LoopDecision::Continue) => {}
            Ok(decision) => {
                self.by = Some(name.to_owned());
                match decision {
                    LoopDecision::AddMessage(text) => self.added.push(text),
                    decision => self.decision = decision,
                }
            }
            Err(error) => {
                let turn = turn.request.turn_id();
                let text = error.to_string();
                let error = loggable(&text);
                tracing::warn!(%turn, policy = name, %error, "loop policy failed; the turn continues without it");
                self.failed.push(format!("{name}: {error}"));
            }
        }
    }
}
