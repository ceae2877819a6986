// The page: its state, the details of a cell, and what the keys and buttons do.
const VIEWS = { Models: matrix, Quantized: quantized, Kinds: kinds, Failures: failures, Gaps: gaps, "Not yet": notYet };
const state = { tab: "Models", text: "", category: "", architecture: "", level: "", precision: "", backends: new Set(report.backends) };
const get = id => document.getElementById(id);

function draw() {
  get("view").innerHTML = VIEWS[state.tab]();
  const counts = { Models: models().length, Quantized: quantizedModels().length, Failures: allFailures().length, Gaps: shownGaps().length };
  get("tabs").innerHTML = Object.keys(VIEWS).map(name =>
    `<button type="button" role="tab" aria-controls="view" aria-selected="${name === state.tab}" tabindex="${name === state.tab ? 0 : -1}">${name}${name in counts ? ` <small>${counts[name]}</small>` : ""}</button>`).join("");
  const first = get("view").querySelector(".matrix tbody button");
  if (first) first.tabIndex = 0;
  get("legend").hidden = !["Models", "Quantized", "Kinds"].includes(state.tab);
  history.replaceState(null, "", "#" + encodeURIComponent(state.tab));
}

/** Declared, observed, numbers and cases of a model on a backend; of all backends where none is named. */
function details(model, backend) {
  const buttons = [["all", undefined], ...report.backends.map((name, at) => [name, at])].map(([name, at]) =>
    `<button type="button" data-at="${model.at}${at === undefined ? "" : "," + at}" aria-current="${at === backend}">${name}</button>`);
  get("details").innerHTML = `<button type="button" class="close">Close</button><h2 id="details-title">${escaped(model.title)}</h2>`
    + `<div class="soft">${escaped(model.name)} · ${escaped(model.category)} · ${escaped(model.architecture)} · ${model.count} cases</div>`
    + `<div class="switch">${buttons.join("")}</div>` + (backend === undefined ? everywhere(model) : onBackend(model, model.cells[backend]));
  if (!get("details").open) get("details").showModal();
  history.replaceState(null, "", `#${encodeURIComponent(model.name)}${backend === undefined ? "" : "/" + report.backends[backend]}`);
  get("details").scrollTop = 0;
}

function everywhere(model) {
  const rows = model.cells.map(cell => {
    const [load, first, memory] = cell.numbers || [];
    const ran = cell.precisions.filter(precision => precision.ran);
    const nodes = Object.values(cell.nodes || {}).join(" + ");
    return `<tr><th scope="row">${cell.backend}</th><td>${segments(cell)}</td><td class="number">${ran.map(precision => small(worst(precision))).join(" ") || "–"}</td>`
      + `<td class="number">${nodes || "–"}</td><td class="number">${unit(load, "ms")}</td><td class="number">${unit(first, "ms")}</td><td class="number">${unit(memory, "MB")}</td><td>${cell.declared.support}</td></tr>`;
  });
  const columns = [column("backend"), column("evidence"), ...["largest difference", "nodes", "load", "first run", "memory"].map(name => column(name, "number")), column("declared")];
  return table("", columns, `<tbody>${rows.join("")}</tbody>`);
}

function onBackend(model, cell) {
  const pair = (name, value) => value ? `<dt>${name}</dt><dd>${escaped(value)}</dd>` : "";
  const { support, performance, memory, reason, notes } = cell.declared;
  const [load, first, megabytes] = cell.numbers || [];
  const nodes = Object.entries(cell.nodes || {}).map(([device, count]) => `${count} on ${device}`).join(", ");
  const facts = `<p><i class="seg ${cell.is}">${cell.is === "untested" ? "not run" : cell.is}</i> ${LEVELS[cell.is]}</p><dl>`
    + pair("declared", [support, performance && `performance ${performance}`, memory && `memory ${memory}`].filter(Boolean).join(", "))
    + pair("why", reason) + pair("notes", notes)
    + pair("precisions", cell.precisions.map(one => `${one.name}: ${one.is === "untested" ? "not run" : `${one.is}, ${one.ran - one.bad.length} of ${one.ran} cases${one.near ? `, off the reference by ${one.near}` : ""}`}`).join("; "))
    + pair("declared by precision", Object.entries(cell.declared.precision || {}).map(([name, word]) => `${name}: ${word}`).join("; "))
    + pair("nodes", nodes)
    + (cell.numbers ? pair("medians", `load ${unit(load, "ms")}, first run ${unit(first, "ms")}`) + pair("memory", `${unit(megabytes, "MB")} private, at most`) : "")
    + pair("reasons", (cell.why || []).map(text).join("; ")) + pair("machines", (cell.machines || []).map(text).join("; ")) + "</dl>";
  const ran = cell.precisions.filter(precision => precision.ran || precision.bad.length);
  if (!ran.length) return facts;
  let at = -1;
  const body = model.cases.map(([name, cases]) => {
    const rows = cases.map(one => [one, ++at]).filter(([, at]) => ran.some(precision => tried(precision, at)));
    return rows.length ? `<tr class="class-row"><th colspan="${ran.length + 1}" scope="rowgroup">${escaped(name || "no class")}</th></tr>` + rows.map(([one, at]) =>
      `<tr><th scope="row">${escaped(one)}</th>${ran.map(precision => outcome(precision, at)).join("")}</tr>`).join("") : "";
  });
  return `${facts}<h3>Largest relative difference of each case</h3>` + table("", [column("case"), ...ran.map(precision => column(precision.name))], `<tbody>${body.join("")}</tbody>`);
}

