// The learning curve as SVG: F1 on the audit sentences by the number of labeled sentences, with its interval.

import { f1, number, svg } from "./dom.js";

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [300, 150, 30, 10, 10, 22];

/** The picture, or null while there is nothing to draw. */
export function curve(points) {
  const drawn = points.filter((point) => Number.isFinite(point.f1));
  if (!drawn.length) return null;
  const most = Math.max(...drawn.map((point) => point.labeled), 1);
  const x = (n) => LEFT + (n / most) * (WIDTH - LEFT - RIGHT);
  const y = (value) => TOP + (1 - value) * (HEIGHT - TOP - BOTTOM);
  const at = (point) => `${x(point.labeled).toFixed(1)},${y(point.f1).toFixed(1)}`;
  const last = drawn.at(-1);
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "curve", role: "img", "aria-label": description(drawn) },
    [0, 0.5, 1].map((value) => [
      svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(value), y2: y(value) }),
      svg("text", { x: LEFT - 6, y: y(value) + 3.5, "text-anchor": "end" }, value === 0.5 ? ".5" : String(value)),
    ]),
    svg("text", { x: LEFT, y: HEIGHT - 6 }, "0"),
    svg("text", { x: WIDTH - RIGHT, y: HEIGHT - 6, "text-anchor": "end" }, `${number(most)} labeled`),
    drawn.length > 1 && drawn.every((point) => Number.isFinite(point.low)) && svg("path", { class: "band", d: band(drawn, x, y) }),
    drawn.length === 1 && Number.isFinite(last.low) && svg("line", { class: "whisker", x1: x(last.labeled), x2: x(last.labeled), y1: y(last.low), y2: y(last.high) }),
    svg("polyline", { class: "line", points: drawn.map(at).join(" ") }),
    drawn.map((point) => svg("circle", { class: point === last ? "dot last" : "dot", cx: x(point.labeled), cy: y(point.f1), r: point === last ? 4 : 2.5 })),
  );
}

function band(points, x, y) {
  const upper = points.map((point) => `${x(point.labeled)} ${y(point.high)}`);
  const lower = points.map((point) => `${x(point.labeled)} ${y(point.low)}`).reverse();
  return `M${[...upper, ...lower].join("L")}Z`;
}

const description = (points) => `F1 by labeled sentences: ${points.slice(-6).map((point) => `${f1(point.f1)} at ${point.labeled}`).join(", ")}`;
