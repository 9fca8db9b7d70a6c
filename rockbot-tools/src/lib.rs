//! Tools for agents of the `rockbot` framework, each family behind a feature.
