//! The operations on plans: applying, undoing, and finishing a plan that was interrupted.

use std::sync::Arc;

use rockbot_core::Principal;
use rockbot_core::store::StoreError;

use super::apply::Applier;
use super::dreamer::Dreamer;
use super::error::DreamError;
use super::plan::{DreamPlan, PlanState};

impl Dreamer {
    /// Applies a plan of a principal.
    pub(super) async fn apply(&self, who: &Principal, id: &str) -> Result<Arc<DreamPlan>, DreamError> {
        let _one_at_a_time = self.changing.lock().await;
        let plan = self.find(who, id)?;
        if !plan.can_be_applied() {
            return Err(DreamError::State(plan.state));
        }
        self.applier(&plan).check().await?;
        // The plan is on disk before the first change: a crash from here on is repaired at the next
        // start.
        let plan = self.advance(&plan, PlanState::Applying, Vec::new()).await?;
        let remarks = self.applier(&plan).apply().await?;
        let plan = self.advance(&plan, PlanState::Applied, remarks).await?;
        self.log(plan.pass, &format!("applied {id}")).await;
        Ok(plan)
    }

    /// Undoes a plan of a principal.
    pub(super) async fn undo(&self, who: &Principal, id: &str) -> Result<Arc<DreamPlan>, DreamError> {
        let _one_at_a_time = self.changing.lock().await;
        let plan = self.find(who, id)?;
        if plan.state != PlanState::Applied {
            return Err(DreamError::State(plan.state));
        }
        let plan = self.advance(&plan, PlanState::Undoing, Vec::new()).await?;
        let remarks = self.applier(&plan).undo().await?;
        let plan = self.advance(&plan, PlanState::Undone, remarks).await?;
        self.log(plan.pass, &format!("undone {id}")).await;
        Ok(plan)
    }

    /// Finishes the plans that a killed process or a failing store left half made or half undone.
    pub(super) async fn recover(&self) {
        let _one_at_a_time = self.changing.lock().await;
        for plan in self.plans.all() {
            let applier = self.applier(&plan);
            let (done, state) = match plan.state {
                PlanState::Applying => (applier.apply().await, PlanState::Applied),
                PlanState::Undoing => (applier.undo().await, PlanState::Undone),
                PlanState::Proposed | PlanState::Applied | PlanState::Undone => continue,
            };
            let finished = match done {
                Ok(remarks) => self.advance(&plan, state, remarks).await.map(drop),
                Err(error) => Err(error),
            };
            match finished {
                Ok(()) => {
                    self.log(plan.pass, &format!("finished {}, which was interrupted", plan.id))
                        .await
                }
                Err(error) => {
                    tracing::warn!(id = plan.id, %error, "a dream that was interrupted cannot be finished yet")
                }
            }
        }
    }

    fn find(&self, who: &Principal, id: &str) -> Result<Arc<DreamPlan>, DreamError> {
        let plan = self.plans.find(id).filter(|plan| plan.principal == *who);
        plan.ok_or_else(|| DreamError::NotFound(id.to_owned()))
    }

    fn applier<'a>(&'a self, plan: &'a DreamPlan) -> Applier<'a> {
        Applier {
            stores: &self.stores,
            plan,
            now: self.clock.now(),
        }
    }

    async fn advance(
        &self,
        plan: &DreamPlan,
        state: PlanState,
        remarks: Vec<String>,
    ) -> Result<Arc<DreamPlan>, StoreError> {
        let mut plan = plan.clone();
        plan.state = state;
        plan.notes.extend(remarks);
        self.plans.save(plan).await
    }
}
