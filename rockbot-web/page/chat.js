// A conversation: its history, the turns that run in it, and the user's next message.

import { call, follow, get, stream, streamed } from "./api.js";
import { button, cost, focusIn, h, report } from "./dom.js";
import { TurnView, message, pastCalls } from "./turn.js";

/** Longest image that is attached, in bytes: a body has 8 MiB by default, and Base64 takes a third more. */
const MAX_IMAGE = 5 << 20;

let newest;

/** Returns the id of a new session: its time, so that the list of sessions is in their order. */
export function newSession() {
  const now = new Date();
  const local = new Date(now - now.getTimezoneOffset() * 60_000).toISOString();
  const time = `${local.slice(0, 10)} ${local.slice(11, 19).replaceAll(":", ".")}`;
  // Two in one second are two.
  newest = newest?.startsWith(time) ? `${newest}+` : time;
  return newest;
}

/** The view of one session. */
export class Chat {
  constructor(session, { approvals, me, onEnd }) {
    Object.assign(this, { session, approvals, me, onEnd });
    // The sessions of an agent beside the host's own begin with its name.
    this.beside = me.agents.find((name) => session.startsWith(`${name}/`));
    this.name = this.beside ? session.slice(this.beside.length + 1) : session;
    this.leaving = new AbortController();
    this.live = new Set();
    this.log = h("div", { class: "log", role: "log", "aria-live": "off", "aria-label": "Conversation", tabindex: "0" });
    this.earlier = h("div", { class: "earlier" });
    this.errors = h("div");
    this.costs = h("p", { class: "cost" });
    this.node = h("section", { class: "chat", "aria-labelledby": "session-title" },
      h("header", {}, h("h2", { id: "session-title" }, session), this.costs), this.log, this.errors, this.composer());
    this.log.append(this.earlier);
    // Who reads the end goes on reading the end, also when a question about a call takes some room.
    this.isPinned = true;
    this.log.addEventListener("scroll", () => { this.isPinned = this.isAtBottom(); });
    this.resized = new ResizeObserver(() => this.isPinned && this.bottom());
    this.resized.observe(this.log);
  }

  composer() {
    this.input = h("textarea", { id: "message", rows: "2", placeholder: "Ask the agent", onkeydown: (event) => this.key(event) });
    this.file = h("input", { id: "image", type: "file", accept: "image/png,image/jpeg,image/gif,image/webp" });
    this.stop = button("Stop", () => this.cancel(), { hidden: true });
    const option = (name, label) => h("option", { value: name, selected: name === (this.beside ?? "") }, label);
    const choose = (event) => {
      const beside = event.target.value ? `${event.target.value}/` : "";
      location.hash = `#/chat/${encodeURIComponent(`${beside}${this.name}`)}`;
    };
    const agents = this.me.agents.length > 0 && h("select", { id: "agent", onchange: choose },
      option("", this.me.agent), this.me.agents.map((name) => option(name, name)));
    return h("form", { class: "composer", onsubmit: (event) => this.submit(event) },
      h("label", { for: "message", class: "unseen" }, "Message"), this.input,
      h("div", { class: "row" },
        h("label", { for: "image" }, "Image"), this.file,
        agents && [h("label", { for: "agent" }, "Agent"), agents],
        this.stop, h("button", { type: "submit", class: "primary" }, "Send")));
  }

