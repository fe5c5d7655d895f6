// What was done in one go, each with its cause, and taken back in one go.

import { get, post } from "./api.js";
import { $, announce, fill, h, many, percent } from "./dom.js";

const CAUSES = {
  accept: ({ alpha }) => `What the model is sure of, accepted at an error rate of at most ${percent(alpha)}`,
  mark_all: ({ tokens, tag, ignore_case, endings }) => `“${tokens.join(" ").slice(0, 100)}” marked ${tag} everywhere${ignore_case ? ", in any case" : ""}${endings ? ", with other endings" : ""}`,
};

let drawn = ""; // the rows on the page

/** Fill the list; `changed()` is called after something was taken back. */
export async function drawBatches({ stop, changed }) {
  const rows = await get("api/batches");
  if (JSON.stringify(rows) === drawn) return; // the buttons stay what they are, for whoever is about to press one
  drawn = JSON.stringify(rows);
  $("batches-box").hidden = !rows.length;
  fill($("batches"), rows.map((row) => {
    const cause = CAUSES[row.kind]?.(row.details) ?? row.kind.replaceAll("_", " ");
    const undone = row.undone_at !== null && !row.answers;
    return h("li", { "data-batch": row.id },
      h("span", { class: undone ? "undone" : null }, `${cause}: `, h("a", { href: `answers.html?${new URLSearchParams({ source: row.kind })}` }, many(row.answers, "answer")), `, ${row.annotator}, ${new Date(row.at * 1000).toLocaleString()}`),
      !undone && h("button", { type: "button", "aria-label": `Take back: ${cause}`, onclick: (event) => undo(row, event.target) }, "Take back"));
  }));

  async function undo(row, button) {
    button.disabled = true;
    try {
      const { cancelled, changed: kept } = await post(`api/batches/${row.id}/undo`, {});
      announce(`Taken back: ${many(cancelled, "answer")}.${kept ? ` ${many(kept, "answer")} changed since then stay.` : ""}`);
      changed();
      await drawBatches({ stop, changed });
    } catch (error) {
      if (!error.kind) throw error;
      if (error.kind === "login") return stop(error);
      button.disabled = false;
      announce(error.message);
      button.after(h("span", { class: "quiet-text", role: "alert" }, error.message));
    }
  }
}
