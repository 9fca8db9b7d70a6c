// A turn as it is shown: its text, and its tool calls as they run.

import { image } from "./api.js";
import { pretty } from "./approvals.js";
import { cost, h, say, textOf, time } from "./dom.js";
import { GrowingMarkdown } from "./markdown.js";

/** Returns a message of the user, or of the host. */
export function message(role, content, timestamp) {
  const who = { user: "You", system: "Host", tool: "Tool" }[role] ?? "Agent";
  const text = new GrowingMarkdown();
  text.finish(textOf(content));
  const body = role === "user" ? h("p", { class: "said" }, textOf(content)) : text.node;
  return h("article", { class: `message ${role}`, "aria-label": who },
    h("p", { class: "who" }, who, timestamp ? " · " : "", time(timestamp)), body, media(content));
}

/** Returns the images and files of a content. Images are shown from the host's store alone. */
function media(content) {
  const parts = Array.isArray(content) ? content.filter((part) => part.type === "image" || part.type === "file") : [];
  return parts.map((part) => {
    const name = part.name ?? part.mediaType;
    if (part.type !== "image" || !part.digest) return h("p", { class: "file" }, `Attached: ${name}`);
    const shown = h("img", { alt: `Attached image ${part.name ?? ""}`.trim() });
    image(part.digest, part.mediaType).then((url) => { shown.src = url; }, () => shown.replaceWith(`Attached: ${name}`));
    return h("p", { class: "file" }, shown);
  });
}

/** Returns the tool calls that led to an answer of the history. */
export function pastCalls(rounds) {
  const calls = (rounds ?? []).flatMap((round) => round.calls);
  return calls.map((past) => details(past.name, past.arguments, textOf(past.result)));
}

function details(tool, args, result) {
  const texts = h("div", {}, block(`Arguments of ${tool}`, pretty(args)), result === undefined ? "" : block(`Result of ${tool}`, result));
  return h("details", { class: "call" }, h("summary", {}, h("span", { class: "tool" }, tool), " ", h("span", { class: "state" })), texts);
}

function block(label, text) {
  return h("pre", { tabindex: "0", role: "group", "aria-label": label }, text);
}

/** A turn whose events are read. */
export class TurnView {
  constructor(onApproval, turn) {
    this.onApproval = onApproval;
    /** Id of the turn; unknown until its message is accepted. */
    this.turn = turn;
    this.body = h("div");
    this.status = h("p", { class: "waiting" }, "Working …");
    this.node = h("article", { class: "message assistant", "aria-label": "Agent", "aria-busy": "true" },
      h("p", { class: "who" }, "Agent"), this.body, this.status);
    this.begin();
  }

  begin() {
    this.body.replaceChildren();
    this.calls = new Map();
    this.text = undefined;
    this.thought = undefined;
  }

  /** Shows an event. Returns `true` after the last one. */
  on(event) {
    const show = {
      accepted: () => { this.turn = event.turn; },
      delta: () => this.delta(event.text),
      reasoning: () => this.reasoning(event.text),
      retract: () => this.retract(),
      tool_started: () => this.started(event),
      tool_progress: () => this.state(event.call, event.text),
      tool_finished: () => this.finished(event),
      approval_needed: () => this.asked(event.approval),
      note: () => this.body.append(h("p", { class: "note" }, event.text)),
      waiting: () => { this.status.textContent = event.text; },
      restarted: () => this.begin(),
      final: () => this.end(event.outcome),
    }[event.type];
    show?.();
    return event.type === "final";
  }

  delta(piece) {
    if (!this.text) {
      this.text = new GrowingMarkdown();
      this.body.append(this.text.node);
    }
    this.status.textContent = "Answering …";
    this.text.append(piece);
  }

  reasoning(piece) {
    if (!this.thought?.isConnected) {
      this.thought = h("pre", { tabindex: "0", role: "group", "aria-label": "Reasoning" });
      this.body.append(h("details", { class: "reasoning" }, h("summary", {}, "Reasoning"), this.thought));
    }
    this.thought.append(piece);
  }

  retract() {
    this.text?.node.remove();
    this.text = undefined;
  }

  /** Ends the text before a call: the next piece begins another. */
  close() {
    this.text?.finish(this.text.text);
    this.text = undefined;
    this.thought = undefined;
  }

  started({ call, tool, arguments: args }) {
    this.close();
    const shown = details(tool, args);
    this.calls.set(call, shown);
    this.body.append(shown);
    this.state(call, "runs …");
    this.status.textContent = `Calling ${tool} …`;
    say(`The agent calls ${tool}.`);
  }

  state(call, text) {
    const shown = this.calls.get(call);
    if (shown) shown.querySelector(".state").textContent = text;
  }

  finished({ call, tool, isError, content }) {
    const shown = this.calls.get(call);
    if (!shown) return;
    shown.classList.add(isError ? "failed" : "done");
    this.state(call, isError ? "failed" : "done");
    shown.lastElementChild.append(block(`Result of ${tool}`, content));
    this.status.textContent = "Working …";
  }

  asked(approval) {
    this.status.textContent = `Waiting for your decision about ${approval.tool}.`;
    this.onApproval(approval);
  }

  end(outcome) {
    this.node.setAttribute("aria-busy", "false");
    this.status.remove();
    const ended = typeof outcome.status === "string" ? outcome.status : Object.keys(outcome.status)[0];
    if (ended !== "answered") this.body.append(h("p", { class: "note" }, ENDS[ended] ?? `Ended: ${ended}`));
    if (!this.text) this.delta("");
    this.text.finish(outcome.text);
    this.body.append(...media(outcome.media), ...ofOthers(outcome.outsideStatements ?? []));
    const spent = Object.values(outcome.tiers ?? {});
    if (spent.length > 0) this.node.append(h("p", { class: "cost" }, cost(sum(spent))));
    say(`The agent: ${outcome.text.slice(0, 500)}`);
  }
}

/** The statements of an answer that rest on text of others alone, with their sources. */
function ofOthers(statements) {
  if (statements.length === 0) return [];
  const items = statements.map(({ statement, source }) => h("li", {}, `${statement} `, h("cite", {}, source)));
  return [h("details", { class: "others" }, h("summary", {}, `Only others say this (${statements.length})`), h("ul", {}, items))];
}

const ENDS = {
  partial: "The turn reached a limit: this is its work so far.",
  joined: "This message joined the turn that was running.",
  refused: "The message was refused.",
  superseded: "A newer message took the place of this one.",
  cancelled: "Cancelled.",
  failed: "The turn failed.",
};

function sum(all) {
  const total = { usage: { input: 0, output: 0 }, cost: 0, unpriced: 0 };
  for (const { usage = {}, cost: price = 0, unpriced = 0 } of all) {
    total.usage.input += usage.input ?? 0;
    total.usage.output += usage.output ?? 0;
    total.cost += price;
    total.unpriced += unpriced;
  }
  return total;
}
