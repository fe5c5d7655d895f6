// Browsers refuse Web Workers to pages opened from a folder; there, the search runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow, script = inside.document.createElement("script");
      inside.postMessage = (data) => { const copy = structuredClone(data); setTimeout(() => this.onmessage?.({ data: copy })); };
      const loaded = new Promise((resolve, reject) => Object.assign(script, { onload: resolve, onerror: reject }));
      this.postMessage = (data) => { const copy = structuredClone(data); loaded.then(() => inside.onmessage({ data: copy }), () => this.onerror?.(new Event("error"))); };
      this.terminate = () => frame.remove();
      script.src = new URL(url, location.href);
      inside.document.body.append(script);
    }
  };
}