  key(event) {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      event.target.form.requestSubmit();
    }
  }

  /** Reads the conversation, and goes on reading the turns that run. */
  async open() {
    try {
      // First the turns: one that ends in between is in the history then.
      const { runs } = await get("runs");
      const page = await this.page();
      const known = new Set(page.entries.map((entry) => entry.turn));
      for (const run of runs.filter((run) => run.session === this.session && !known.has(run.turn))) {
        this.log.append(message("user", run.message));
        this.attach(new TurnView((approval) => this.approvals.add(approval), run.turn));
      }
      this.bottom();
      this.tellCost();
    } catch (error) {
      report(this.errors, error);
    }
  }

  async page(before) {
    const page = await get(`sessions/${encodeURIComponent(this.session)}/history`, { before, limit: 50 });
    const shown = page.entries.flatMap((entry) => [...pastCalls(entry.rounds), message(entry.role, entry.content, entry.timestamp)]);
    this.earlier.after(...shown);
    const more = button("Earlier messages", () => this.page(page.earlier).catch((error) => report(this.errors, error)));
    this.earlier.replaceChildren(...(page.earlier ? [more] : []));
    return page;
  }

  async submit(event) {
    event.preventDefault();
    const text = this.input.value.trim();
    const file = this.file.files[0];
    if (!text && !file) return;
    try {
      const content = file ? await withImage(text, file) : text;
      await this.post({ content, agent: this.beside });
      this.input.form.reset();
      report(this.errors);
    } catch (error) {
      report(this.errors, error);
    }
    this.input.focus();
  }

  /** Sends a message, and shows its turn. */
  async post(body) {
    // The same message, sent again after a lost answer, is the same turn.
    const sent = JSON.stringify(body);
    if (this.sending?.body !== sent) this.sending = { body: sent, key: randomKey() };
    const { key } = this.sending;
    const path = `sessions/${encodeURIComponent(this.name)}/messages`;
    const post = () => streamed(path, body, { "idempotency-key": key }, this.leaving.signal);
    let first;
    try {
      first = await post();
      this.sending = undefined;
    } catch (error) {
      if (error.status !== 0) this.sending = undefined;
      throw error;
    }
    this.log.append(message("user", body.content));
    const view = new TurnView((approval) => this.approvals.add(approval));
    const open = () => {
      const opened = first ?? post();
      first = undefined;
      return opened;
    };
    this.attach(view, open);
    this.isPinned = true;
    this.bottom();
  }

  /** Shows a turn as it goes on, until it ends or the user leaves. `begin` opens the stream of a new one. */
  attach(view, begin) {
    const { signal } = this.leaving;
    this.live.add(view);
    this.stop.hidden = false;
    this.log.append(view.node);
    const open = (last) => (view.turn ? stream(`turns/${encodeURIComponent(view.turn)}/events`, last, signal) : begin());
    const read = follow(open, signal, (event) => {
      const isLast = view.on(event);
      if (event.type === "tool_finished" || isLast) this.approvals.refresh().catch(() => {});
      if (this.isPinned) this.bottom();
      return isLast;
    });
    read.catch((error) => report(this.errors, error)).finally(() => this.ended(view));
  }

  ended(view) {
    this.live.delete(view);
    this.stop.hidden = this.live.size === 0;
    if (this.leaving.signal.aborted) return;
    this.tellCost();
    this.onEnd();
  }

  async cancel() {
    for (const { turn } of this.live) {
      await call("POST", `turns/${encodeURIComponent(turn)}/cancel`).catch((error) => {
        if (error.code !== "turn_ended") report(this.errors, error);
      });
    }
  }

  async tellCost() {
    if (!this.me.parts.includes("costs")) return;
    const { session, total } = await get("costs", { session: this.session });
    this.costs.textContent = `This session: ${cost(session)}. All your sessions since the agent started: ${cost(total)}.`;
  }

  isAtBottom() {
    return this.log.scrollHeight - this.log.scrollTop - this.log.clientHeight < 80;
  }

  bottom() {
    requestAnimationFrame(() => { this.log.scrollTop = this.log.scrollHeight; });
  }

  leave() {
    this.leaving.abort();
    this.resized.disconnect();
  }
}

/** Returns a key that no other message has. `randomUUID` is for pages with HTTPS alone. */
function randomKey() {
  return Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(16).padStart(8, "0")).join("");
}

async function withImage(text, file) {
  if (file.size > MAX_IMAGE) throw new Error("The image is larger than 5 MB: attach a smaller one.");
  const bytes = new Uint8Array(await file.arrayBuffer());
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  const part = { type: "image", mediaType: file.type, data: btoa(binary), name: file.name };
  return text ? [{ type: "text", text }, part] : [part];
}

/** The list of the user's sessions, with the last words of the newest ones. */
export class Sessions {
  constructor(onForgotten) {
    this.onForgotten = onForgotten;
    this.list = h("ul", { class: "sessions" });
    this.errors = h("div");
    this.node = h("nav", { "aria-label": "Sessions" }, h("h2", {}, "Sessions"),
      h("a", { href: "#/new", class: "button" }, "New session"), this.list, this.errors);
  }

  async refresh(current) {
    const { sessions } = await get("sessions");
    if (current && !sessions.includes(current)) sessions.push(current);
    // First the sessions of this page, which begin with their time, the newest first.
    const isDated = (session) => /^\d{4}-\d\d-\d\d /.test(session);
    const sorted = [...sessions.filter(isDated).sort().reverse(), ...sessions.filter((session) => !isDated(session)).sort()];
    this.list.replaceChildren(...sorted.map((session) => this.entry(session, session === current)));
  }

  entry(session, isCurrent) {
    const link = h("a", { href: `#/chat/${encodeURIComponent(session)}`, "aria-current": isCurrent ? "page" : undefined }, session);
    const forget = button("Delete", async () => {
      if (!confirm(`Delete the conversation “${session}”? This cannot be undone.`)) return;
      await call("DELETE", `sessions/${encodeURIComponent(session)}`).catch((error) => report(this.errors, error));
      this.onForgotten(session);
      focusIn();
    }, { "aria-label": `Delete the session ${session}`, class: "small" });
    return h("li", {}, link, forget);
  }
}

/** The search in the history of all sessions. */
export function search() {
  const results = h("div", { class: "cards", "aria-live": "polite" });
  const words = h("input", { id: "words", type: "search", required: true });
  const find = async (event) => {
    event.preventDefault();
    try {
      const { found } = await get("search", { query: words.value });
      results.replaceChildren(...(found.length > 0 ? found.map(result) : [h("p", {}, "Nothing was found.")]));
    } catch (error) {
      report(results, error);
    }
  };
  return h("section", {}, h("h2", {}, "Search in all conversations"),
    h("form", { class: "row", role: "search", onsubmit: find }, h("label", { for: "words" }, "Words"), words,
      h("button", { type: "submit", class: "primary" }, "Search")), results);
}

function result({ session, role, timestamp, excerpt }) {
  const link = h("a", { href: `#/chat/${encodeURIComponent(session)}` }, session);
  const found = message(role, excerpt, timestamp);
  return h("div", { class: "card" }, h("h3", {}, link), found);
}
