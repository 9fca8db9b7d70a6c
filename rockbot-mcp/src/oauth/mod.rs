//! OAuth of servers over HTTP: the user authorizes the agent in a browser, and tokens are kept,
//! sent and refreshed.
//!
//! The protocol's part is the client library's: discovery, registration, PKCE, resource
//! indicators, the checks of issuers. [`handler`] asks the host's user, [`prompts`] remembers the
//! outcomes, [`store`] keeps the granted tokens and [`tokens`] hands them to the client library,
//! [`http`] makes the requests, which a hostile server could aim at the operator's network, and
//! [`authorizer`] brings them together when a connection is made.

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
