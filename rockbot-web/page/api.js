// Requests to `/api`, and streams of events that survive a lost connection.

const TOKEN = "rockbot.token";

/** Longest pause before a lost stream is opened again, in milliseconds. */
const MAX_PAUSE = 15_000;

/** An error of the server, in words for the user. */
export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** Keeps the token in this tab alone; without one the browser's own sign-in, or none, is used. */
export function keepToken(token) {
  if (token) sessionStorage.setItem(TOKEN, token);
  else sessionStorage.removeItem(TOKEN);
}

export function hasToken() {
  return sessionStorage.getItem(TOKEN) !== null;
}

async function send(method, path, { body, headers = {}, signal } = {}) {
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const request = { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) };
  let response;
  try {
    response = await fetch(`api/${path}`, request);
  } catch (cause) {
    if (signal?.aborted) throw cause;
    throw new ApiError(0, "unreachable", "The agent cannot be reached. Is it running?");
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  if (response.status === 401) window.dispatchEvent(new Event("signed-out"));
  throw new ApiError(response.status, told.error?.code ?? "", told.error?.message ?? `The server answered ${response.status}.`);
}

/** Sends a request, and returns the answer's JSON, if it has one. */
export async function call(method, path, body, headers) {
  const response = await send(method, path, { body, headers });
  return response.status === 204 ? undefined : response.json();
}

export function get(path, query = {}) {
  const set = Object.entries(query).filter(([, value]) => value !== undefined && value !== "" && value !== false);
  const search = new URLSearchParams(set).toString();
  return call("GET", search ? `${path}?${search}` : path);
}

/** Returns the bytes of an image of the host's store as the URL of a blob. */
export async function image(digest, mediaType) {
  const response = await send("GET", `media/${encodeURIComponent(digest)}?type=${encodeURIComponent(mediaType)}`);
  return URL.createObjectURL(await response.blob());
}

/** Opens a stream of events, after the last event that was read. */
export function stream(path, last, signal) {
  return send("GET", path, { headers: last === undefined ? {} : { "last-event-id": last }, signal });
}

/** Sends a request whose answer is a stream of events. */
export function streamed(path, body, headers, signal) {
  return send("POST", path, { body, headers: { ...headers, accept: "text/event-stream" }, signal });
}

/**
 * Reads streams of events until `onEvent` returns `true`, a stream has nothing more to tell, or `signal`
 * fires. `open` opens a stream after the last event that was read: again, when the connection is lost.
 */
export async function follow(open, signal, onEvent) {
  let last;
  let pause = 1_000;
  while (!signal.aborted) {
    try {
      const response = await open(last);
      if (response.status === 204) return;
      pause = 1_000;
      for await (const event of parsed(response.body)) {
        last = event.id ?? last;
        if (onEvent(event.data)) return;
      }
    } catch (error) {
      if (signal.aborted) return;
      const isLasting = error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429;
      if (isLasting) throw error;
    }
    await new Promise((wake) => setTimeout(wake, pause));
    pause = Math.min(pause * 2, MAX_PAUSE);
  }
}

/** Returns the events in a body. */
async function* parsed(body) {
  let rest = "";
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const field = (name) => block.split("\n").find((line) => line.startsWith(name))?.slice(name.length);
      const data = field("data: ");
      if (data !== undefined) yield { id: field("id: "), data: JSON.parse(data) };
    }
  }
}
