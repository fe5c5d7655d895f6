// Talking to the server. Every failure becomes an `ApiError` with its kind and one sentence on what went wrong.

import { sentence } from "./dom.js";

export class ApiError extends Error {
  /** kind: offline (no answer came) | login (401) | refused (403) | missing (404) | stale (409) | busy (429) | wrong (other 4xx) | broken (5xx) */
  constructor(kind, message, status = 0) {
    super(message);
    this.kind = kind;
    this.status = status;
  }
}

const KINDS = { 401: "login", 403: "refused", 404: "missing", 409: "stale", 429: "busy" };
const PATIENCE = 20_000; // milliseconds to wait for an answer
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export const get = (path) => request("GET", path);
export const post = (path, body) => request("POST", path, body);

async function request(method, path, body, again = 3) {
  let response, data;
  try {
    response = await fetch(path, {
      method,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      signal: AbortSignal.timeout(PATIENCE),
    });
    data = await response.json().catch(() => null);
  } catch {
    throw new ApiError("offline", "The server is not answering. Is “seqmix annotate” still running?");
  }
  if (response.status === 429 && again > 0) {
    await pause(1000);
    return request(method, path, body, again - 1);
  }
  if (response.ok && data !== null) return data;
  const kind = KINDS[response.status] ?? (response.status >= 500 || response.ok ? "broken" : "wrong");
  throw new ApiError(kind, messageOf(data, response.status), response.status);
}

function messageOf(data, status) {
  if (typeof data?.error === "string") return sentence(data.error);
  return status >= 500 ? `The server failed (${status}).` : `The server refused the request (${status}).`;
}
