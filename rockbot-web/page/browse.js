// Views of what the agent knows and does: memory, skills, rules, notes, schedules, runs, dreams.

import { call, get } from "./api.js";
import { button, focusIn, h, report, say, time } from "./dom.js";
import { markdown } from "./markdown.js";

/** The views by route: the title, the part that a host must have, and how their entries are read. */
export const VIEWS = {
  memories: { title: "Memory", part: "memories", hasQuery: true, hasArchive: true, read: memories },
  skills: { title: "Skills", part: "skills", hasQuery: true, hasArchive: true, read: skills },
  rules: { title: "Rules", part: "rules", read: rules },
  "working-memory": { title: "Working memory", part: "working-memory", hasQuery: true, read: notes },
  schedules: { title: "Schedules", part: "schedules", read: schedules },
  runs: { title: "Runs", read: runs },
  wisps: { title: "Wisps", part: "wisps", read: wisps },
  dreams: { title: "Dreams", part: "dreams", read: dreams },
};

/** Returns a view, which reads its entries at once. */
export function browse(name, me) {
  const view = VIEWS[name];
  const entries = h("div", { class: "cards", "aria-live": "polite" });
  const words = h("input", { id: "query", type: "search" });
  const archived = h("input", { id: "archived", type: "checkbox" });
  const read = async (event) => {
    event?.preventDefault();
    entries.setAttribute("aria-busy", "true");
    try {
      const cards = await view.read({ query: words.value, archived: archived.checked && view.hasArchive }, me, read);
      entries.replaceChildren(...(cards.length > 0 ? cards : [h("p", {}, "There is nothing here.")]));
    } catch (error) {
      report(entries, error);
    }
    entries.removeAttribute("aria-busy");
  };
  const form = h("form", { class: "row", role: "search", onsubmit: read },
    view.hasQuery && [h("label", { for: "query" }, "Words"), words],
    view.hasArchive && h("label", {}, archived, " with archived ones"),
    h("button", { type: "submit" }, view.hasQuery ? "Search" : "Read again"));
  read();
  return h("section", {}, h("h2", {}, view.title), form, entries);
}

function card(title, body, facts) {
  const list = Object.entries(facts).filter(([, value]) => value !== undefined && value !== "" && value !== false);
  const terms = list.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
  return h("article", { class: "card" }, h("h3", {}, title), body, terms.length > 0 && h("dl", {}, terms));
}

/** Tells where a text comes from, if others than the user and the agent's operator wrote it. */
function source({ source: by = "", trust } = {}) {
  return trust === "untrusted" ? `${by || "unknown"} (not trusted)` : by;
}

function text(content) {
  return h("div", { class: "markdown" }, markdown(content));
}

async function memories(wanted) {
  const { memories: all } = await get("memories", wanted);
  return all.map((entry) => card(entry.category ?? "Memory", text(entry.content), {
    Tags: entry.tags.join(", "),
    Learned: time(entry.createdAt),
    Again: entry.reinforcementCount > 1 ? `${entry.reinforcementCount} times` : "",
    Source: source(entry.provenance),
    Archived: entry.archivedAt && [time(entry.archivedAt), ` ${entry.archiveReason ?? ""}`],
    "Superseded by": entry.supersededBy,
    Id: entry.id,
  }));
}

/** Returns a button that shows the whole of something below it. */
function more(label, read) {
  const place = h("div", { tabindex: "-1" });
  const shown = button(label, async () => {
    try {
      place.replaceChildren(...await read());
      place.focus();
      shown.hidden = true;
    } catch (error) {
      report(place, error);
    }
  });
  return h("div", {}, shown, place);
}

async function skills(wanted) {
  const { skills: all } = await get("skills", wanted);
  return all.map((skill) => {
    const path = `skills/${skill.name.split("/").map(encodeURIComponent).join("/")}`;
    const whole = more(`Read ${skill.name}`, async () => {
      const { content, versions = [] } = await get(path);
      const earlier = versions.map((version) => h("details", {}, h("summary", {}, "Earlier text ", time(version.updatedAt)), text(version.content)));
      return [text(content), ...earlier];
    });
    return card(skill.name, [h("p", {}, skill.summary), whole], {
      Changed: time(skill.updatedAt), Source: source(skill.provenance), State: skill.isArchived && "archived",
    });
  });
}

