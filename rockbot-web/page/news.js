// What the agent said unasked: it stays until the user dismisses it.

import { call, follow, get, stream } from "./api.js";
import { button, focusIn, h, report, say } from "./dom.js";
import { message } from "./turn.js";

/** The announcements of the user, in all its windows alike. */
export class News {
  constructor(approvals) {
    this.approvals = approvals;
    this.count = h("span", { class: "badge", hidden: true });
    this.errors = h("div");
    this.none = h("p", {}, "The agent has said nothing unasked.");
    this.list = h("div", { class: "cards" });
    this.node = h("section", {}, h("h2", {}, "Said unasked"), this.errors, this.none, this.list);
    this.cards = new Map();
  }

  /**
   * Reads the announcements until `signal` fires, while the window is shown: a browser has few
   * connections to a server, which windows in the background must not use up.
   */
  read(signal) {
    let reading;
    const change = () => {
      reading?.abort();
      if (document.hidden || signal.aborted) return;
      reading = new AbortController();
      this.follow(reading.signal).catch((error) => report(this.errors, error));
    };
    document.addEventListener("visibilitychange", change, { signal });
    signal.addEventListener("abort", change);
    change();
  }

  async follow(signal) {
    const open = async (last) => {
      await this.compare();
      return stream("announcements/events", last, signal);
    };
    await follow(open, signal, (event) => {
      if (event.type === "announced") this.add(event.announcement);
      else this.drop(event.id);
      return false;
    });
  }

  /** Drops what was dismissed elsewhere while this window did not read. */
  async compare() {
    const { announcements } = await get("announcements");
    const waiting = new Set(announcements.map((said) => said.id));
    [...this.cards.keys()].filter((id) => !waiting.has(id)).forEach((id) => this.drop(id));
  }

  add(said) {
    if (this.cards.has(said.id)) return;
    const dismiss = button("Dismiss", async () => {
      await call("DELETE", `announcements/${encodeURIComponent(said.id)}`).catch((error) => {
        if (error.status !== 404) report(this.errors, error);
      });
      this.drop(said.id);
      focusIn(this.list);
    }, { "aria-label": `Dismiss what was said in ${said.session}` });
    const link = h("a", { href: `#/chat/${encodeURIComponent(said.session)}` }, said.session);
    const card = h("div", { class: "card" }, h("h3", {}, link), message("assistant", said.text, said.at), h("div", { class: "row" }, dismiss));
    this.cards.set(said.id, card);
    this.list.prepend(card);
    this.changed();
    say("The agent has said something unasked.");
    if (said.approval) this.approvals.refresh().catch(() => {});
  }

  drop(id) {
    this.cards.get(id)?.remove();
    this.cards.delete(id);
    this.changed();
  }

  changed() {
    const waiting = this.cards.size;
    this.none.hidden = waiting > 0;
    this.count.hidden = waiting === 0;
    this.count.textContent = `${waiting}`;
    this.count.setAttribute("aria-label", `${waiting} unread`);
  }
}
