//! Tools for the world: the web, HTTP interfaces, files, work in the background, other agents.
//!
//! Each family is a subsystem behind a feature of its own, and a host from a configuration
//! (`FromConfig`) has those that its settings name. Every request of theirs obeys one policy,
//! the [`EgressPolicy`](egress::EgressPolicy).
//!
//! | feature | subsystem | tools |
//! |---|---|---|
//! | `web` | `web::WebTools` | `web_search`, `web_browse` |
//! | `pdf` | `web::WebTools` | the text of PDF documents in `web_browse` |
//! | `rest` | `rest::RestTools` | those that the settings or OpenAPI documents describe |
//! | `files` | `files::FileTools` | `file_read`, `file_list`, `file_search`, `file_write`, `file_edit`, `file_delete` |
//! | `scheduling` | `scheduling::Scheduling` | `schedule_task`, `list_scheduled_tasks`, `cancel_scheduled_task`, `run_scheduled_task`; in runs of tasks `update_task_directive`, `edit_task_directive` |
//! | `scripts` | `scripts::Scripts` | `execute_python_script`, in a sandbox or at a scripts manager |
//! | `a2a` | `a2a::A2aCaller` | `invoke_agent`, `list_known_agents`, `get_agent_details`, `register_agent`, `unregister_agent`, `list_agent_tasks`, `cancel_agent_task` |
//! | `a2a` | `a2a::A2aReceiver` | none: it takes tasks of other agents |
//! | `subagents` | `subagents::Subagents` | `spawn_subagent`, `list_subagents`, `cancel_subagent` |
//! | `a2a-server` | `a2a_server::A2aServer` | `ask_caller`, in the turns of agents that call over HTTP |
//! | `wisps` | `wisps::Wisps`, `workers::Workers` | `spawn_wisps`, `spawn_workers` |
//! | `wisps` | `pipelines::Pipeline` | none: an agent whose turns are the runs of a procedure of the program |
//!
#![doc = include_str!("../docs/world.md")]
#![cfg_attr(all(feature = "scripts", unix), doc = include_str!("../docs/scripts.md"))]
#![cfg_attr(feature = "scheduling", doc = include_str!("../docs/schedules.md"))]
#![doc = include_str!("../docs/agents.md")]

#[cfg(feature = "a2a")]
#[cfg_attr(docsrs, doc(cfg(feature = "a2a")))]
#[doc(inline)]
pub use rockbot_tools::a2a;
#[cfg(feature = "a2a-server")]
#[cfg_attr(docsrs, doc(cfg(feature = "a2a-server")))]
#[doc(inline)]
pub use rockbot_tools::a2a_server;
#[cfg(any(feature = "web", feature = "rest"))]
#[doc(inline)]
pub use rockbot_tools::egress;
#[cfg(feature = "files")]
#[cfg_attr(docsrs, doc(cfg(feature = "files")))]
#[doc(inline)]
pub use rockbot_tools::files;
#[cfg(feature = "rest")]
#[cfg_attr(docsrs, doc(cfg(feature = "rest")))]
#[doc(inline)]
pub use rockbot_tools::rest;
#[cfg(feature = "scheduling")]
#[cfg_attr(docsrs, doc(cfg(feature = "scheduling")))]
#[doc(inline)]
pub use rockbot_tools::scheduling;
#[cfg(all(feature = "scripts", unix))]
#[cfg_attr(docsrs, doc(cfg(feature = "scripts")))]
#[doc(inline)]
pub use rockbot_tools::scripts;
#[cfg(feature = "subagents")]
#[cfg_attr(docsrs, doc(cfg(feature = "subagents")))]
#[doc(inline)]
pub use rockbot_tools::subagents;
#[cfg(feature = "web")]
#[cfg_attr(docsrs, doc(cfg(feature = "web")))]
#[doc(inline)]
pub use rockbot_tools::web;
#[cfg(feature = "wisps")]
#[cfg_attr(docsrs, doc(cfg(feature = "wisps")))]
#[doc(inline)]
pub use rockbot_tools::{pipelines, wisps, workers};
