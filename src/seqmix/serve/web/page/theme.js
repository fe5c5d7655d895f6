// Loaded before anything is drawn, so that a remembered theme does not flash; deliberately not a module.
(function () {
  try {
    const saved = localStorage.getItem("seqmix-theme");
    if (saved === "light" || saved === "dark") document.documentElement.dataset.theme = saved;
  } catch {
    // no storage: the system's theme is used
  }
})();
