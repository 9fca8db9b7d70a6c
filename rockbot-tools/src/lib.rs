//! Tools for agents of the `rockbot` framework, each family behind a feature.
//!
//! | feature | what it holds |
//! |---|---|
//! | `web` | [`WebTools`](web::WebTools): `web_search` and `web_browse` |
//! | `pdf` | the text of PDF documents in `web_browse`; needs `web` |
//! | `rest` | [`RestTools`](rest::RestTools): tools from HTTP interfaces, described in the settings or by OpenAPI documents |
//! | `files` | [`FileTools`](files::FileTools): a folder of files for an agent |
//! | `scheduling` | [`Scheduling`](scheduling::Scheduling): tasks at set times |
//! | `scripts` | [`Scripts`](scripts::Scripts): Python scripts, in a sandbox or at a scripts manager |
//! | `a2a` | [`A2aCaller`](a2a::A2aCaller), [`A2aReceiver`](a2a::A2aReceiver): tasks for other agents on the bus and over HTTP, tasks of other agents on the bus |
//! | `subagents` | [`Subagents`](subagents::Subagents): work in the background |
//! | `wisps` | [`Wisps`](wisps::Wisps): pipelines of steps; [`Workers`](workers::Workers): batches of small tasks; [`Pipeline`](pipelines::Pipeline): procedures of the program |
//! | `a2a-server` | [`A2aServer`](a2a_server::A2aServer): the agent for other agents, over HTTP |
//! | `tls` | servers behind https |
//!
//! Each family is a subsystem, which an agent's builder takes with `add`. What the tools return
//! is text of others: it is labelled as untrusted, with its source.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "a2a")]
#[cfg_attr(docsrs, doc(cfg(feature = "a2a")))]
pub mod a2a;
#[cfg(any(feature = "a2a", feature = "a2a-server"))]
#[cfg_attr(
    not(all(feature = "a2a", feature = "a2a-server")),
    allow(dead_code, reason = "each door uses a part of what both have")
)]
mod a2a_callers;
#[cfg(feature = "a2a-server")]
#[cfg_attr(docsrs, doc(cfg(feature = "a2a-server")))]
pub mod a2a_server;
#[cfg(any(feature = "a2a", feature = "a2a-server"))]
#[cfg_attr(
    not(all(feature = "a2a", feature = "a2a-server")),
    allow(
        dead_code,
        unused_imports,
        reason = "the client writes what the server reads, and the other way round"
    )
)]
mod a2a_wire;
#[cfg(any(feature = "a2a", feature = "files"))]
#[cfg_attr(
    not(all(feature = "a2a", feature = "files")),
    allow(dead_code, reason = "one family provides what the other one reads")
)]
mod agent_files;
#[cfg(any(feature = "subagents", feature = "wisps"))]
mod below;
#[cfg(feature = "egress")]
#[cfg_attr(docsrs, doc(cfg(any(feature = "web", feature = "rest"))))]
#[cfg_attr(
    not(any(feature = "web", feature = "rest")),
    allow(dead_code, unused_imports, reason = "other users need a part of the client")
)]
pub mod egress;
#[cfg(feature = "files")]
#[cfg_attr(docsrs, doc(cfg(feature = "files")))]
pub mod files;
#[cfg(feature = "http-server")]
#[cfg_attr(docsrs, doc(cfg(feature = "http-server")))]
pub mod http_server;
#[cfg(all(test, feature = "files", feature = "pdf", feature = "rest"))]
mod outside_text;
#[cfg(feature = "wisps")]
#[cfg_attr(docsrs, doc(cfg(feature = "wisps")))]
pub mod pipelines;
#[cfg(feature = "rest")]
#[cfg_attr(docsrs, doc(cfg(feature = "rest")))]
pub mod rest;
#[cfg(feature = "scheduling")]
#[cfg_attr(docsrs, doc(cfg(feature = "scheduling")))]
pub mod scheduling;
#[cfg(all(feature = "scripts", unix))]
#[cfg_attr(docsrs, doc(cfg(feature = "scripts")))]
pub mod scripts;
#[cfg(feature = "subagents")]
#[cfg_attr(docsrs, doc(cfg(feature = "subagents")))]
pub mod subagents;
#[cfg(test)]
#[cfg(feature = "egress")]
mod test_server;
#[cfg(feature = "web")]
#[cfg_attr(docsrs, doc(cfg(feature = "web")))]
pub mod web;
#[cfg(feature = "wisps")]
#[cfg_attr(docsrs, doc(cfg(feature = "wisps")))]
pub mod wisps;
#[cfg(feature = "wisps")]
#[cfg_attr(docsrs, doc(cfg(feature = "wisps")))]
pub mod workers;
