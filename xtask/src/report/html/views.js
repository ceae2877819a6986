// The views: each gives the HTML of one tab, of the models that the filters leave.
const shownBackends = () => report.backends.map((name, at) => ({ name, at })).filter(({ name }) => state.backends.has(name));
const matches = model => model.found.includes(state.text.toLowerCase())
  && (!state.category || model.category === state.category)
  && (!state.architecture || model.architecture === state.architecture)
  && (!state.level || shownBackends().some(({ at }) => model.cells[at].is === state.level
    || model.cells[at].precisions.some(precision => precision.is === state.level && precision.is !== "untested")
    || state.level === "known failures" && model.cells[at].precisions.some(precision => precision.known)));
const models = () => report.models.filter(matches);
const table = (kind, columns, body) => `<div class="wrap"><table class="${kind}"><thead><tr>${columns.join("")}</tr></thead>${body}</table></div>`;
const column = (name, kind = "") => `<th scope="col" class="${kind}">${name}</th>`;
const nothing = said => `<div class="wrap empty">${said}</div>`;

/** A stacked bar and how many of how many are proven. */
function share(counts) {
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0);
  const proven = PROVEN.reduce((sum, level) => sum + (counts[level] || 0), 0);
  const said = Object.keys(LEVELS).filter(level => counts[level]).map(level => `${counts[level]} ${level === "untested" ? "not run" : level}`).join(", ");
  const parts = Object.keys(LEVELS).filter(level => counts[level]).map(level => `<i class="${level}" style="flex:${counts[level]}"></i>`).join("");
  return `<span class="share" title="${said}"><span class="bar" role="img" aria-label="${said}">${parts}</span>${proven}/${all}</span>`;
}

/** One number format: its evidence as colour and sign, and how many cases fail. */
function segment(precision) {
  const count = precision.failures || precision.known;
  return `<i class="seg ${precision.is}">${precision.name}${count ? `<em>${count}</em>` : ""}</i>`;
}
function said(model, cell) {
  const formats = cell.precisions.map(one => `${one.name} ${one.is === "untested" ? "not run" : one.is}`
    + (one.near ? ` (${one.near})` : "") + (cell.declared.precision?.[one.name] ? `, declared ${cell.declared.precision[one.name]}` : "")
    + (one.failures ? `, ${one.failures} failures` : "") + (one.known ? `, ${one.known} known failures` : ""));
  return `${model.name} on ${cell.backend}: ${[cell.is === "untested" ? "not run" : cell.is, ...formats].join("; ")}`;
}
function segments(cell) {
  const asked = precision => state.precision ? precision.name === state.precision : !isQuantized(precision.name);
  const ran = cell.precisions.filter(precision => asked(precision) && !["untested", "unsupported"].includes(precision.is));
  if (!ran.length && state.precision) return `<i class="seg untested">–</i>`;
  if (ran.length) return ran.map(segment).join("");
  return `<i class="seg ${cell.is}">${cell.is === "untested" ? "–" : cell.is}</i>`;
}

function matrix() {
  const shown = models(), backends = shownBackends();
  if (!shown.length) return nothing("The filters leave no model.");
  const counts = (list, at) => tally(list.map(model => model.cells[at].is));
  const columns = [`<th scope="col" class="name" style="width:228px">model<small>${shown.length}</small></th>`, `<th scope="col" class="count" style="width:62px">cases</th>`,
    ...backends.map(({ name, at }) => {
      const proven = shown.filter(model => PROVEN.includes(model.cells[at].is)).length;
      return `<th scope="col">${name}<small>${proven}/${shown.length}</small></th>`;
    })];
  const groups = Map.groupBy ? Map.groupBy(shown, model => model.category) : shown.reduce((map, model) => map.set(model.category, [...map.get(model.category) || [], model]), new Map());
  const titles = Object.fromEntries(report.categories.map(group => [group.name, group.title]));
  const body = [...groups].map(([category, list]) => `<tbody><tr class="group"><th scope="rowgroup" class="name">${escaped(titles[category] || category || "no spec")}</th><td class="count">${list.length}</td>`
    + backends.map(({ at }) => `<td>${share(counts(list, at))}</td>`).join("") + "</tr>"
    + list.map(model => `<tr><th scope="row" class="name"><button type="button" data-at="${model.at}" tabindex="-1" title="${escaped(model.title)}, ${escaped(model.architecture)}">${escaped(model.name)}</button></th><td class="count">${model.count || ""}</td>`
      + backends.map(({ at }) => {
        const label = escaped(said(model, model.cells[at]));
        return `<td><button type="button" class="cell" data-at="${model.at},${at}" tabindex="-1" title="${label}" aria-label="${label}">${segments(model.cells[at])}</button></td>`;
      }).join("") + "</tr>").join("") + "</tbody>");
  return table("matrix", columns, body.join(""));
}

