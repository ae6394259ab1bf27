// Families and kernels against the ceilings of the target, before and after, each dot a link.

const PLOT = { width: 880, height: 470, left: 70, right: 20, top: 20, bottom: 48 };
const drawable = (point) => point.intensity_flop_per_byte > 0 && point.model_flops_per_s > 0;
const power = (decade) => `10${[...String(decade)].map((digit) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(digit)]).join("")}`;

const BYTES_COUNTED = "Bytes (model): the operands and results of a launch, a slice or gather at what it takes. The time is XLA's estimate where it made one. " +
  "A kernel above the roof takes a part only of what it computes from its operands, and so reads less of them than is counted.";

function rooflinePlot(target, side) {
  const { ceilings, families, kernels } = target[side].roofline;
  if (!ceilings) return el("p", {}, `${target.name} has no spec, so it has no ceilings to draw.`);
  const named = families.filter((point) => point.name !== "all" && drawable(point));
  const undrawn = families.filter((point) => point.name !== "all" && !drawable(point)).map((point) => point.name);
  const dots = kernels.filter(drawable);
  const all = [...named, ...dots];
  const above = dots.filter((point) => point.roof_share > 1.02); // 1 and rounding is on the roof
  const log = (value) => Math.log10(value);
  const xs = [ceilings.ridge_flop_per_byte * 2, ...all.map((point) => point.intensity_flop_per_byte)];
  const ys = [ceilings.flops_per_s, ...all.map((point) => point.model_flops_per_s)];
  const x0 = Math.max(-5, Math.floor(log(Math.min(...xs)))), x1 = Math.ceil(log(Math.max(...xs)));
  const y0 = Math.max(6, Math.floor(log(Math.min(...ys)))), y1 = Math.ceil(log(Math.max(...ys)));
  const px = (value) => PLOT.left + ((log(value) - x0) / (x1 - x0)) * (PLOT.width - PLOT.left - PLOT.right);
  const py = (value) => PLOT.height - PLOT.bottom - ((log(value) - y0) / (y1 - y0)) * (PLOT.height - PLOT.top - PLOT.bottom);
  const decades = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
  const start = Math.max(10 ** x0, 10 ** y0 / ceilings.bytes_per_s);
  const roof = [[start, start * ceilings.bytes_per_s], [ceilings.ridge_flop_per_byte, ceilings.flops_per_s], [10 ** x1, ceilings.flops_per_s]];
  const dot = (point, family, radius, href, cls) => {
    const disc = svg("circle", { cx: px(point.intensity_flop_per_byte), cy: py(point.model_flops_per_s), r: radius, class: cls });
    disc.style.color = familyColour(family);
    return svg("a", { href, "aria-label": `${point.name}: ${format(point.intensity_flop_per_byte, "intensity")} FLOP per byte, ${format(point.model_us, "us")}` },
      disc,
      svg("title", {}, `${point.name}: ${format(point.intensity_flop_per_byte, "intensity")} FLOP/byte, ` +
        `${format(point.model_flops_per_s / 1e9, "intensity")} GFLOP/s, ${format(point.model_us, "us")}, ${point.bound}-bound`));
  };
  const familyOf = new Map(launchesOf(target, side).map((row) => [row.name, row.family]));
  return el("figure", { class: "plot" },
    el("figcaption", {}, `${target.name}, ${side}: ${format(ceilings.flops_per_s / 1e12, "ratio")} TFLOP/s, ` +
      `${format(ceilings.bytes_per_s / 1e9, "count")} GB/s (${ceilings.source})` + (undrawn.length ? `; not drawn, without FLOPs or a time: ${undrawn.join(", ")}` : ""),
      el("p", { class: "note" }, BYTES_COUNTED, above.length > 0 && ` Here that is ${above.length} of ${plural(dots.length, "kernel")}: `,
        above.slice(0, 6).map((point, i) => [i ? ", " : "", launchLink(target, side, point.name)]), above.length > 6 && ", …")),
    svg("svg", { viewBox: `0 0 ${PLOT.width} ${PLOT.height}`, role: "group", "aria-label": `roofline of ${target.name}, ${side}` },
      decades(x0, x1).map((d) => [svg("line", { x1: px(10 ** d), x2: px(10 ** d), y1: PLOT.top, y2: PLOT.height - PLOT.bottom, class: "grid" }),
        svg("text", { x: px(10 ** d), y: PLOT.height - PLOT.bottom + 18, "text-anchor": "middle" }, power(d))]),
      decades(y0, y1).map((d) => [svg("line", { x1: PLOT.left, x2: PLOT.width - PLOT.right, y1: py(10 ** d), y2: py(10 ** d), class: "grid" }),
        svg("text", { x: PLOT.left - 8, y: py(10 ** d) + 4, "text-anchor": "end" }, power(d - 9))]),
      svg("text", { x: PLOT.width / 2, y: PLOT.height - 8, "text-anchor": "middle" }, "FLOP per byte (model)"),
      svg("text", { x: 14, y: PLOT.height / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${PLOT.height / 2})` }, "GFLOP/s (modelled time)"),
      svg("polyline", { points: roof.map(([x, y]) => `${px(x)},${py(y)}`).join(" "), class: "roof" }),
      dots.map((point) => dot(point, familyOf.get(point.name), 3.5, link.launch(target, side, point.name), "kernel")),
      named.map((point) => dot(point, point.name, 5 + 18 * Math.sqrt(point.model_share || 0), link.launches(target, side, { family: point.name }), "family")),
      spread(named.map((point) => ({ point, y: py(point.model_flops_per_s) }))).map(({ point, y }) =>
        svg("text", { x: px(point.intensity_flop_per_byte) + 10 + 18 * Math.sqrt(point.model_share || 0), y: y + 4, class: "name" },
          `${familyMark(point.name)} ${point.name}`))));
}

// Labels that would stand on top of each other are moved apart.
function spread(labels) {
  labels.sort((a, b) => a.y - b.y);
  labels.forEach((label, i) => i && (label.y = Math.max(label.y, labels[i - 1].y + 15)));
  return labels;
}

function rooflineTable(target, side) {
  const to = (point) => (point.name === "all" ? link.launches(target, side, {}) : link.launches(target, side, { family: point.name }));
  return table(`Families on ${target.name}, ${side}`, [
    text("family", (point) => point.name, (point) => (point.name === "all" ? "all" : familyTag(point.name))),
    figure("launches", "count", (point) => point.dynamic_launches, to),
    figure("FLOPs of the launches", "flops", (point) => point.flops, to),
    figure("bytes", "bytes", (point) => point.bytes, to),
    figure("FLOP/byte", "intensity", (point) => point.intensity_flop_per_byte, to),
    figure("time (model)", "us", (point) => point.model_us, to),
    figure("of the time", "share", (point) => point.model_share, to),
    figure("of the roof", "share", (point) => point.roof_share, to),
    text("bound by", (point) => point.bound),
  ], target[side].roofline.families);
}

function rooflineSection() {
  return study.targets.flatMap((target) => sideNames(target).map((side) => [rooflinePlot(target, side), rooflineTable(target, side)]));
}
