// Families and kernels against the ceilings of the target, before and after, each dot a link.

const PLOT = { width: 880, height: 470, left: 70, right: 20, top: 20, bottom: 48 };
const drawable = (point) => point.intensity_flop_per_byte > 0 && point.model_flops_per_s > 0;
const power = (decade) => `10${[...String(decade)].map((digit) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(digit)]).join("")}`;

const BYTES_COUNTED = "Bytes (model): the operands and results of a launch, a slice or gather at what it takes. The time is XLA's estimate where it made one. " +
  "A kernel above the roof takes a part only of what it computes from its operands, and so reads less of them than is counted.";

function rooflinePlot(target, side) {
  const { ceilings, families, kernels } = target[side].roofline;
  if (!ceilings) return el("p", {}, `${target.name} has no spec, so it has no ceilings to draw.`);
  const all = families.filter((point) => point.name !== "all");
  const [named, dots] = [all, kernels].map((points) => points.filter(drawable));
  const undrawn = all.filter((point) => !drawable(point)).map((point) => point.name);
  const above = dots.filter((point) => point.roof_share > 1.02); // 1 and rounding is on the roof
  const points = [...named, ...dots];
  const xs = [ceilings.ridge_flop_per_byte * 2, ...points.map((point) => point.intensity_flop_per_byte)].map(Math.log10);
  const ys = [ceilings.flops_per_s, ...points.map((point) => point.model_flops_per_s)].map(Math.log10);
  const [x0, x1] = [Math.max(-5, Math.floor(Math.min(...xs))), Math.ceil(Math.max(...xs))];
  const [y0, y1] = [Math.max(6, Math.floor(Math.min(...ys))), Math.ceil(Math.max(...ys))];
  const [right, bottom] = [PLOT.width - PLOT.right, PLOT.height - PLOT.bottom];
  const px = (value) => PLOT.left + ((Math.log10(value) - x0) / (x1 - x0)) * (right - PLOT.left);
  const py = (value) => bottom - ((Math.log10(value) - y0) / (y1 - y0)) * (bottom - PLOT.top);
  const decades = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
  const start = Math.max(10 ** x0, 10 ** y0 / ceilings.bytes_per_s);
  const roof = [[start, start * ceilings.bytes_per_s], [ceilings.ridge_flop_per_byte, ceilings.flops_per_s], [10 ** x1, ceilings.flops_per_s]];
  const radius = (point) => 18 * Math.sqrt(point.model_share || 0);
  const dot = (point, family, r, href, kind) => {
    const [intensity, time] = [format(point.intensity_flop_per_byte, "ratio"), format(point.model_us, "us")];
    return svg("a", { href, "aria-label": `${point.name}: ${intensity} FLOP per byte, ${time}` },
      svg("circle", { cx: px(point.intensity_flop_per_byte), cy: py(point.model_flops_per_s), r, class: kind, style: { color: familyColour(family) } }),
      svg("title", {}, `${point.name}: ${intensity} FLOP/byte, ${format(point.model_flops_per_s / 1e9, "ratio")} GFLOP/s, ${time}, ${point.bound}-bound`));
  };
  const words = (x, y, said, more) => svg("text", { x, y, "text-anchor": "middle", ...more }, said);
  const familyOf = new Map(launchesOf(target, side).map((row) => [row.name, row.family]));
  return el("figure", { class: "plot" },
    el("figcaption", {}, `${target.name}${sideWords(target, side)}: ${format(ceilings.flops_per_s / 1e12, "ratio")} TFLOP/s, ` +
      `${format(ceilings.bytes_per_s / 1e9, "count")} GB/s (${ceilings.source})` + (undrawn.length ? `; not drawn, without FLOPs or a time: ${undrawn.join(", ")}` : ""),
      el("p", { class: "note" }, BYTES_COUNTED, above.length > 0 && ` Here that is ${above.length} of ${plural(dots.length, "kernel")}: `,
        above.slice(0, 6).map((point, i) => [i ? ", " : "", launchLink(target, side, point.name)]), above.length > 6 && ", …")),
    svg("svg", { viewBox: `0 0 ${PLOT.width} ${PLOT.height}`, role: "group", "aria-label": `roofline of ${target.name}${sideWords(target, side)}` },
      decades(x0, x1).map((d) => [svg("line", { x1: px(10 ** d), x2: px(10 ** d), y1: PLOT.top, y2: bottom, class: "grid" }),
        words(px(10 ** d), bottom + 18, power(d))]),
      decades(y0, y1).map((d) => [svg("line", { x1: PLOT.left, x2: right, y1: py(10 ** d), y2: py(10 ** d), class: "grid" }),
        words(PLOT.left - 8, py(10 ** d) + 4, power(d - 9), { "text-anchor": "end" })]),
      words(PLOT.width / 2, PLOT.height - 8, "FLOP per byte (model)"),
      words(14, PLOT.height / 2, "GFLOP/s (modelled time)", { transform: `rotate(-90 14 ${PLOT.height / 2})` }),
      svg("polyline", { points: roof.map(([x, y]) => `${px(x)},${py(y)}`).join(" "), class: "roof" }),
      dots.map((point) => dot(point, familyOf.get(point.name), 3.5, link.launch(target, side, point.name), "kernel")),
      named.map((point) => dot(point, point.name, 5 + radius(point), link.launches(target, side, { family: point.name }), "family")),
      spread(named.map((point) => ({ point, y: py(point.model_flops_per_s) }))).map(({ point, y }) =>
        svg("text", { x: px(point.intensity_flop_per_byte) + 10 + radius(point), y: y + 4, class: "name" }, `${familyMark(point.name)} ${point.name}`))));
}

// Labels that would stand on top of each other are moved apart.
function spread(labels) {
  labels.sort((a, b) => a.y - b.y);
  labels.forEach((label, i) => i && (label.y = Math.max(label.y, labels[i - 1].y + 15)));
  return labels;
}

function rooflineTable(target, side) {
  const to = ({ name }) => link.launches(target, side, name === "all" ? {} : { family: name });
  return table(`Families on ${target.name}${sideWords(target, side)}`, columns([
    ["family", "text", "name", (point) => (point.name === "all" ? "all" : familyTag(point.name))],
    ["launches", "count", "dynamic_launches"], ["FLOPs of the launches", "flops", "flops"], ["bytes", "bytes"],
    ["FLOP/byte", "ratio", "intensity_flop_per_byte"], ["time (model)", "us", "model_us"],
    ["of the time", "share", "model_share"], ["of the roof", "share", "roof_share"], ["bound by", "text", "bound"],
  ], to), target[side].roofline.families);
}

const rooflineSection = () => sides.map(([target, side]) => [rooflinePlot(target, side), rooflineTable(target, side)]);