/** Formats of quantized weights: evidence by backend, the relative error in place of the name where one is chosen. */
const quantizedModels = () => models().filter(model => model.cells.some(cell => cell.precisions.some(precision => isQuantized(precision.name))));
const SHORT = { int8: "8", int4: "4", "int4-mixed": "4m", int3: "3", int2: "2" };
function quantized() {
  const shown = quantizedModels(), backends = shownBackends();
  if (!shown.length) return nothing("No model that the filters leave was run with quantized weights.");
  const wanted = Object.keys(SHORT).filter(name => !isQuantized(state.precision) || name === state.precision);
  const columns = [`<th scope="col" class="name" style="width:228px">model<small>${shown.length}</small></th>`, ...backends.map(({ name }) => column(name))];
  const cell = own => {
    const ran = wanted.map(name => own.precisions.find(precision => precision.name === name)).filter(precision => precision && precision.is !== "untested");
    return ran.map(precision => {
      const near = precision.near ? precision.near.split(",")[0] : "";
      return segment({ ...precision, name: wanted.length === 1 && near ? near : SHORT[precision.name] });
    }).join("") || `<i class="seg untested">–</i>`;
  };
  const rows = shown.map(model => `<tr><th scope="row" class="name"><button type="button" data-at="${model.at}" tabindex="-1" title="${escaped(model.title)}">${escaped(model.name)}</button></th>`
    + backends.map(({ at }) => {
      const label = escaped(said(model, model.cells[at]));
      return `<td><button type="button" class="cell" data-at="${model.at},${at}" tabindex="-1" title="${label}" aria-label="${label}">${cell(model.cells[at])}</button></td>`;
    }).join("") + "</tr>");
  return table("matrix", columns, `<tbody>${rows.join("")}</tbody>`)
    + `<p class="soft">Weights of 8, 4, 4 mixed, 3 and 2 bits. Point at a cell for how near the reference its outputs were (relative error, Kullback-Leibler divergence and equal first choices of logits), and for what is declared; choose a precision to see the errors.</p>`;
}

function kinds() {
  const backends = shownBackends();
  const rows = list => list.filter(group => group.models && `${group.name} ${group.title}`.toLowerCase().includes(state.text.toLowerCase())).map(group =>
    `<tr><th scope="row" class="name" title="${escaped(group.name)}">${escaped(group.title)}</th><td class="count">${group.models}</td>`
    + backends.map(({ at }) => `<td title="declared: ${escaped(group.cells[at].declared || "nothing")}">${share(group.cells[at].observed)}</td>`).join("") + "</tr>").join("");
  const columns = first => [`<th scope="col" class="name" style="width:228px">${first}</th>`, `<th scope="col" class="count" style="width:62px">models</th>`, ...backends.map(({ name }) => column(name))];
  return table("matrix", columns("architecture type"), `<tbody>${rows(report.architectures)}</tbody>`)
    + table("matrix", columns("category"), `<tbody>${rows(report.categories)}</tbody>`);
}

function notYet() {
  const kept = report.covered.filter(row => !state.category || row.category === state.category);
  const missing = row => row.reasons.reduce((sum, one) => sum + one.names.length, 0);
  const counts = kept.map(row => `<tr><th scope="row">${escaped(row.category)}</th>${[row.reference, row.models, row.proven, row.failing, row.not_run, missing(row)]
    .map(count => `<td class="number">${count}</td>`).join("")}</tr>`);
  const found = one => `${one.names.join(" ")} ${one.titles.join(" ")} ${one.reason}`.toLowerCase().includes(state.text.toLowerCase());
  const rows = kept.flatMap(row => row.reasons.filter(found).map(one => `<tr><th scope="row">${escaped(row.category)}</th>`
    + `<td class="why">${escaped((one.titles.length ? one.titles : one.names).join(", "))}</td><td class="why">${escaped(one.reason)}</td></tr>`));
  return table("narrow", ["category", "the reference's", "models here", "proven", "failing", "not run", "not yet"].map((name, at) => column(name, at ? "number" : "")), `<tbody>${counts.join("")}</tbody>`)
    + table("", [column("category"), '<th scope="col" style="width:45%">architectures</th>', column("reason")], `<tbody>${rows.join("")}</tbody>`)
    + table("", [column("not the reference's"), '<th scope="col" style="width:45%">published implementation</th>', column("reason")], `<tbody>${elsewhere()}</tbody>`);
}

function elsewhere() {
  const found = report.elsewhere.filter(one => `${one.title} ${one.reason}`.toLowerCase().includes(state.text.toLowerCase()));
  return found.map(one => `<tr><th scope="row">${escaped(one.title)}</th><td class="why">${escaped(one.implementation || "none")}</td><td class="why">${escaped(one.reason)}</td></tr>`).join("");
}

function allFailures() {
  return models().flatMap(model => model.cells.filter(cell => state.backends.has(cell.backend)).flatMap(cell => {
    const names = model.cases.flatMap(([, cases]) => cases);
    return cell.precisions.flatMap(precision => precision.bad.map(([at, known, why]) => ({ model, cell, precision, name: names[at], known, why: text(why) })));
  }));
}
function failures() {
  const rows = allFailures().sort((a, b) => a.known - b.known).map(({ model, cell, precision, name, known, why }) =>
    `<tr><th scope="row">${escaped(model.name)}</th><td>${cell.backend}</td><td>${precision.name}</td><td>${escaped(name)}</td>`
    + `<td><i class="seg ${known ? "lowered" : "failed"}" style="--s:''">${known ? "known" : "failed"}</i></td><td class="why">${escaped(why)}</td></tr>`);
  return rows.length ? table("", ["model", "backend", "precision", "case", "outcome", "reason"].map(name => column(name)), `<tbody>${rows.join("")}</tbody>`) : nothing("No failure was observed.");
}

const shownGaps = () => {
  const kept = new Set(models().map(model => model.at));
  return report.gaps.filter(([model, backend]) => kept.has(model) && state.backends.has(report.backends[backend]));
};
function gaps() {
  const rows = shownGaps().map(([model, backend, what]) => `<tr><th scope="row">${escaped(report.models[model].name)}</th><td>${report.backends[backend]}</td><td class="why">${escaped(text(what))}</td></tr>`);
  return rows.length ? table("", ["model", "backend", "declared, but"].map(name => column(name)), `<tbody>${rows.join("")}</tbody>`) : nothing("Everything declared was observed.");
}
