"use strict";
// The data: positions become texts, three characters become differences.
const report = JSON.parse(document.getElementById("data").textContent);
const LEVELS = {
  device: "ran on that hardware",
  emulator: "ran on the vendor's emulator or a software device",
  lowered: "no such hardware at hand: lowered for it, every operator in its published table, right numbers on the CPU",
  failed: "wrong numbers, an error or a crash",
  unsupported: "declared unsupported, with a reason",
  untested: "not run",
};
const FORMATS = ["f32", "f16", "bf16", "int8", "int4", "int4-mixed", "int3", "int2"];
const isQuantized = name => name.startsWith("int");
const PROVEN = ["device", "emulator", "lowered"];
const text = at => report.texts[at];
const escaped = value => String(value).replace(/[&<>"]/g, sign => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign]);

for (const [at, model] of report.models.entries()) {
  model.at = at;
  model.category = text(model.category);
  model.architecture = text(model.architecture);
  model.count = model.cases.reduce((sum, [, cases]) => sum + cases.length, 0);
  model.found = `${model.name} ${model.title} ${model.category} ${model.architecture}`.toLowerCase();
  for (const [backend, cell] of model.cells.entries()) {
    cell.backend = report.backends[backend];
    cell.declared = report.declared[cell.declared];
    cell.precisions ??= [];
    for (const precision of cell.precisions) {
      precision.bad ??= [];
      precision.known = precision.bad.filter(([, known]) => known).length;
      precision.failures = precision.bad.length - precision.known;
      precision.ran = Math.ceil(precision.cases.length / 3) - (precision.cases.match(/ {3}/g) || []).length;
    }
  }
}

/** The difference of a case: a number, null where there is none to give, undefined where it was not run. */
function difference(precision, at) {
  const code = precision.cases.slice(3 * at, 3 * at + 3).trim();
  if (!code) return undefined;
  if (code === "ok" || code === "?") return null;
  if (code === "0") return 0;
  const letter = code.charCodeAt(2);
  return Number(code.slice(0, 2)) / 10 * 10 ** (letter >= 97 ? 97 - letter : letter - 64);
}
function worst(precision) {
  let most = null;
  for (let at = 0; 3 * at < precision.cases.length; at++) {
    const off = difference(precision, at);
    if (typeof off === "number" && (most === null || off > most)) most = off;
  }
  return most;
}
const small = value => value === null || value === undefined ? "–" : value === 0 ? "0" : value.toExponential(1);
const unit = (value, name) => value === null || value === undefined ? "–" : `${value} ${name}`;
const tally = values => values.reduce((counts, value) => ({ ...counts, [value]: (counts[value] || 0) + 1 }), {});
