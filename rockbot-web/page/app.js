// The page: it signs the user in, and shows the view that the address names.

import { get, hasToken, keepToken } from "./api.js";
import { Approvals } from "./approvals.js";
import { VIEWS, browse } from "./browse.js";
import { Chat, Sessions, newSession, search } from "./chat.js";
import { button, h, report } from "./dom.js";
import { News } from "./news.js";

const app = document.getElementById("app");

/** The page of a user who has signed in. */
class Page {
  constructor(me) {
    this.me = me;
    this.leaving = new AbortController();
    this.approvals = new Approvals();
    this.news = new News(this.approvals);
    this.sessions = new Sessions((session) => this.forgotten(session));
    this.main = h("main", { id: "main", tabindex: "-1" });
    this.links = h("ul", { class: "views" }, this.entries());
    this.side = h("div", { id: "side", class: "side" }, h("nav", { "aria-label": "Views" }, this.links), this.sessions.node);
    this.menu = button("Menu", () => this.toggle(), { "aria-expanded": "false", "aria-controls": "side", class: "menu" });
    const out = hasToken() && button("Sign out", () => window.dispatchEvent(new Event("signed-out")));
    app.replaceChildren(
      h("a", { class: "skip", href: "#main", onclick: (event) => this.skip(event) }, "Skip to the content"),
      h("header", { class: "top" }, this.menu, h("h1", {}, me.agent), h("p", { class: "user" }, me.principal), out || ""),
      this.side, h("div", { class: "content" }, h("div", { class: "asked" }, this.approvals.node), this.main));
    document.title = me.agent;
  }

  entries() {
    const offered = Object.entries(VIEWS).filter(([, view]) => !view.part || this.me.parts.includes(view.part));
    const link = (name, title, ...more) => h("li", {}, h("a", { href: `#/${name}`, "data-view": name }, title, ...more));
    return [link("chat", "Chat"), link("search", "Search"), link("news", "Said unasked ", this.news.count),
      ...offered.map(([name, view]) => link(name, view.title))];
  }

  start() {
    const { signal } = this.leaving;
    window.addEventListener("hashchange", () => this.show(), { signal });
    this.news.read(signal);
    this.approvals.refresh().catch(() => {});
    // Another window may decide, and a turn of another program may ask.
    const timer = setInterval(() => this.approvals.refresh().catch(() => {}), 10_000);
    signal.addEventListener("abort", () => clearInterval(timer));
    this.show();
  }

  show() {
    const [name = "", argument] = location.hash.replace(/^#\//, "").split("/").map(decode);
    if (name === "new" || name === "" || name === "chat" && !argument) {
      location.replace(`#/chat/${encodeURIComponent(name === "new" ? newSession() : this.chat?.session ?? newSession())}`);
      return;
    }
    this.chat?.leave();
    this.side.classList.remove("open");
    this.menu.setAttribute("aria-expanded", "false");
    const view = this.view(name, argument);
    this.main.replaceChildren(view);
    for (const link of this.links.querySelectorAll("a")) {
      if (link.dataset.view === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    this.refreshSessions();
    if (this.wasShown) this.focus();
    this.wasShown = true;
  }

  view(name, argument) {
    if (name === "chat") {
      const onEnd = () => this.refreshSessions();
      this.chat = new Chat(argument, { approvals: this.approvals, me: this.me, onEnd });
      this.chat.open();
      return this.chat.node;
    }
    if (name === "search") return search();
    if (name === "news") return this.news.node;
    return name in VIEWS ? browse(name, this.me) : h("p", {}, "There is no such view.");
  }

  refreshSessions() {
    this.sessions.refresh(this.chat?.session).catch((error) => report(this.sessions.errors, error));
  }

  forgotten(session) {
    if (this.chat?.session === session) location.hash = "#/new";
    else this.refreshSessions();
  }

  toggle() {
    const isOpen = this.side.classList.toggle("open");
    this.menu.setAttribute("aria-expanded", `${isOpen}`);
  }

  /** Moves the focus to the new view: a keyboard goes on there, and a screen reader reads it. */
  focus() {
    (this.main.querySelector("textarea") ?? this.main).focus();
  }

  skip(event) {
    event.preventDefault();
    this.main.focus();
  }

  leave() {
    this.chat?.leave();
    this.leaving.abort();
  }
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Shows the form for the user's token. */
function signIn(error) {
  const token = h("input", { id: "token", type: "password", autocomplete: "current-password", required: true });
  const place = h("div");
  const submit = (event) => {
    event.preventDefault();
    keepToken(token.value.trim());
    begin(true);
  };
  app.replaceChildren(h("main", { class: "sign-in" }, h("h1", {}, "Sign in"),
    h("form", { onsubmit: submit }, h("label", { for: "token" }, "Your token"), token,
      h("button", { type: "submit", class: "primary" }, "Sign in")),
    h("p", { class: "note" }, "The operator of this agent gives you a token. It stays in this tab."), place));
  report(place, error);
  token.focus();
}

let page;

/** Asks who has signed in, and shows the page or the form. */
async function begin(hasTried = false) {
  try {
    page = new Page(await get("me"));
    page.start();
  } catch (error) {
    if (error.status === 401) {
      keepToken();
      signIn(hasTried ? error : undefined);
    } else {
      app.replaceChildren(h("main", { class: "sign-in" }, h("h1", {}, "Agent"),
        h("p", { class: "error", role: "alert" }, error.message), button("Try again", () => begin())));
    }
  }
}

window.addEventListener("signed-out", () => {
  if (!page) return;
  page.leave();
  page = undefined;
  keepToken();
  signIn();
});

begin();
