// An old answer corrected where it is listed: an editor in its card, with the keys of the annotation page.

import { of } from "./about.js";
import { get, post } from "./api.js";
import { typed } from "./controls.js";
import { announce, fill, h } from "./dom.js";
import { createEditor } from "./editor.js";
import { stopwatch } from "./memory.js";
import { takeUp } from "./tagsync.js";

let opened = 0;

/** An editor for the answer with this event; `done(answer)` is called when the correction was saved, `left()` when it was not. */
export async function corrector(seq, { project, done, left, stop }) {
  await takeUp(project);
  const [tags, known] = [[...project.tags], project.tag_change]; // whoever changes them meanwhile: the server knows what these mean then
  const { sentence, answer, corrects } = await get(`api/answers/${seq}`);
  const [sent, id, decides] = [{ ...sentence, answer }, sentence.id, corrects.kind === "adjudicate"];
  opened += 1;
  const host = h("div", { id: `correct-${opened}`, class: "sentence", role: "listbox", tabindex: "0", "aria-label": "Tokens of the answer", "aria-multiselectable": "true", onkeydown: keyed });
  const pager = h("div", { class: "pager", hidden: true });
  const status = h("span", { class: "quiet-text", role: "status" }, !corrects.mine && of(corrects));
  const editor = createEditor({ host, pager, tags, direction: project.direction });
  const clock = stopwatch();
  const use = (act) => {
    act();
    editor.focus();
  };
  const save = h("button", { type: "button", class: "primary", onclick: send }, "Save ", h("kbd", { "aria-hidden": "true" }, "Enter"));
  const node = h("div", { class: "correct" }, host, pager,
    h("div", { class: "tags", role: "group", "aria-label": "Tags" }, tags.slice(0, 40).map((tag) => h("button", { type: "button", class: `tag c${tag.color}`, onclick: () => use(() => editor.tag(tag.name)) }, tag.name, tag.key && h("kbd", { "aria-hidden": "true" }, tag.key)))),
    h("div", { class: "actions" }, save, h("button", { type: "button", onclick: () => use(editor.clear) }, "Clear ", h("kbd", { "aria-hidden": "true" }, "x")), !decides && h("button", { type: "button", onclick: () => use(editor.sure) }, "Sure part ", h("kbd", { "aria-hidden": "true" }, "p")),
      h("button", { type: "button", onclick: left }, "Cancel ", h("kbd", { "aria-hidden": "true" }, "Esc")), status));

  function keyed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const pressed = typed(event);
    const tag = tags.find(({ key }) => key === pressed.toLowerCase());
    const actions = { x: editor.clear, X: editor.clearAll, ...(!decides && { p: editor.sure }), z: editor.undo, Z: editor.redo, n: () => editor.jump(true), N: () => editor.jump(false), Enter: send, Escape: left };
    if (editor.key(event)) return event.preventDefault();
    if (!actions[pressed] && !tag) return;
    event.preventDefault();
    if (event.repeat) return;
    if (actions[pressed]) actions[pressed]();
    else editor.tag(tag.name);
  }

  async function send() {
    if (save.disabled) return;
    save.disabled = true;
    fill(status, "Saving …");
    const { spans, sure } = editor.answer();
    const content = { id, version: sentence.version, spans, tag_change: known };
    try {
      const saved = await (decides ? post("api/adjudications", content) : post("api/annotations", { ...content, sure, seconds: clock.seconds() }));
      announce("Saved.");
      done({ seq: saved.seq, kind: corrects.kind, correction: corrects.kind, spans, sure: decides ? null : sure });
    } catch (error) {
      if (!error.kind) throw error;
      if (error.kind === "login") return stop(error);
      fill(status, `Not saved. ${error.message}`);
      save.disabled = false;
    }
  }

  return {
    node,
    start() {
      editor.open({ ...sent, hints: sent.answer.open });
      clock.start();
      editor.focus();
    },
  };
}
