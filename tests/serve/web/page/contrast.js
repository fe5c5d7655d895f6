// The contrast of every piece of text with what is painted behind it, as WCAG counts it; gives those below AA. Run by test_for_everyone.py.
() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const over = (top, below) => [0, 1, 2].map((i) => (top[i] * top[3] + below[i] * (255 - top[3])) / 255);
  const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const light = (color) => color.map((value, i) => linear(value / 255) * [0.2126, 0.7152, 0.0722][i]).reduce((one, other) => one + other);
  const up = (node) => (node ? [...up(node.parentElement), node] : []);
  const behind = (node) => up(node).reduce((below, at) => over(rgba(getComputedStyle(at).backgroundColor), below), [255, 255, 255]);
  const faint = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.textContent.trim();
    const node = walk.currentNode.parentElement;
    if (!text || !node.checkVisibility({ visibilityProperty: true }) || node.closest(".unseen, .skip-link, [disabled]")) continue;
    const style = getComputedStyle(node);
    const below = behind(node);
    const color = rgba(node.closest("svg") ? style.fill : style.color);
    for (const at of up(node)) color[3] *= getComputedStyle(at).opacity;
    const [one, other] = [light(over(color, below)), light(below)];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 600);
    if (ratio < (large ? 3 : 4.5)) faint.push(`${ratio.toFixed(2)} ${node.className} ${text.slice(0, 30)}`);
  }
  return faint;
}
