// Loaded before anything is drawn, so that a remembered theme never flashes: no module, on purpose.
(function () {
  try {
    const wished = localStorage.getItem("seqmix-theme");
    if (wished === "light" || wished === "dark") document.documentElement.dataset.theme = wished;
  } catch {
    // no storage: the system's wish is followed
  }
})();
