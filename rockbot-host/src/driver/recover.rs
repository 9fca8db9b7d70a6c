//! Recovery of tool calls that were running when their process ended.

use std::time::Duration;

use rockbot_core::tool::Recovery;
use rockbot_core::turn::Delegation;

use super::large_results::Shortened;
use super::{TurnDriver, context};
use crate::live::LiveTurn;
use crate::turn::policy::outcome_unknown;
use crate::turn::{CallState, Turn};

/// Interval between two questions to a tool whether an interrupted call has ended.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of times that a tool is asked about one call.
const MAX_POLLS: u32 = 60;

impl TurnDriver {
    /// Asks the tool of an interrupted mutating call for its result. The call is never run again:
    /// when the tool cannot report it within a minute, the response to the model states that the
    /// outcome is unknown.
    ///
    /// The work of other agents' turns for the call is entered in `account`.
    pub(crate) async fn recover(
        &self,
        turn: &Turn,
        live: &LiveTurn,
        call: &CallState,
        account: &Delegation,
    ) -> Shortened {
        let request = call.request(&turn.request().session);
        let cx = context(turn, live).with_extension(account.clone());
        for _ in 0..MAX_POLLS {
            match self.tools.recover(&request, &cx).await {
                Recovery::Finished(response) => {
                    let mut response = self.tools.labelled(response, Some(call.facts), &cx);
                    let keeping = self.media.keep_or_describe(cx.principal(), &mut response.content);
                    keeping.await;
                    let threshold = turn.policy().result_threshold;
                    return self.large.shorten(response, call.facts, &cx, threshold).await;
                }
                Recovery::Unknown => break,
                Recovery::Running => {}
            }
            // Cancel point: a cancelled turn does not wait for the call.
            let pause = tokio::time::sleep(POLL_INTERVAL);
            if live.cancellation().run_until_cancelled(pause).await.is_none() {
                break;
            }
        }
        Shortened::unchanged(outcome_unknown(request))
    }
}
