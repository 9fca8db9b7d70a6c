//! The tasks, one file for each kind.

mod everyday;
mod failing_tools;
mod long_results;
mod no_tool;
mod parallel;
mod right_arguments;
mod right_tool;
mod several_calls;

use super::task::Task;

/// Returns all tasks, kind by kind.
pub(crate) fn all() -> Vec<Task> {
    [
        right_tool::tasks(),
        right_arguments::tasks(),
        no_tool::tasks(),
        several_calls::tasks(),
        long_results::tasks(),
        failing_tools::tasks(),
        everyday::tasks(),
        parallel::tasks(),
    ]
    .concat()
}
