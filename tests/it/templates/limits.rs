//! Families of models whose templates do not show everything, each with the reason.

/// A part of requests that a template does not show, although its server was sent it.
pub(super) struct Limit {
    /// Name of the template's file, without its ending.
    pub(super) template: &'static str,
    /// Words in the report of [`Family::check`](super::render::Family::check).
    pub(super) what: &'static str,
}

impl Limit {
    /// Returns `true` if this limit is the reason of `failure`. One about tools never excuses
    /// requests without them.
    pub(super) fn covers(&self, failure: &str) -> bool {
        let has_tools = !["plain ", "text mode "].iter().any(|shape| failure.starts_with(shape));
        has_tools && failure.contains(self.what)
    }
}

const fn limit(template: &'static str, what: &'static str) -> Limit {
    Limit { template, what }
}

/// The template knows no tools, or no calls: models with it call in text
/// (`UseTextBasedToolCalling`).
const NO_TOOL: &str = "lacks \"get_weather\"";
const NO_OTHER_TOOL: &str = "lacks \"plot\"";
const NO_DESCRIPTION: &str = "lacks \"Looks up the weather of a city.\"";
const NO_CALL: &str = "lacks \"get_weather\" in its place";
const NO_RESULT: &str = "lacks \"A plot of the last week.\" in its place";

/// Models with this template take one call in an answer (`ParallelToolCalls` = `false`).
const ONE_CALL: &str = "parallel calls 2: refused: This model only supports single tool-calls at once!";

pub(super) const LIMITS: [Limit; 32] = [
    // Insists on a description of each argument.
    limit(
        "CohereForAI-c4ai-command-r-plus-tool_use",
        "`param_fields.description` is undefined",
    ),
    // Takes tools under other names, from settings of its own.
    limit("HuggingFaceTB-SmolLM3-3B", NO_TOOL),
    limit("HuggingFaceTB-SmolLM3-3B", NO_OTHER_TOOL),
    limit("HuggingFaceTB-SmolLM3-3B", NO_RESULT),
    // Not rendered by minijinja: lists have no method `append` there.
    limit("Kimi-K2-Instruct", "sequence has no method named append"),
    limit("Kimi-K2-Thinking", "sequence has no method named append"),
    // Show results, but not the calls before them.
    limit("LFM2-8B-A1B", NO_CALL),
    limit("LFM2-8B-A1B", NO_RESULT),
    limit("LFM2.5-Instruct", NO_CALL),
    limit("LFM2.5-Instruct", NO_RESULT),
    limit("ibm-granite-granite-3.3-2B-Instruct", NO_CALL),
    limit("ibm-granite-granite-3.3-2B-Instruct", NO_RESULT),
    // Know calls, but no list of tools.
    limit("deepseek-ai-DeepSeek-R1-Distill-Llama-8B", NO_TOOL),
    limit("deepseek-ai-DeepSeek-R1-Distill-Llama-8B", NO_DESCRIPTION),
    limit("deepseek-ai-DeepSeek-R1-Distill-Llama-8B", NO_OTHER_TOOL),
    limit("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", NO_TOOL),
    limit("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", NO_DESCRIPTION),
    limit("deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", NO_OTHER_TOOL),
    limit("deepseek-ai-DeepSeek-V3.1", NO_TOOL),
    limit("deepseek-ai-DeepSeek-V3.1", NO_DESCRIPTION),
    limit("deepseek-ai-DeepSeek-V3.1", NO_OTHER_TOOL),
    // Know neither tools nor calls.
    limit("google-gemma-2-2b-it", NO_TOOL),
    limit("google-gemma-2-2b-it", "refused: Conversation roles must alternate"),
    limit("google-gemma-2-2b-it", NO_OTHER_TOOL),
    limit("llama-cpp-rwkv-world", NO_TOOL),
    limit("llama-cpp-rwkv-world", NO_OTHER_TOOL),
    limit("microsoft-Phi-3.5-mini-instruct", NO_TOOL),
    limit("microsoft-Phi-3.5-mini-instruct", NO_OTHER_TOOL),
    limit("meta-llama-Llama-3.1-8B-Instruct", ONE_CALL),
    limit("meta-llama-Llama-3.2-3B-Instruct", ONE_CALL),
    limit("meta-llama-Llama-3.3-70B-Instruct", ONE_CALL),
    // Shows the system message only while the user's is the last one.
    limit(
        "mistralai-Mistral-Nemo-Instruct-2407",
        "lacks \"Answer as a gardener would.\"",
    ),
];
