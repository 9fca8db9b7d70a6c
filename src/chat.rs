//! Models: the client trait, the clients that implement it, and what stands in front of them.
//!
//! [`ChatClient`] asks a model; [`ChatTiers`] hands each call to the model of its [`ModelTier`]; [`ModelGateway`] stands
//! in front with permits, retries, fallback models, a circuit breaker and time limits. A [`TierSelector`] chooses
//! the tier of a message, [`ModelBehaviors`] adapts prompts and limits to particular models, and a [`PriceTable`]
//! knows what tokens cost. Without a key, [`OfflineModel`] stands in and says that it is no LLM.
//!
//! ```
//! # #[cfg(feature = "llm")] {
//! use rockbot::chat::{ChatTiers, ModelTier, OfflineModel};
//!
//! let tiers = ChatTiers::new(OfflineModel::new());
//! # let _: (ChatTiers, ModelTier) = (tiers, ModelTier::High);
//! # }
//! ```

#[doc(inline)]
pub use rockbot_core::chat::*;
#[doc(inline)]
pub use rockbot_core::embedding::*;
#[doc(inline)]
pub use rockbot_host::behavior::*;
#[doc(inline)]
pub use rockbot_host::routing::*;
#[cfg(feature = "llm")]
#[doc(inline)]
pub use rockbot_llm::*;
