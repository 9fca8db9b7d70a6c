//! The form of a client's answers: JSON-RPC with the id of the request, in the version of the
//! client, or plain JSON.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::version::Version;
use crate::a2a_wire::v03;

/// The form of answers to one request.
#[derive(Debug, Clone)]
pub(super) struct RpcForm {
    /// JSON of the request's id.
    id: Box<RawValue>,
    version: Version,
}

/// The form of the items of a stream.
#[derive(Debug)]
pub(super) enum ItemForm {
    Rpc(RpcForm),
    Rest,
}

#[derive(Serialize)]
struct RpcResult<'a, T> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: T,
}

impl RpcForm {
    /// Creates the form of answers to the request of this id.
    pub(super) fn new(id: Box<RawValue>, version: Version) -> Self {
        Self { id, version }
    }

    /// Returns `true` for a client of 0.3.
    pub(super) fn is_old(&self) -> bool {
        self.version == Version::V03
    }

    /// Writes a result.
    pub(super) fn result(&self, result: impl Serialize) -> Vec<u8> {
        match self.version {
            Version::V1 => self.written(result),
            Version::V03 => self.written(v03::result(value_of(&result))),
        }
    }

    /// Writes a result that is in the client's version already.
    pub(super) fn written(&self, result: impl Serialize) -> Vec<u8> {
        let answer = RpcResult {
            jsonrpc: "2.0",
            id: &self.id,
            result,
        };
        serde_json::to_vec(&answer).expect("the protocol's objects have no maps with keys that are no text")
    }
}

fn value_of(result: &impl Serialize) -> Value {
    serde_json::to_value(result).expect("the protocol's objects have no maps with keys that are no text")
}
