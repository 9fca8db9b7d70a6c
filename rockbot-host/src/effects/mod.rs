//! The record of mutating calls of other programs: none of them runs twice.
//!
//! A bus delivers at least once, and a worker that is killed in the middle of a call gets the
//! call again, or another worker does. So each mutating call of another program is recorded
//! before it begins and when it has ended (`ledger`), under the key of its sender, in a file that
//! outlives the process (`log`). A call that comes again gets its first result, or learns that
//! its outcome is unknown.
//!
//! A call is recorded under its sender, principal, idempotency key, tool and arguments, for 24
//! hours (`EffectWindow`), in `effects/effects.jsonl` of the data folder. The same call again
//! gets the first result, kept up to 256 KiB and 16 MiB in all, or waits for the running call.
//! The outcome of a call is unknown if the call had begun when its process was killed, or if the
//! bus delivers it again without a record here, since another worker may have begun it.
//!
//! An agent that has restarted asks all workers under `tool.outcome` for the calls that it had
//! left (`ToolExecutor::recover`). The worker with the record answers; no worker runs a call for
//! that.

mod ledger;
mod log;
#[cfg(test)]
mod tests;

pub(crate) use ledger::{Admission, EffectKey, EffectLedger, Recorded};
pub(crate) use log::{EffectLog, EffectLogError};

use std::time::Duration;

/// Time for which calls are recorded unless the host sets another one.
pub(crate) const EFFECT_WINDOW: Duration = Duration::from_secs(24 * 60 * 60);
