// Looks at each page of the site in a browser, light and dark: no error, no request to another
// machine, no link that leads nowhere, no rule of accessibility broken. Usage: site.mjs FOLDER

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const require = createRequire(`${process.env.ROCKBOT_TEST_BROWSER}/`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

/** Folder for pictures, for a person who looks at them. */
const pictures = process.env.ROCKBOT_TEST_PICTURES;

/** Rules that are not asked for: the blocks of mdBook that scroll cannot be reached by the keyboard. */
const rules = { "scrollable-region-focusable": { enabled: false } };

const folder = process.argv[2];
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const server = createServer((request, response) => {
  const file = join(folder, normalize(decodeURIComponent(new URL(request.url, "http://site").pathname)));
  if (!existsSync(file)) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": types[extname(file)] ?? "application/octet-stream" }).end(readFileSync(file));
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const origin = `http://127.0.0.1:${server.address().port}`;

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
});
const pages = readdirSync(folder).filter((name) => name.endsWith(".html") && !["404.html", "toc.html"].includes(name));
assert(pages.length > 20, `${pages.length} pages`);
const problems = [];
const grounds = {};
for (const colorScheme of ["light", "dark"]) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 800 }, colorScheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  let name;
  page.on("pageerror", (error) => problems.push(`${name}: ${error}`));
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) problems.push(`${name}: ${message.text()}`);
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(origin)) problems.push(`${name} asks ${request.url()}`);
  });
  for (name of pages) {
    await page.goto(`${origin}/${name}`, { waitUntil: "load" });
    const links = await page.$$eval("main a[href], nav a[href]", (found) => found.map((link) => link.href));
    for (const link of links.filter((link) => link.startsWith(origin))) {
      const { pathname, hash } = new URL(link);
      const file = join(folder, pathname === "/" ? "index.html" : pathname);
      const place = decodeURIComponent(hash.slice(1));
      const found = existsSync(file) && (!place || readFileSync(file, "utf8").includes(`id="${place}"`));
      if (!found) problems.push(`${name} links to ${pathname}${hash}, which is not there`);
    }
    await page.evaluate(axe);
    const { violations } = await page.evaluate((rules) => window.axe.run("main", { rules }), rules);
    for (const { id, nodes } of violations) problems.push(`${name}, ${colorScheme}: ${id}: ${nodes[0].html.slice(0, 120)}`);
    grounds[colorScheme] ??= await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    if (pictures) {
      mkdirSync(pictures, { recursive: true });
      await page.screenshot({ path: join(pictures, `${name}-${colorScheme}.png`) });
    }
  }
  await context.close();
}
await browser.close();
server.close();
assert.notEqual(grounds.light, grounds.dark, "the dark site is as light as the light one");
assert.deepEqual(problems, []);
console.log(`${pages.length} pages of the site, light and dark`);
