//! The section `A2AReceiver` of a configuration: the card of this agent, its callers, and its
//! limits.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rockbot_core::config::{Config, Section};
use rockbot_core::service::AgentSkill;
use rockbot_core::tool::ToolSelector;
use rockbot_core::{BoxError, Principal};

use crate::a2a_callers::settings::{selectors, trust};
use crate::a2a_callers::{CallerTrust, is_agent_name};

/// Default maximum time of a task, in minutes.
const MAX_MINUTES: u32 = 30;

/// Default maximum number of tasks at once, of all callers and of each caller.
const MAX_TASKS: usize = 64;
const MAX_OF_CALLER: usize = 8;

/// The name that stands for every caller.
const EVERY: &str = "*";

/// The callers that may hand tasks to this agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AllowedCallers {
    every: bool,
    /// The skills of a caller, in lower case as its name. An empty set means all skills.
    by_name: BTreeMap<String, BTreeSet<String>>,
}

/// The options of a receiver, from code and settings.
#[derive(Debug, Clone, Default)]
pub(super) struct ReceiverOptions {
    pub(super) description: Option<String>,
    pub(super) version: Option<String>,
    pub(super) skills: Vec<AgentSkill>,
    pub(super) callers: AllowedCallers,
    pub(super) max_time: Option<Duration>,
    pub(super) max_tasks: Option<usize>,
    pub(super) max_of_caller: Option<usize>,
    pub(super) may_call_agents: Option<bool>,
    pub(super) operator: Option<Principal>,
    pub(super) tools: Vec<ToolSelector>,
    /// The trust in callers, by their names in lower case; `*` stands for all others.
    pub(super) trust: BTreeMap<String, CallerTrust>,
}

/// The limits of a receiver.
#[derive(Debug, Clone)]
pub(super) struct ReceiverLimits {
    pub(super) max_time: Duration,
    pub(super) max_tasks: usize,
    pub(super) max_of_caller: usize,
    pub(super) may_call_agents: bool,
    pub(super) operator: Principal,
    /// The tools of all tasks.
    pub(super) tools: Vec<ToolSelector>,
    trust: BTreeMap<String, CallerTrust>,
}

impl ReceiverLimits {
    /// Returns the trust in a caller.
    pub(super) fn trust(&self, caller: &str) -> CallerTrust {
        let named = self.trust.get(&caller.to_ascii_lowercase());
        named.or_else(|| self.trust.get(EVERY)).copied().unwrap_or_default()
    }
}

impl AllowedCallers {
    /// Adds a caller: `name` with all skills, `name:skill` with one skill, `*` for every caller.
    ///
    /// # Errors
    ///
    /// Returns an error if `caller` has none of these forms.
    pub(super) fn allow(&mut self, caller: &str) -> Result<(), String> {
        let (name, skill) = caller
            .split_once(':')
            .map_or((caller, None), |(name, skill)| (name, Some(skill)));
        let is_wrong = skill.is_some_and(|skill| skill.trim().is_empty());
        match (name, skill) {
            (EVERY, None) => self.every = true,
            _ if !is_agent_name(name) || is_wrong => {
                return Err(format!("`{caller}` is no caller: write `name`, `name:skill` or `*`"));
            }
            (name, skill) => {
                let name = name.to_ascii_lowercase();
                let is_new = !self.by_name.contains_key(&name);
                let skills = self.by_name.entry(name).or_default();
                match skill {
                    // A caller that was added with all skills keeps all skills.
                    Some(skill) if is_new || !skills.is_empty() => {
                        skills.insert(skill.trim().to_ascii_lowercase());
                    }
                    Some(_) => {}
                    None => skills.clear(),
                }
            }
        }
        Ok(())
    }

    /// Returns `true` if no caller is allowed.
    pub(super) fn is_empty(&self) -> bool {
        !self.every && self.by_name.is_empty()
    }

    /// Returns `true` if a caller may hand over tasks at all.
    pub(super) fn allows(&self, caller: &str) -> bool {
        self.every || self.by_name.contains_key(&caller.to_ascii_lowercase())
    }

    /// Returns `true` if a caller may use a skill. The skills of a caller that is named take
    /// precedence over the permission for all callers.
    pub(super) fn allows_skill(&self, caller: &str, skill: &str) -> bool {
        match self.by_name.get(&caller.to_ascii_lowercase()) {
            Some(skills) => skills.is_empty() || skills.contains(&skill.to_ascii_lowercase()),
            None => self.every,
        }
    }
}

