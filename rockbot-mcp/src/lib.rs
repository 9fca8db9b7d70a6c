//! Tools of servers of the Model Context Protocol for agents of the `rockbot` framework.
