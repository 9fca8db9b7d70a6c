//! The version of the protocol that a request speaks.

use crate::a2a_wire::{A2aError, ErrorKind};

/// A version of the protocol that is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    V1,
    V03,
}

impl Version {
    /// Reads the service parameter `A2A-Version`: a request without it speaks 0.3. The number
    /// behind a second point makes no difference.
    pub(super) fn read(parameter: Option<&str>) -> Result<Self, A2aError> {
        let given = parameter.unwrap_or_default().trim();
        let mut numbers = given.split('.');
        match (numbers.next(), numbers.next()) {
            (Some(""), None) | (Some("0"), Some("3")) => Ok(Self::V03),
            (Some("1"), Some("0")) => Ok(Self::V1),
            _ => Err(A2aError::new(
                ErrorKind::VersionNotSupported,
                "this version of the protocol is not spoken here: send `A2A-Version: 1.0`, or 0.3",
            )),
        }
    }
}
