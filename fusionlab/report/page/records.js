// Measured times, where records of `fusionlab bench` were given; the environment, and the command behind each table.

function measuredSection() {
  if (!study.measured.length) {
    return el("p", {}, "No record of this program was given. ", el("code", {}, study.measured_by), " measures it on the device that is there; ",
      el("code", {}, "fusionlab study --records FOLDER"), " shows the record here.");
  }
  return study.measured.map((record) => [
    el("h3", {}, `${record.workload.title} on ${record.device.name}, ${record.clock} time`),
    el("p", { class: "note" }, `${record.versions.jax}; commit ${record.commit || "unknown"}; ${record.started_utc}`),
    table("Variants", columns([
      ["variant", "text", "name"],
      ["median", "us", (one) => one.median_us.value],
      ["95 % from", "us", (one) => one.median_us.low], ["to", "us", (one) => one.median_us.high],
      [`${record.of} / it`, "ratio", (one) => (one.ratio ? one.ratio.value : null)],
      ["launches", "count", "dynamic_launches"], ["check", "text", "verdict"],
    ]), record.variants),
    record.by_stage_family.map(({ name, rows }) => el("details", {}, el("summary", {}, `${name}: measured time by stage and family`),
      table(`${record.workload.title}, ${name}`, columns([["stage", "text"], ["family", "family"], ["measured", "us", "measured_us"]]), rows, { by: 2 }))),
  ]);
}

function reproduceSection() {
  const { environment, targets } = study;
  const pairs = (record) => Object.entries(record).map(([name, value]) => [name, String(value)]);
  return [
    el("h3", {}, "Commands"),
    table("The command behind each table", columns([
      ["table", "text", "what"],
      ["command", "text", "command", (row) => el("code", { class: "command" }, row.command)],
    ]), study.commands, { shown: 100 }),
    el("h3", {}, "Environment"),
    facts([
      ...pairs(environment.versions),
      ["commit", environment.commit || "not a checkout"],
      ...pairs(environment.flags),
      ["compiled by", targets[0].before.compile.versions],
      ...targets.map((target) => [`options for ${target.name}`, pairs(target.before.compile.options).map((pair) => pair.join("=")).join(", ")]),
      ...targets.map(({ name, peaks }) => peaks && [`spec of ${name}`,
        `${format(peaks.fp32_flops_per_s / 1e12, "ratio")} TFLOP/s FP32, ${format(peaks.memory_bytes_per_s / 1e9, "count")} GB/s`]),
    ]),
  ];
}
