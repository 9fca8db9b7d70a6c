//! Tools for agents of the `rockbot` framework, each family behind a feature.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "service")]
#[cfg_attr(docsrs, doc(cfg(feature = "service")))]
pub mod service;
