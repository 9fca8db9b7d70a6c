//! The program `rockbot`: an agent in the terminal, made of the parts of the framework.
//!
//! | Module | Concern |
//! |---|---|
//! | `program` | Parses the command line and runs a command. |
//! | `arguments`, `asking` | The command line, and the request that it sets. |
//! | `agent` | Builds the agent that settings and options ask for. |
//! | `chat/` | The conversation at the terminal. |
//! | [`doctor`] | Checks of settings, folders, keys and model servers. |
//! | `commands/` | The commands besides. |
//! | [`host`] | Parts that the examples share: brokers, families of tools, logs. |

mod agent;
mod arguments;
mod asking;
mod chat;
mod commands;
pub mod doctor;
pub mod host;
mod program;

pub use program::Program;
