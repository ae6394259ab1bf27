// What holds temporary memory: the buffers alive at its peak, and the lives of the largest over the program's schedule.

const LIVES = { width: 980, left: 250, right: 90, top: 14, curve: 110, gap: 34, row: 17, bottom: 34 };

// A buffer that a launch writes is a link to it.
function writerOf(target, side, buffer) {
  const row = launchesOf(target, side).find((one) => one.name === buffer.producer);
  return { href: row ? link.launch(target, side, row.name) : null, family: row ? row.family : "other" };
}

function livesPlot(target, side, found) {
  const steps = Math.max(1, found.steps);
  const [from, to] = [LIVES.left, LIVES.width - LIVES.right];
  const x = (step) => from + ((to - from) * Math.min(step, steps)) / steps;
  const most = Math.max(1, found.temp_bytes);
  const y = (size) => LIVES.top + LIVES.curve * (1 - size / most);
  const first = LIVES.top + LIVES.curve + LIVES.gap;
  const buffers = [...found.drawn].sort((a, b) => a.born_step - b.born_step || b.bytes - a.bytes);
  const [floor, height] = [first + buffers.length * LIVES.row, first + buffers.length * LIVES.row + LIVES.bottom];
  const curve = found.held.flatMap(([step, size], i) => [[x(step), y(i ? found.held[i - 1][1] : size)], [x(step), y(size)]]);
  const outline = [[x(0), y(0)], ...curve, [x(steps), y(found.held.at(-1)[1])], [x(steps), y(0)]];
  const words = (at, baseline, said, more) => svg("text", { x: at, y: baseline, ...more }, said);
  const end = { "text-anchor": "end" };
  const bar = (buffer, i) => {
    const { href, family } = writerOf(target, side, buffer);
    const top = first + i * LIVES.row;
    const place = [[buffer.scope, buffer.op].filter(Boolean).join("/"), buffer.source].filter(Boolean).join(", ");
    const said = `${buffer.title}: ${format(buffer.bytes, "bytes")}, launches ${aliveWords(buffer)}${place && `, ${place}`}`;
    const width = Math.max(2, x(buffer.died_step + 1) - x(buffer.born_step));
    return [words(from - 8, top + 12, middleCut(buffer.title, 34), end),
      svg(href ? "a" : "g", { href, "aria-label": said },
        svg("rect", { x: x(buffer.born_step), y: top + 2, width, height: LIVES.row - 4, class: `buffer${buffer.at_peak ? " at-peak" : ""}`, style: { color: familyColour(family) } }),
        svg("title", {}, said)),
      words(to + 8, top + 12, format(buffer.bytes, "bytes"))];
  };
  const peak = x(found.peak.step + 0.5);
  return el("figure", { class: "plot lives" },
    el("figcaption", {}, `${target.name}, ${side}: bytes held over XLA's schedule of ${plural(found.steps, "step")}, and the lives of ` +
      `the ${format(buffers.length, "count")} largest of ${plural(found.count, "buffer")}; solid bars are alive at the peak (dashed line)`),
    svg("svg", { viewBox: `0 0 ${LIVES.width} ${height}`, role: "group", "aria-label": `lives of buffers on ${target.name}, ${side}` },
      svg("line", { x1: from, x2: to, y1: y(most), y2: y(most), class: "limit" }),
      words(from - 8, y(most) + 6, "XLA's temp memory", end), words(to + 8, y(most) + 6, format(found.temp_bytes, "bytes")),
      svg("polygon", { points: outline.map((point) => point.join(",")).join(" "), class: "held" }),
      words(from - 8, y(0), "held", end),
      svg("line", { x1: peak, x2: peak, y1: LIVES.top, y2: floor, class: "peak" }),
      words(peak, LIVES.top + LIVES.curve + 18, `peak: launch ${format(found.peak.launch, "count")} of ${format(found.launches, "count")}`, { "text-anchor": "middle", class: "name" }),
      buffers.map(bar),
      words((from + to) / 2, height - 10, "program order", { "text-anchor": "middle" })));
}

// The end of a name tells results of one kernel apart.
const middleCut = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 10)}…${text.slice(-9)}`);

const aliveWords = (buffer) => `${format(buffer.born_launch, "count")} to ${format(buffer.died_launch, "count")}`;

function peakTable(target, side, { peak, temp_bytes }) {
  const to = (buffer) => writerOf(target, side, buffer).href;
  const all = columns([
    ["buffer", "text", "title", (one) => (to(one) ? code(to(one), one.title) : el("span", { class: "code" }, one.title))],
    ["size", "bytes", "bytes"], ["alive, in launches", "text", "born_launch", aliveWords],
    ["scope", "text", "scope", (one) => one.scope || UNKNOWN], ["op", "text", "op", (one) => one.op || UNKNOWN], ["source", "source"],
    ["shape", "text", "shape", (one) => el("span", { class: "code" }, one.shape)],
  ], to);
  const shown = peak.buffers.length;
  return [table(`The ${format(shown, "count")} largest of ${plural(peak.count, "buffer")} alive at the peak on ${target.name}, ${side}`, all, peak.buffers, { by: 1 }),
    facts([
      shown < peak.count && [`${format(peak.count - shown, "count")} smaller`, number(peak.held_bytes - sum(peak.buffers.map((one) => one.bytes)), "bytes")],
      ["held at the peak", number(peak.held_bytes, "bytes")], ["free at that step", number(peak.free_bytes, "bytes")],
      ["XLA's temp memory", number(temp_bytes, "bytes")],
    ])];
}

function buffersOf([target, side]) {
  const found = target[side].buffers;
  const heading = sides.length > 1 && el("h3", {}, `${target.name}, ${side}`);
  if (found.reason) return [heading, el("p", { class: "reason" }, found.reason)];
  return [heading, el("p", { class: "peak-verdict" }, found.verdict), found.temp_bytes > 0 && [livesPlot(target, side, found), peakTable(target, side, found)]];
}

const memorySection = () => [
  sides.map(buffersOf),
  sides.some(([target, side]) => !target[side].buffers.reason) && el("p", { class: "note" }, "Sizes and live ranges are XLA's. A buffer that a loop passes on in place is one, from its first writer " +
    "to its last reader. Temp memory is allocated once, for the whole program."),
];
