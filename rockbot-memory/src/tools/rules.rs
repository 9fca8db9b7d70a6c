//! The tools of rules, and of the user's time zone.

use std::sync::Arc;

use rockbot_core::CallContext;
use rockbot_core::content::Provenance;
use rockbot_core::store::{Rule, RulesStore, StoreError};
use rockbot_core::tool::{Tool, ToolError, ToolState, stateful_tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::taint::{check_change, origin};
use super::{ToolDeps, failed, groups, invalid, time_zone};

/// The words before the colon of a message that is nothing but a new rule.
const NEW_RULE: [&str; 16] = [
    "rule",
    "new rule",
    "add rule",
    "add a rule",
    "add this rule",
    "regel",
    "neue regel",
    "règle",
    "nouvelle règle",
    "regla",
    "nueva regla",
    "правило",
    "новое правило",
    "规则",
    "新规则",
    "قاعدة جديدة",
];

/// The words before the colon of a message that is nothing but the user's time zone.
const TIME_ZONE: [&str; 9] = [
    "time zone",
    "timezone",
    "my time zone",
    "zeitzone",
    "meine zeitzone",
    "fuseau horaire",
    "zona horaria",
    "часовой пояс",
    "时区",
];

/// State of the tools.
#[derive(Debug, Clone)]
pub(crate) struct RuleTools {
    pub(crate) rules: Arc<dyn RulesStore>,
    pub(crate) deps: ToolDeps,
}

pub(crate) fn tools(rules: &RuleTools) -> [Tool; 2] {
    [
        stateful_tool("change_rules", rules.clone(), change)
            .idempotent()
            .endorsed_when(|call, _| async move { changes(&call.arguments) })
            .endorsed_by("add", &NEW_RULE),
        stateful_tool("set_timezone", rules.clone(), set_time_zone)
            .idempotent()
            .needs_endorsement()
            .endorsed_by("timezone_id", &TIME_ZONE)
            .on_demand(&groups::memory()),
    ]
    .map(|tool| tool.source("memory").internal().own_output())
}

/// Changes the rules that you follow in every conversation, only when the user asks for it
/// ("always", "never again"). Give `add`, `remove`, or both to replace a rule; neither lists
/// them.
#[derive(Debug, Deserialize, JsonSchema)]
struct ChangeRules {
    /// New rule, in one line.
    #[serde(default, alias = "rule")]
    add: String,
    /// Rule to remove, exactly as it stands.
    #[serde(default)]
    remove: String,
}

/// Reports whether a call changes the rules: without a rule it lists them.
fn changes(arguments: &str) -> bool {
    let parsed = serde_json::from_str::<ChangeRules>(arguments);
    parsed.is_ok_and(|args| Rule::new(&args.add).is_some() || Rule::new(&args.remove).is_some())
}

async fn change(this: ToolState<RuleTools>, args: ChangeRules, cx: CallContext) -> Result<String, ToolError> {
    let add = Rule::new(&args.add);
    let remove = Rule::new(&args.remove);
    if add.is_none() && remove.is_none() {
        return this.shown(&cx).await;
    }
    may_change(&cx)?;
    let Some(before) = remove else {
        let added = this.add(add, &cx).await?;
        return if added {
            this.shown(&cx).await
        } else {
            Ok("That rule is there already.".to_owned())
        };
    };
    let rules = this.rules.list(cx.principal()).await.map_err(failed)?;
    // Checked first: a rule that takes the place of none would be one more.
    if !rules.iter().any(|rule| rule.is_same_as(&before)) {
        return Err(ToolError::invalid_arguments(
            "there is no such rule: give one exactly as it stands; without arguments they are listed",
        ));
    }
    this.replace(&before, add, &cx).await.map_err(failed)?;
    this.shown(&cx).await
}

/// Sets the user's time zone, when they tell you where they are. From their next message on,
/// times are given in that zone.
#[derive(Debug, Deserialize, JsonSchema)]
struct SetTimezone {
    /// The IANA name of the zone, such as Europe/Paris.
    timezone_id: String,
}

async fn set_time_zone(this: ToolState<RuleTools>, args: SetTimezone, cx: CallContext) -> Result<String, ToolError> {
    may_change(&cx)?;
    let zone = time_zone::find(&args.timezone_id).map_err(|error| invalid(&error).with_source(error))?;
    let kept = this.rules.set_time_zone(cx.principal(), zone.name()).await;
    kept.map_err(failed)?;
    Ok(format!("Kept. {}", zone.local_time(this.deps.clock.now())))
}

impl RuleTools {
    async fn add(&self, rule: Option<Rule>, cx: &CallContext) -> Result<bool, ToolError> {
        match rule {
            Some(rule) => self.rules.add(cx.principal(), rule).await.map_err(failed),
            None => Ok(false),
        }
    }

    /// Replaces a rule.
    ///
    /// Ordering: the new rule is added first, unless the store treats both as equal. A crash in
    /// between leaves one rule too many, and never loses a rule.
    async fn replace(&self, before: &Rule, after: Option<Rule>, cx: &CallContext) -> Result<(), StoreError> {
        let (first, last) = match after {
            Some(after) if after.is_same_as(before) => (None, Some(after)),
            after => (after, None),
        };
        if let Some(first) = first {
            self.rules.add(cx.principal(), first).await?;
        }
        self.rules.remove(cx.principal(), before).await?;
        if let Some(last) = last {
            self.rules.add(cx.principal(), last).await?;
        }
        Ok(())
    }

    async fn shown(&self, cx: &CallContext) -> Result<String, ToolError> {
        let rules = self.rules.list(cx.principal()).await.map_err(failed)?;
        if rules.is_empty() {
            Ok("There are no rules.".to_owned())
        } else {
            Ok(rules
                .iter()
                .map(|rule| format!("- {rule}"))
                .collect::<Vec<_>>()
                .join("\n"))
        }
    }
}

/// Refuses the change of a model that has read untrusted text, unless a person endorsed it.
///
/// A rule is an instruction in every later turn, so untrusted text must not become one; nor may
/// it move the user to another time zone.
fn may_change(cx: &CallContext) -> Result<(), ToolError> {
    check_change(&Provenance::USER, &origin(cx))
}
