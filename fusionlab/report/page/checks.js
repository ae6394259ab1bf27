// Verdicts of the equivalence check, with histograms of how far the rewritten program is from the original.

const ulpWords = (bin, bins) => (bin === bins - 1 ? "not finite" : bin < 2 ? String(bin) : bin < 20 ? `${format(2 ** (bin - 1), "count")}+` : `2^${bin - 1}+`);

function histogram(title, bins) {
  if (!bins.length) return null;
  const most = Math.max(...bins.map(([, count]) => count));
  return el("table", { class: "histogram" }, el("caption", {}, title),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "distance"), el("th", { scope: "col" }, "elements"))),
    el("tbody", {}, bins.map(([label, count]) => {
      const bar = el("span", { class: "bar", "aria-hidden": "true" });
      bar.style.width = `${(100 * count) / most}%`;
      return el("tr", {}, el("th", { scope: "row" }, label), el("td", {}, number(count, "count"), bar));
    })));
}

function checkOf(target) {
  const found = target.equivalence;
  const key = keyOf(target, "after");
  const to = (output) => {
    const position = study.programs[key].returns[found.outputs.indexOf(output)];
    return position >= 0 ? link.op(key, position) : null;
  };
  const ulps = (output) => output.ulp_histogram.map((count, bin) => [ulpWords(bin, output.ulp_histogram.length), count]).filter(([, count]) => count);
  return [
    el("h3", {}, target.name),
    exactLine(found),
    verdictLine(target, false),
    found.worst && el("p", {}, `worst: ${found.worst}`),
    found.outputs.length > 0 && table(`Rewritten against original on ${target.name}`, [
      text("output", (output) => output.name),
      figure("off truth, float32", "small", (output) => output.max_abs_error, to),
      figure("the original is off", "small", (output) => output.original_abs_error, to),
      figure("tolerance", "small", (output) => output.tolerance, to),
      figure("off truth, float64", "small", (output) => output.max_abs_error_float64, to),
      figure("tolerance", "small", (output) => output.tolerance_float64, to),
      figure("most ULP", "count", (output) => output.max_ulp, to),
      figure("shift of the mean", "small", (output) => output.mean_shift, to),
      figure("its Monte-Carlo error", "small", (output) => output.standard_error, to),
    ], found.outputs),
    el("div", { class: "histograms" }, found.outputs.map((output) => [
      histogram(`${output.name}: elements by units in the last place from the original`, ulps(output)),
      histogram(`${output.name}: elements by absolute difference of at least`, output.abs_histogram.map(([decade, count]) => [`1e${decade}`, count])),
    ])),
    found.oracles.map((oracle) => el("p", {}, `oracle ${oracle.name}: ${oracle.agrees === null ? `not asked: ${oracle.reason}` : oracle.agrees ? "agrees" : "does not agree"}`)),
  ];
}

const checksSection = () => [
  el("p", { class: "note" }, "Truth is the original computed in float64. The tolerance in float32 follows from what the original itself loses there; the same " +
    "comparison in float64 leaves a wrong rewrite no rounding to hide in."),
  study.targets.map(checkOf),
];
