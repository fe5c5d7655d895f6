// The sources of suggestions: what people kept of each, its F1 on random sentences, and for admins a dictionary to type in, a switch and removal.

import { get, post } from "./api.js";
import { $, announce, f1, fill, h, many, number, percent } from "./dom.js";
import { endpointOf, newEndpoint } from "./endpoints.js";
import { shell, stop } from "./shell.js";

const KINDS = { dictionary: "dictionary", model: "the project's model", types: "points at names", tagger: "tagger", predictions: "predictions from a file", llm: "language model" };
const project = await shell("sources.html");

async function start() {
  const admin = project.annotator.admin;

  async function load() {
    await guarded(async () => draw(await get("api/sources")));
  }

  function draw(rows) {
    fill($("list"), rows.map(card));
    const sources = rows.filter(({ kind }) => kind !== "model");
    $("summary").textContent = sources.length ? `${many(sources.length, "source")}.` : "This project has no sources yet.";
  }

  function card(row) {
    const mine = row.kind === "model";
    return h("article", { class: `card source-card${row.on ? "" : " off"}`, "data-source": row.name },
      h("header", {}, h("h2", {}, row.name, " ", h("span", { class: "kind" }, KINDS[row.kind] ?? row.kind, row.on ? "" : ", off")),
        admin && !mine && h("p", { class: "actions" },
          h("button", { type: "button", "aria-pressed": String(row.on), onclick: () => turn(row) }, row.on ? "Turn off for everybody" : "Turn on"),
          h("button", { type: "button", class: "quiet", onclick: () => remove(row) }, "Remove"))),
      h("dl", {}, figure("Kept by people", row.offered ? `${number(row.kept)} of ${number(row.offered)} (${percent(row.kept / row.offered)})` : "nothing offered yet"),
        !mine && figure("F1 on audit sentences", row.f1 ? `${f1(row.f1.f1)}, ${f1(row.f1.low)} – ${f1(row.f1.high)} (${percent(row.f1.level)} interval, ${many(row.f1.n, "sentence")})` : "too few answers yet"),
        row.trouble && figure("Why it does not suggest", row.trouble),
        row.slow?.length > 0 && figure("Left out because they are slow", row.slow.join(", "))),
      admin && row.kind === "llm" && endpointOf(row.name, guarded));
  }

  const figure = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));

  async function turn({ name, on }) {
    await guarded(() => post(`api/sources/${encodeURIComponent(name)}/state`, { on: !on }));
    await load();
    announce(`${name} is ${on ? "off" : "on"}.`);
    document.querySelector(`[data-source="${CSS.escape(name)}"] button`)?.focus();
  }

  async function remove({ name }) {
    if (!confirm(`Remove ${name}? What people kept of its suggestions stays.`)) return;
    await guarded(() => post(`api/sources/${encodeURIComponent(name)}/remove`, {}));
    await load();
    announce(`${name} is removed.`);
    $("list").focus();
  }

  async function add(form) {
    const { name, tag, terms, ignore_case } = form.elements;
    const lines = terms.value.split("\n").map((line) => (!line.trim() || line.includes("\t") ? line : `${line}\t${tag.value}`));
    await guarded(async () => {
      $("added").textContent = "Trying …";
      const added = await post("api/sources", { name: name.value.trim(), terms: lines.join("\n"), ignore_case: ignore_case.checked });
      form.reset();
      $("added").textContent = `${added.name} suggests from now on.`;
      await load();
    });
  }

  async function guarded(attempt) {
    $("trouble").hidden = true;
    try {
      await attempt();
    } catch (error) {
      if (!error.kind) throw error;
      if (error.kind === "login") return stop(error);
      $("added").textContent = "";
      $("trouble").hidden = false;
      $("trouble").textContent = error.message;
    }
  }

  if (!admin) for (const node of document.querySelectorAll("[data-admin]")) node.remove();
  else {
    fill($("tag"), project.tags.map(({ name }) => h("option", { value: name }, name)));
    newEndpoint($("endpoint"), guarded, load);
    $("dictionary").addEventListener("submit", (event) => {
      event.preventDefault();
      add(event.target);
    });
  }
  await load();
  for (const node of document.querySelectorAll("[data-admin]")) node.hidden = false; // only now: before that, the browser would submit the forms itself
}

if (project) await start();
