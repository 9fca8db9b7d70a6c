//! The record of mutating calls of other programs: none of them runs twice.
//!
//! A bus delivers at least once, and a worker that is killed in the middle of a call gets the call again, or another worker
//! does. So each mutating call is recorded before it begins and when it has ended (`ledger`), under the key of its
//! sender, in a file that outlives the process (`log`). A call that comes again gets its first result, or learns that its
//! outcome is unknown.

mod ledger;
mod log;
#[cfg(test)]
mod tests;

pub(crate) use ledger::{Admission, EffectKey, EffectLedger, Recorded};
pub(crate) use log::{EffectLog, EffectLogError};

use std::time::Duration;

/// Time for which calls are recorded unless the host sets another one.
pub(crate) const EFFECT_WINDOW: Duration = Duration::from_secs(24 * 60 * 60);
