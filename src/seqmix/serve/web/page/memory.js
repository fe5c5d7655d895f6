// What the browser remembers for one session: unsaved marks, the last answers, and the seconds of active work.

const read = (key, otherwise) => {
  try {
    return JSON.parse(sessionStorage.getItem(key)) ?? otherwise;
  } catch {
    return otherwise;
  }
};
const write = (key, value) => {
  try {
    if (value === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(value));
  } catch {
    // full or forbidden: the marks are still on the page
  }
};

/** Marks by sentence and version: reloading the page or opening an earlier answer loses none. No text is kept, but the last change of the tags that they know. */
export const drafts = {
  of: ({ id, version }) => read(`draft ${version} ${id}`, null),
  keep: ({ id, version }, state, change) => write(`draft ${version} ${id}`, { ...state, change }),
  drop: ({ id, version }) => write(`draft ${version} ${id}`, null),
};

const KEPT = 40;

/** The last answers of this session, newest first, each once. */
export const visited = {
  all: () => read("answers", []),
  add: (answer) => write("answers", [answer, ...visited.all().filter(({ id }) => id !== answer.id)].slice(0, KEPT)),
  rename: (now) => write("answers", visited.all().map((answer) => ({ ...answer, spans: answer.spans.map((span) => ({ ...span, tag: now(span.tag) })).filter((span) => span.tag) }))),
  remove: (id) => write("answers", visited.all().filter((answer) => answer.id !== id)),
};

const PAUSE = 120_000; // milliseconds without input after which a person counts as away

/** Seconds spent on a sentence, without the time in which the page is hidden or not touched for two minutes. */
export function stopwatch() {
  let spent = 0, since = performance.now();
  const beat = () => {
    const now = performance.now();
    if (now - since < PAUSE) spent += now - since;
    since = now;
  };
  for (const event of ["pointerdown", "pointermove", "keydown"]) document.addEventListener(event, beat, { passive: true });
  document.addEventListener("visibilitychange", () => (document.hidden ? beat() : (since = performance.now())));
  return {
    start: () => ([spent, since] = [0, performance.now()]),
    seconds: () => {
      beat();
      return Math.round(spent / 10) / 100;
    },
  };
}
