// Calls that wait for the user's decision, wherever their turns were begun.

import { call, get } from "./api.js";
import { button, focusIn, h, report, say } from "./dom.js";

/** The region that shows the calls that wait. */
export class Approvals {
  constructor() {
    this.list = h("div", { class: "cards" });
    this.node = h("section", { class: "approvals", "aria-labelledby": "approvals-title", hidden: true },
      h("h2", { id: "approvals-title" }, "Waiting for your decision"), this.list);
    this.cards = new Map();
  }

  /** Reads which calls wait now. */
  async refresh() {
    const { approvals } = await get("approvals");
    const waiting = new Set(approvals.map(keyOf));
    for (const [key, card] of this.cards) {
      if (!waiting.has(key)) this.drop(key, card);
    }
    approvals.forEach((approval) => this.add(approval));
  }

  add(approval) {
    const key = keyOf(approval);
    if (this.cards.has(key)) return;
    const card = this.card(approval);
    this.cards.set(key, card);
    this.list.append(card);
    this.node.hidden = false;
    say(`The agent asks whether it may call ${approval.tool}.`);
  }

  drop(key, card) {
    this.cards.delete(key);
    card.remove();
    this.node.hidden = this.cards.size === 0;
  }

  card(approval) {
    const title = `May the agent call ${approval.tool}?`;
    const chain = approval.askedBy ?? [];
    const who = chain.length > 0 ? `You asked; asked on your behalf: ${chain.join(" → ")} → ${approval.tool}` : undefined;
    const reason = h("input", { type: "text", autocomplete: "off" });
    const place = h("div");
    const decide = (approved) => async () => {
      try {
        await this.decide(approval, approved, reason.value.trim());
        await this.refresh();
        focusIn(this.list);
      } catch (error) {
        report(place, error);
      }
    };
    return h("article", { class: "card approval", "aria-label": title },
      h("h3", {}, title), who && h("p", { class: "chain" }, who),
      h("pre", { tabindex: "0", role: "group", "aria-label": `Arguments of ${approval.tool}` }, pretty(approval.arguments)),
      h("label", { class: "row" }, "Reason for a denial (the agent reads it)", reason),
      h("div", { class: "row" }, button("Approve", decide(true), { class: "primary" }), button("Deny", decide(false))), place);
  }

  async decide({ turn, call: id, argsHash }, approved, reason) {
    const decision = { turn, call: id, argsHash, approved };
    if (!approved && reason) decision.reason = reason;
    await call("POST", "approvals", decision);
    say(approved ? "Approved." : "Denied.");
  }
}

function keyOf(approval) {
  return JSON.stringify([approval.turn, approval.call]);
}

/** Formats JSON for reading, and leaves other texts as they are. */
export function pretty(json) {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}
