//! One policy for every request that a model or a remote text can influence: [`EgressPolicy`].
//!
//! A model that was talked into it by a page asks for `http://169.254.169.254/` as readily as for any other URL (server-side
//! request forgery). So no tool makes requests itself: all go through one client, which checks each URL, dials only
//! addresses that it has checked, follows redirects itself, and bounds time and size.

mod address;
mod body;
mod client;
mod error;
mod origin;
#[cfg(any(feature = "a2a", feature = "a2a-server"))]
mod pieces;
mod policy;
mod policy_client;
mod resolver;
#[cfg(test)]
mod tests;

#[cfg(feature = "web")]
pub(crate) use client::text_of;
pub(crate) use client::{EgressClient, EgressRequest, EgressResponse, USER_AGENT};
pub use error::EgressError;
pub(crate) use origin::from_server;
#[cfg(feature = "a2a")]
pub(crate) use pieces::EgressPieces;
pub use policy::EgressPolicy;
pub use policy_client::{PolicyClient, PolicyResponse};
