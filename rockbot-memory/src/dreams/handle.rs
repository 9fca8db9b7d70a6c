//! The plans of dreams, for the program around a host.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rockbot_core::Principal;

use super::dreamer::Dreamer;
use super::error::DreamError;
use super::plan::DreamPlan;

/// The dreamer, once the host has started.
pub(super) type Shared = Arc<OnceLock<Arc<Dreamer>>>;

/// The plans of dreams of a principal: to list, read, apply and undo.
///
/// A host with [`Dreaming`](super::Dreaming) has it among its parts:
/// `host.parts().require::<Dreams>()`. It begins with the plans of the principal `local`.
/// Applying a plan is the endorsement of a person: offer [`apply`](Self::apply) to users alone,
/// never to a model.
///
/// ```
/// use rockbot_memory::Dreams;
/// use rockbot_memory::dreams::DreamError;
///
/// async fn accept_all(dreams: &Dreams) -> Result<(), DreamError> {
///     for plan in dreams.plans()? {
///         if plan.can_be_applied() {
///             println!("{plan}");
///             dreams.apply(&plan.id).await?; // `dreams.undo` takes it back
///         }
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Dreams {
    shared: Shared,
    principal: Principal,
}

impl Dreams {
    pub(super) fn new(shared: Shared) -> Self {
        Self {
            shared,
            principal: Principal::default(),
        }
    }

    /// Returns the plans of another principal.
    #[must_use]
    pub fn of(&self, principal: impl Into<Principal>) -> Self {
        Self {
            shared: self.shared.clone(),
            principal: principal.into(),
        }
    }

    /// Returns all plans, the oldest first. At most 1 000 plans of all principals are kept. Beyond
    /// that the oldest applied or undone plan is removed, and can no longer be undone. If all plans
    /// wait, the oldest waiting plan is removed.
    ///
    /// # Errors
    ///
    /// Returns [`DreamError::NotStarted`] before the host has started, or if dreams are off.
    pub fn plans(&self) -> Result<Vec<Arc<DreamPlan>>, DreamError> {
        let mut plans = self.dreamer()?.plans.all();
        plans.retain(|plan| plan.principal == self.principal);
        Ok(plans)
    }

    /// Makes the changes of a plan that waits or was undone, after a check that the knowledge is as
    /// the plan expects it. Returns the plan as it is then. Its notes name changes that could not
    /// be made.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such plan, the plan is applied already or out of date, or a
    /// store fails. Changes that a failing store leaves open are made at the next cycle or start.
    pub async fn apply(&self, id: &str) -> Result<Arc<DreamPlan>, DreamError> {
        let dreamer = self.dreamer()?.clone();
        let who = self.principal.clone();
        let id = id.to_owned();
        finished(async move { dreamer.apply(&who, &id).await }).await
    }

    /// Undoes the changes of an applied plan. Returns the plan as it is then. Its notes name the
    /// entries that were changed since and stay. Memories that the plan had superseded are not
    /// proposed again.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such plan, the plan is not applied, or a store fails.
    /// Changes that a failing store leaves are undone at the next cycle or start.
    pub async fn undo(&self, id: &str) -> Result<Arc<DreamPlan>, DreamError> {
        let dreamer = self.dreamer()?.clone();
        let who = self.principal.clone();
        let id = id.to_owned();
        finished(async move { dreamer.undo(&who, &id).await }).await
    }

    /// Runs a cycle now, for all principals, and waits for its end. Each pass waits until no turn
    /// works, and yields to users as ever. A cycle that runs already ends first. The end of the
    /// host ends the cycle.
    ///
    /// # Errors
    ///
    /// Returns [`DreamError::NotStarted`] before the host has started, or if dreams are off.
    pub async fn dream(&self) -> Result<(), DreamError> {
        let dreamer = self.dreamer()?.clone();
        finished(async move {
            dreamer.cycle(Duration::ZERO, &dreamer.ended).await;
            Ok(())
        })
        .await
    }

    fn dreamer(&self) -> Result<&Arc<Dreamer>, DreamError> {
        self.shared.get().ok_or(DreamError::NotStarted)
    }
}

/// Runs `work` to its end, also when the caller gives up: a plan is never left in the middle.
async fn finished<T: Send + 'static>(
    work: impl Future<Output = Result<T, DreamError>> + Send + 'static,
) -> Result<T, DreamError> {
    // The task ends without a result only if the runtime does.
    tokio::spawn(work).await.unwrap_or(Err(DreamError::NotStarted))
}
