// A browser at the page, for the flows beside this file: it notes each request and each error, and
// checks the rules of accessibility.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { mkdirSync, readFileSync } from "node:fs";

const require = createRequire(`${process.env.ROCKBOT_TEST_BROWSER}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** Folder for pictures, for a person who looks at them. */
const pictures = process.env.ROCKBOT_TEST_PICTURES;

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

/** Tells the test that a point is reached, and waits until the test goes on. */
export async function reached(point) {
  console.log(point);
  const { done } = await lines.next();
  assert(!done, "the test has ended");
}

/** A window at the page, of a person who has not signed in. */
export class Window {
  static async open(url, options = {}) {
    const window = new Window();
    window.origin = new URL(url).origin;
    // Names lead nowhere: a request to another site would fail, and is noted all the same.
    window.browser = await chromium.launch({
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
    });
    window.context = await window.browser.newContext({ viewport: { width: 1200, height: 800 }, reducedMotion: "reduce", ...options });
    window.foreign = [];
    window.errors = [];
    window.context.on("request", (request) => window.note(request.url()));
    window.page = await window.context.newPage();
    window.page.setDefaultTimeout(60_000);
    window.page.on("pageerror", (error) => window.errors.push(`${error}`));
    window.page.on("dialog", (dialog) => window.answer(dialog));
    window.page.on("console", (message) => {
      // A refused request is a part of some flows.
      const isRefusal = message.text().startsWith("Failed to load resource");
      if (["error", "warning"].includes(message.type()) && !isRefusal) window.errors.push(message.text());
    });
    await window.page.goto(url);
    return window;
  }

  note(url) {
    const isOwn = url.startsWith(`${this.origin}/`) || url.startsWith(`blob:${this.origin}/`);
    if (!isOwn) this.foreign.push(url);
  }

  async answer(dialog) {
    this.asked = dialog.message();
    await dialog.accept();
  }

  async signIn(token = "sesame") {
    await this.page.getByLabel("Your token").fill(token);
    await this.page.getByRole("button", { name: "Sign in" }).click();
  }

  /** Sends a message as a person at the keyboard. */
  async ask(text) {
    await this.page.getByLabel("Message", { exact: true }).fill(text);
    await this.page.keyboard.press("Enter");
  }

  /** Waits until the last answer is complete, and returns its text. */
  async answered() {
    const last = this.page.locator(".log .message.assistant").last();
    await this.page.waitForFunction(() => {
      const all = document.querySelectorAll(".log .message.assistant");
      return all.length > 0 && [...all].every((answer) => answer.getAttribute("aria-busy") !== "true");
    });
    return (await last.locator(".markdown").last().innerText()).trim();
  }

  async view(name) {
    await this.page.getByRole("navigation", { name: "Views" }).getByRole("link", { name, exact: true }).click();
  }

  /** Checks the rules of accessibility, and takes pictures: light, dark and narrow. */
  async check(name) {
    const cdp = await this.context.newCDPSession(this.page);
    for (const [look, colorScheme, width] of [["light", "light", 1200], ["dark", "dark", 1200], ["narrow", "light", 380]]) {
      await this.page.emulateMedia({ colorScheme });
      await this.page.setViewportSize({ width, height: 800 });
      // The policy of the page lets no script in but by the debugger.
      await cdp.send("Runtime.evaluate", { expression: axe, allowUnsafeEvalBlockedByCSP: true });
      const { violations } = await this.page.evaluate(() => globalThis.axe.run());
      const found = violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 200)} (${node.failureSummary})`));
      assert.deepEqual(found, [], `${name}, ${look}`);
      const isWide = await this.page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
      assert(!isWide, `${name}, ${look}: the page scrolls sideways`);
      if (pictures) {
        mkdirSync(pictures, { recursive: true });
        await this.page.screenshot({ path: `${pictures}/${name}-${look}.png` });
      }
    }
    await this.page.emulateMedia({ colorScheme: "light" });
    await this.page.setViewportSize({ width: 1200, height: 800 });
    await cdp.detach();
  }

  /** Ends, and checks that the page made no request to others and no script failed. */
  async close() {
    assert.deepEqual(this.foreign, [], "requests to others");
    assert.deepEqual(this.errors, [], "errors of scripts");
    await this.browser.close();
  }
}
