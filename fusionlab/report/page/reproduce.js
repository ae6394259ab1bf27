// What decides the figures beside the program, and the command that makes each table again.

function reproduceSection() {
  const side = study.targets[0].before;
  const pairs = (record) => Object.entries(record).map(([name, value]) => [name, String(value)]);
  return [
    el("h3", {}, "Commands"),
    table("The command behind each table", [
      text("table", (row) => row.what),
      text("command", (row) => row.command, (row) => el("code", { class: "command" }, row.command)),
    ], study.commands, { shown: 100 }),
    el("h3", {}, "Environment"),
    facts([
      ...pairs(study.environment.versions),
      ["commit", study.environment.commit || "not a checkout"],
      ...pairs(study.environment.flags),
      ["compiled by", side.compile.versions],
      ...study.targets.map((target) => [`options for ${target.name}`, pairs(target.before.compile.options).map((pair) => pair.join("=")).join(", ")]),
      ...study.targets.filter((target) => target.peaks).map((target) => [`spec of ${target.name}`,
        `${format(target.peaks.fp32_flops_per_s / 1e12, "ratio")} TFLOP/s FP32, ${format(target.peaks.memory_bytes_per_s / 1e9, "count")} GB/s`]),
    ]),
  ];
}
