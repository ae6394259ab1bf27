// The launches that hold a program's distance from its floor, with what their code does.

function kernelsVerdict({ model_us, model_error, at_least, floor_us, half, count, rows }) {
  if (!known(model_us) || !known(floor_us)) return "No modelled time: the rates of this target are not known.";
  const error = known(model_error) ? ` ± ${Math.round(100 * model_error)} %` : "";
  const names = rows.slice(0, Math.min(half, 5)).map((row) => row.name).join(", ") + (half > 5 ? ", …" : "");
  return `${at_least ? "≥ " : ""}${format(model_us, "us")}${error} by the code of kernels, ${format(floor_us, "us")} at the floor; ` +
    `${format(half, "count")} of ${plural(count, "launch")} hold half of the distance (${names})`;
}

// What a kernel does in excess; of an over-fused one, the time of two kernels.
function whyWords({ in_excess, over_fused }) {
  const apart = over_fused && `over-fused: ${over_fused.op} ${over_fused.times.toFixed(1)} times, apart at least ${format(over_fused.apart_us, "us")}`;
  return [in_excess, apart].filter(Boolean).join("; ");
}

function kernelsTable(target, side, found) {
  const to = (row) => link.launch(target, side, row.name);
  const share = (row) => (found.distance_us ? row.distance_us / found.distance_us : null);
  return table(`Launches farthest from their floor on ${target.name}${sideWords(target, side)}`, columns([
    ["launch", "text", "name", (row) => launchLink(target, side, row.name)],
    ["op", "text", "op", (row) => row.op || UNKNOWN], ["source", "source"],
    ["in excess", "text", whyWords, (row) => el("div", { class: "why" }, whyWords(row) || UNKNOWN)],
    ["model time", "us", "model_us", (row) => number(row.model_us, "us", to(row), row.at_least)],
    ["floor", "us", "floor_us"], ["of the distance", "share", share],
    ["registers", "count"], ["spilled", "bytes", "spill_bytes"], ["reads per need", "ratio", "reads_per_needed"],
    ["sectors", "ratio"], ["occupancy", "share"],
  ], to), found.rows, { by: 6, shown: 12 });
}

function kernelsOf([target, side]) {
  const found = target[side].kernels;
  const heading = sides.length > 1 && el("h3", {}, `${target.name}, ${side}`);
  if (found.reason) return [heading, el("p", { class: "reason" }, found.reason)];
  return [heading, el("p", { class: "kernels-verdict" }, kernelsVerdict(found)), kernelsTable(target, side, found)];
}

const kernelsSection = () => [
  sides.map(kernelsOf),
  sides.some(([target, side]) => !target[side].kernels.reason) && el("p", { class: "note" }, "Time is by the code of kernels and the tiles of " +
    "products, fitted on an H100; other sections have XLA's estimates. The floor is operands once, results once and the FLOPs, at the target's " +
    "rates. Reads per need are bytes that warps ask for over those needed; sectors are those moved over the least. Library calls have no code here."),
];