const tried = (precision, at) => difference(precision, at) !== undefined || precision.bad.some(([own]) => own === at);
function outcome(precision, at) {
  const bad = precision.bad.find(([own]) => own === at);
  if (bad) return `<td class="why ${bad[1] ? "known" : "bad"}">${bad[1] ? "known failure" : "failed"}: ${escaped(text(bad[2]))}</td>`;
  const off = difference(precision, at);
  return `<td class="plain">${off === undefined ? '<span class="soft">not run</span>' : off === null ? "as the reference" : small(off)}</td>`;
}

/** Arrow keys move among the cells, which are one stop of the tab key. */
function move(event) {
  const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
  const from = event.target.closest(".matrix tbody button");
  if (!step || !from) return;
  const rows = [...get("view").querySelectorAll(".matrix tbody tr:not(.group)")].map(row => row.querySelectorAll("button"));
  const row = rows.findIndex(buttons => [...buttons].includes(from));
  const to = rows[row + step[0]]?.[[...rows[row]].indexOf(from) + step[1]];
  if (!to) return;
  event.preventDefault();
  from.tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
  to.scrollIntoView({ block: "nearest" });
}

function open(event) {
  const button = event.target.closest("button[data-at]");
  if (!button) return;
  const [model, backend] = button.dataset.at.split(",").map(Number);
  details(report.models[model], backend);
}

function start() {
  const distinct = key => [...new Set(report.models.map(model => model[key]))].filter(Boolean).sort();
  const select = (key, label, values) => `<select data-key="${key}" aria-label="${label}"><option value="">${label}</option>${values.map(value => `<option>${escaped(value)}</option>`).join("")}</select>`;
  get("filters").innerHTML = `<input type="search" placeholder="filter by name" aria-label="filter by name" data-key="text">`
    + select("category", "every category", distinct("category")) + select("architecture", "every architecture type", distinct("architecture"))
    + select("level", "any evidence", [...Object.keys(LEVELS), "known failures"])
    + select("precision", "f32, f16, bf16", FORMATS)
    + `<fieldset aria-label="Backends">${report.backends.map(name => `<button type="button" aria-pressed="true" data-backend="${name}">${name}</button>`).join("")}</fieldset>`;
  let waiting;
  get("filters").oninput = ({ target }) => {
    if (!target.dataset.key) return;
    state[target.dataset.key] = target.value;
    clearTimeout(waiting);
    waiting = setTimeout(draw, 80);
  };
  get("filters").onclick = ({ target }) => {
    const name = target.dataset.backend;
    if (!name) return;
    if (!state.backends.delete(name)) state.backends.add(name);
    target.setAttribute("aria-pressed", String(state.backends.has(name)));
    draw();
  };
  get("legend").innerHTML = Object.entries(LEVELS).slice(0, 4).map(([name, meaning]) => `<li title="${meaning}"><i class="seg ${name}">${name}</i>${name === "lowered" ? "lowered for it, run on the CPU" : meaning}</li>`).join("")
    + `<li><i class="seg device">f16<em>2</em></i>2 known failures</li>`;
  const cells = report.models.flatMap(model => model.cells);
  get("sum").innerHTML = `<b>${report.models.length}</b> models on <b>${report.backends.length}</b> backends: `
    + Object.keys(LEVELS).map(name => `<b>${cells.filter(cell => cell.is === name).length}</b> ${name === "untested" ? "not run" : name}`).join(" · ");
  get("tabs").onclick = ({ target }) => { const name = target.closest("button")?.firstChild.textContent.trim(); if (name) { state.tab = name; draw(); } };
  get("tabs").onkeydown = event => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key], names = Object.keys(VIEWS);
    if (!step) return;
    state.tab = names[(names.indexOf(state.tab) + step + names.length) % names.length];
    draw();
    get("tabs").querySelector("[aria-selected=true]").focus();
  };
  get("view").onclick = open;
  get("view").onkeydown = move;
  get("details").onclick = event => { if (event.target === get("details") || event.target.closest(".close")) get("details").close(); else open(event); };
  get("theme").onclick = () => {
    const next = { auto: "light", light: "dark", dark: "auto" }[document.documentElement.dataset.theme || "auto"];
    document.documentElement.dataset.theme = next;
    get("theme").textContent = `theme: ${next}`;
  };
  get("details").onclose = () => history.replaceState(null, "", "#" + encodeURIComponent(state.tab));
  const [asked, backend] = location.hash.slice(1).split("/").map(decodeURIComponent);
  if (asked in VIEWS) state.tab = asked;
  draw();
  const model = report.models.find(model => model.name === asked);
  if (model) details(model, report.backends.includes(backend) ? report.backends.indexOf(backend) : undefined);
}
start();
