// Measured times, where records of `fusionlab bench` were given.

function measuredSection() {
  if (!study.measured.length) {
    return el("p", {}, "No record of this program was given. ", el("code", {}, study.measured_by), " measures it on the device that is there; ",
      el("code", {}, "fusionlab study --records FOLDER"), " shows the record here.");
  }
  return study.measured.map((record) => [
    el("h3", {}, `${record.workload.title} on ${record.device.name}, ${record.clock} time`),
    el("p", { class: "note" }, `${record.versions.jax}; commit ${record.commit || "unknown"}; ${record.started_utc}`),
    table("Variants", [
      text("variant", (one) => one.name),
      figure("median", "us", (one) => one.median_us.value),
      figure("95 % from", "us", (one) => one.median_us.low),
      figure("to", "us", (one) => one.median_us.high),
      figure(`${record.of} / it`, "ratio", (one) => (one.ratio ? one.ratio.value : null)),
      figure("launches", "count", (one) => one.dynamic_launches),
      text("check", (one) => one.verdict),
    ], record.variants),
    record.by_stage_family.map((variant) => el("details", {}, el("summary", {}, `${variant.name}: measured time by stage and family`),
      table(`${record.workload.title}, ${variant.name}`, [
        text("stage", (row) => row.stage),
        text("family", (row) => row.family, (row) => familyTag(row.family)),
        figure("measured", "us", (row) => row.measured_us),
      ], variant.rows, { by: 2 }))),
  ]);
}
