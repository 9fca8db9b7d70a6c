//! Refusals of the form of a request: by the chat template of a model, or by a server that does
//! not read its calls.
//!
//! Servers report them with many codes, llama.cpp with 500, too. The same request would be
//! refused again, so it is not repeated; and the remedy is known.

/// Words of servers in lower case, each with the advice for it.
const ADVICE: [(&str, &str); 11] = [
    (
        "system role not supported",
        "start its server with a chat template that knows the system's role",
    ),
    (
        "only supports single tool-calls",
        "set `ParallelToolCalls` to false for this model",
    ),
    ("tool call ids should be", "keep a turn with its calls on one model"),
    ("does not support tools", IN_TEXT),
    (
        "requires --jinja",
        "start its server with `--jinja`, or set `UseTextBasedToolCalling` for this model",
    ),
    (
        "--enable-auto-tool-choice",
        "start its server with these options, or set `UseTextBasedToolCalling` for this model",
    ),
    ("roles must alternate", IN_TEXT),
    ("image input is not supported", NO_IMAGES),
    ("support image input", NO_IMAGES),
    ("jinja exception", OTHER_TEMPLATE),
    ("unable to generate parser for this template", OTHER_TEMPLATE),
];

const IN_TEXT: &str = "set `UseTextBasedToolCalling` for this model, whose chat template knows no tools";

const NO_IMAGES: &str = "set `Images` to false for this model";

const OTHER_TEMPLATE: &str = "start its server with another chat template";

/// Returns the remedy for a refusal with this text, in lower case; `None` if it is about
/// something else.
pub(super) fn advice_for(text: &str) -> Option<&'static str> {
    let mut known = ADVICE.iter();
    known.find(|(said, _)| text.contains(said)).map(|(_, advice)| *advice)
}
