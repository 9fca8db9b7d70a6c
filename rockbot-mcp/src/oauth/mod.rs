//! OAuth of servers over HTTP: the user authorizes the agent in a browser, and tokens are kept, sent and refreshed.
//!
//! The protocol's part is the client library's: discovery, registration, PKCE, resource indicators, the checks of issuers.
//! [`handler`] is how the host asks its user, [`prompts`] remembers what became of it, [`store`] keeps what was granted and
//! [`tokens`] hands it to the client library, [`http`] makes the requests, which a hostile server could aim at the operator's
//! network, and [`authorizer`] brings them together when a connection is made.

mod authorizer;
mod handler;
mod http;
mod prompts;
mod store;
mod tokens;

pub(crate) use authorizer::{Authorizer, authorized_client};
pub use handler::{Authorization, AuthorizationAnswer, AuthorizationHandler};
pub(crate) use store::CredentialFolder;
pub use store::{CredentialStore, InMemoryCredentials};
