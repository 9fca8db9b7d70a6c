//! Tools for the world: the web, HTTP interfaces, files, work in the background.
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
//! | `scripts` | `scripts::Scripts` | `execute_python_script` |
//! | `subagents` | `subagents::Subagents` | `spawn_subagent`, `list_subagents`, `cancel_subagent` |
//! | `wisps` | `wisps::Wisps`, `workers::Workers` | `spawn_wisps`, `spawn_workers` |
//! | `wisps` | `pipelines::Pipeline` | none: an agent whose turns are the runs of a procedure of the program |

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
