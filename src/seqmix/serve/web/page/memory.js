// What the browser remembers for one visit: marks not yet saved, the last answers, and the seconds really spent.

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
    // full or forbidden: the marks still are on the page
  }
};

/** Marks by sentence and version: reloading the page or leaving for an earlier answer loses none. No text is kept. */
export const drafts = {
  of: ({ id, version }) => read(`draft ${version} ${id}`, null),
  keep: ({ id, version }, state) => write(`draft ${version} ${id}`, state),
  drop: ({ id, version }) => write(`draft ${version} ${id}`, null),
};

const KEPT = 40;

/** The last answers of this visit, newest first, each once. */
export const visited = {
  all: () => read("answers", []),
  add: (answer) => write("answers", [answer, ...visited.all().filter((other) => other.id !== answer.id)].slice(0, KEPT)),
  remove: (id) => write("answers", visited.all().filter((other) => other.id !== id)),
};

const PAUSE = 120_000; // who does nothing for so long is away

/** Seconds spent on what is shown: time in which the page is hidden or nobody touches it for two minutes is not counted. */
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