impl ReceiverOptions {
    /// Completes the options by the settings, and returns the limits.
    ///
    /// # Errors
    ///
    /// Returns an error for the first wrong setting, and if no caller is allowed.
    pub(super) fn complete(&mut self, config: &Config) -> Result<ReceiverLimits, BoxError> {
        let section = config.section("A2AReceiver")?;
        for caller in section.get_or::<Vec<String>>("AllowedCallers", Vec::new())? {
            self.callers.allow(&caller)?;
        }
        self.description = self.description.take().or(section.get("Description")?);
        self.version = self.version.take().or(section.get("Version")?);
        self.skills.extend(skills(&section)?);
        if self.tools.is_empty() {
            self.tools = selectors(&section, "Tools")?.unwrap_or_default();
        }
        let levels = section.section("Trust")?;
        for name in levels.names() {
            let caller = name.to_ascii_lowercase();
            if let (Some(level), false) = (trust(&levels, &name)?, self.trust.contains_key(&caller)) {
                self.trust.insert(caller, level);
            }
        }
        let minutes = section.get_or("MaxTaskMinutes", MAX_MINUTES)?;
        let configured = Duration::from_secs(60 * u64::from(minutes));
        let limits = ReceiverLimits {
            max_time: self.max_time.unwrap_or(configured),
            max_tasks: self.max_tasks.unwrap_or(section.get_or("MaxTasks", MAX_TASKS)?),
            max_of_caller: self
                .max_of_caller
                .unwrap_or(section.get_or("MaxTasksOfCaller", MAX_OF_CALLER)?),
            may_call_agents: self.may_call_agents.unwrap_or(section.get_or("MayCallAgents", false)?),
            operator: match section.get::<String>("Operator")? {
                Some(named) => self.operator.clone().unwrap_or_else(|| named.into()),
                None => self.operator.clone().unwrap_or_default(),
            },
            tools: self.tools.clone(),
            trust: self.trust.clone(),
        };
        if limits.max_time.is_zero() || limits.max_tasks == 0 || limits.max_of_caller == 0 {
            return Err("`A2AReceiver.MaxTaskMinutes`, `MaxTasks` and `MaxTasksOfCaller` are at least 1".into());
        }
        if self.callers.is_empty() {
            Err(
                "no agent may call this one: name callers with `.allow(…)` or `A2AReceiver.AllowedCallers`, \
                         or all with `*`"
                    .into(),
            )
        } else {
            Ok(limits)
        }
    }
}

/// Reads the skills: a list of sections with `Id`, `Name` and `Description`.
fn skills(section: &Section<'_>) -> Result<Vec<AgentSkill>, BoxError> {
    let skill = |one: &Section<'_>| -> Result<AgentSkill, BoxError> {
        let id: Option<String> = one.get("Id")?;
        let mut skill = AgentSkill::new(id.ok_or_else(|| one.missing("Id", "the id of a skill"))?);
        skill.name = one.get("Name")?.unwrap_or(skill.name);
        skill.description = one.get("Description")?;
        Ok(skill)
    };
    section.items("Skills")?.iter().map(skill).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_have_the_skills_that_are_named_for_them() {
        let mut callers = AllowedCallers::default();
        assert!(callers.is_empty());
        for caller in ["Planner", "sales:quote", "sales:Order", "boss:x", "boss"] {
            callers.allow(caller).unwrap();
        }
        let allowed = |caller: &str, skill: &str| callers.allows_skill(caller, skill);
        assert!(allowed("planner", "anything") && allowed("SALES", "order") && allowed("boss", "y"));
        assert!(!allowed("sales", "research") && !allowed("other", "quote") && !callers.allows("other"));
        callers.allow("*").unwrap();
        assert!(callers.allows_skill("other", "quote") && !callers.allows_skill("sales", "research"));
        for wrong in ["", "a b", "a:", "*:x"] {
            assert!(callers.allow(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn settings_complete_what_code_leaves_open() {
        let text = "[A2AReceiver]\nAllowedCallers = [\"a\"]\nDescription = \"D\"\nOperator = \"ann\"\nMaxTasks = 3\n\
            [[A2AReceiver.Skills]]\nId = \"s\"\nName = \"S\"\n";
        let config = Config::new().with_text("a.toml", text).unwrap();
        let mut options = ReceiverOptions {
            description: Some("Own".to_owned()),
            ..ReceiverOptions::default()
        };
        let limits = options.complete(&config).unwrap();
        assert_eq!(
            (options.description.as_deref(), options.skills[0].name.as_str()),
            (Some("Own"), "S")
        );
        assert_eq!((limits.max_tasks, limits.operator.as_str()), (3, "ann"));
        let closed = ReceiverOptions::default()
            .complete(&Config::new())
            .unwrap_err()
            .to_string();
        assert!(closed.starts_with("no agent may call this one"), "{closed}");
    }
}