async function rules() {
  const { rules: all, timeZone } = await get("rules");
  const list = all.length > 0 ? [h("ul", { class: "rules" }, all.map((rule) => h("li", {}, rule)))] : [];
  return timeZone ? [h("p", {}, `Your time zone: ${timeZone}`), ...list] : list;
}

async function notes(wanted) {
  const { entries } = await get("working-memory", wanted);
  return entries.map((entry) => {
    const path = `working-memory/${entry.key.split("/").map(encodeURIComponent).join("/")}`;
    const plain = (value) => h("pre", { tabindex: "0", role: "group", "aria-label": `Text of ${entry.key}` }, value);
    const isCut = entry.length > new TextEncoder().encode(entry.value).length;
    const shown = plain(isCut ? `${entry.value}…` : entry.value);
    const whole = isCut && more(`Read all of ${entry.key}`, async () => {
      const { value } = await get(path);
      shown.remove();
      return [plain(value)];
    });
    return card(entry.key, [shown, whole], {
      Stored: time(entry.storedAt), Expires: time(entry.expiresAt), Tags: (entry.tags ?? []).join(", "), Source: source(entry.provenance),
    });
  });
}

async function schedules() {
  const { tasks } = await get("schedules");
  return tasks.map((task) => card(task.name, text(task.prompt), {
    When: h("code", {}, task.when + (task.runOnce ? " (once)" : "")),
    Next: task.isPaused ? "paused after failures" : time(task.next) || "never",
    Last: task.last && [time(task.last.due), ` ${task.last.state}`],
  }));
}

async function runs(_, __, again) {
  const { runs: all } = await get("runs");
  return all.map((run) => {
    const place = h("div");
    const cancel = button("Cancel", async () => {
      try {
        await call("POST", `turns/${encodeURIComponent(run.turn)}/cancel`);
        say("Cancelled.");
        await again();
        focusIn();
      } catch (error) {
        report(place, error);
      }
    }, { "aria-label": `Cancel the turn in ${run.session}` });
    const link = h("a", { href: `#/chat/${encodeURIComponent(run.session)}` }, run.session);
    return card(link, [h("p", {}, run.message), h("div", { class: "row" }, cancel), place], {
      "Started by": run.origin, State: run.isParked ? "waits for your decision" : "works", "Asked by turn": run.parent,
    });
  });
}

async function wisps() {
  const { table } = await get("wisps");
  return table ? [text(table)] : [];
}

async function dreams(_, me) {
  const { plans } = await get("dreams");
  const told = me.isOperator ? [] : [h("p", { class: "note" }, "Operators of this agent apply and undo plans; you may read yours.")];
  return [...told, ...plans.map((plan) => dream(plan, me))];
}

function dream(plan, me) {
  const place = h("div");
  const decide = (step, label) => button(label, async () => {
    try {
      const after = await call("POST", `dreams/${encodeURIComponent(plan.id)}/${step}`, {});
      say(`The plan is ${after.state}.`);
      const next = dream(after, me);
      shown.replaceWith(next);
      focusIn(next);
    } catch (error) {
      report(place, error);
    }
  }, { "aria-label": `${label} the plan: ${plan.summary}` });
  const changes = h("ul", { class: "changes" }, plan.changes.map((change) => h("li", {}, change)));
  const remarks = plan.notes.map((note) => h("p", { class: "note" }, note));
  const deciding = me.isOperator && h("div", { class: "row" },
    plan.canBeApplied && decide("apply", "Apply"), plan.canBeUndone && decide("undo", "Undo"));
  const shown = card(plan.summary, [changes, ...remarks, deciding, place], {
    State: plan.state, Made: time(plan.createdAt), Pass: plan.pass,
  });
  return shown;
}
