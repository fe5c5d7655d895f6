// What the pages share: the top bar, the theme, and the notice for when the server cannot be used.

import { get } from "./api.js";
import { $, fill, h } from "./dom.js";
import { withKeys } from "./keys.js";

const PAGES = [["./", "Annotate"], ["answers.html", "Answers"], ["review.html", "Review"], ["sources.html", "Sources"], ["tags.html", "Tags"], ["generated.html", "Generated"], ["agreement.html", "Team"]];
const FOR_ADMINS = ["tags.html", "agreement.html"];

/** Draw the top bar and return the project; if that fails, show why and return null. */
export async function shell(here) {
  theme();
  try {
    const project = await get("api/project");
    project.tags = withKeys(project.tags);
    document.title = `${project.name} · ${PAGES.find(([href]) => href === here)[1]}`;
    $("project").textContent = project.name;
    const links = PAGES.filter(([href]) => !FOR_ADMINS.includes(href) || project.annotator.admin);
    fill($("pages"), links.map(([href, name]) => h("a", { href, "aria-current": href === here ? "page" : null }, name)));
    $("who").textContent = project.annotator.name;
    return project;
  } catch (error) {
    stop(error);
    return null;
  }
}

/** Replace the page with what went wrong and what to do. */
export function stop(error) {
  if (!error.kind) throw error; // a bug: shown in the console
  const login = error.kind === "login";
  const title = login ? "Please use your link again" : error.kind === "refused" ? "This page is for admins" : "The project could not be loaded";
  const advice = login
    ? "Your session has ended, or this browser is not signed in. Open the link that “seqmix annotate” printed, or the one you were sent: it holds your token."
    : error.message;
  fill($("main"), h("section", { class: "notice", role: "alert" }, h("h1", {}, title), h("p", {}, advice),
    !login && h("p", {}, h("button", { type: "button", onclick: () => location.reload() }, "Try again"))));
}

function theme() {
  const root = document.documentElement;
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const button = $("theme");
  const show = () => {
    button.setAttribute("aria-pressed", String(dark()));
    button.textContent = dark() ? "☾" : "☀";
    button.title = dark() ? "Dark theme; click for light" : "Light theme; click for dark";
  };
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try {
      localStorage.setItem("seqmix-theme", root.dataset.theme);
    } catch {
      // it will not be remembered
    }
    show();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
  show();
}
