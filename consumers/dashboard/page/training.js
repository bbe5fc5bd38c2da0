// The view of the training: figures, charts, other runs over this one, evaluations.
"use strict";

// evalColumns returns the columns of the evaluations.
function evalColumns(evals) {
  const complete = evals.filter((e) => e.scored > 0);
  const column = (name) => complete.map((e) => e[name]);
  return {
    eval_step: column("step"), eval_avg: column("avg"), eval_low: column("low"), eval_high: column("high"),
    eval_validity: column("validity"), eval_defect_finding: column("defect_finding"), eval_reach: column("reach"),
  };
}

// own is the series of the page's run. The server sends the rows that changed.
const own = { name: "", series: {} };

function takeSeries(s) {
  const { stride, from, ...columns } = s.series;
  for (const [name, rows] of Object.entries(columns)) {
    own.series[name] = from === 0 ? rows : [...(own.series[name] ?? Array(from).fill(null)).slice(0, from), ...rows];
  }
  Object.assign(own.series, evalColumns(s.evals));
  takeShadows(own.series);
  own.name = s.run;
  if (chartState.runs.length === 0) chartState.runs.push(own);
  byId("stride").textContent = stride > 1 ? `Each point of a chart is the mean of ${stride} steps.` : "";
}

function removeRun(name) {
  chartState.runs = chartState.runs.filter((r, i) => i === 0 || r.name !== name);
  showRuns();
}

function addRun(name, series, evals) {
  chartState.runs = chartState.runs.filter((r, i) => i === 0 || r.name !== name);
  chartState.runs.push({ name, series: { ...series, ...evalColumns(evals) } });
  showRuns();
}

// showRuns draws the runs that are laid over one another, and names them in the URL.
function showRuns() {
  const others = chartState.runs.slice(1);
  byId("overlaid").replaceChildren(...others.map((r) => el("button", {
    type: "button", class: "chip", "aria-label": `Remove run ${visible(r.name)}`, on: { click: () => { removeRun(r.name); } },
  }, r.name, " ×")));
  if (!saved) history.replaceState(null, "", "#/training" + (others.length ? "?with=" + others.map((r) => encodeURIComponent(r.name)).join(",") : ""));
  drawCharts(true);
}

async function overlay(name) {
  const status = byId("overlay_status");
  status.textContent = "reading " + visible(name) + " …";
  try {
    const other = await ask("run", { name });
    addRun(other.run, other.series, other.evals);
    status.textContent = "";
  } catch (error) {
    status.textContent = visible(error.message);
  }
}

// overlayReport takes a run from a report.html on this machine.
async function overlayReport(file) {
  const status = byId("overlay_status");
  try {
    const text = await file.text();
    const data = /<script type="application\/json" id="data">([^<]*)<\/script>/.exec(text);
    if (!data) throw new Error(`${file.name} is no report of codea1`);
    const { state } = JSON.parse(data[1]);
    addRun(state.run === own.name ? `${state.run} (${file.name})` : state.run, state.series, state.evals);
    status.textContent = "";
  } catch (error) {
    status.textContent = visible(error.message);
  }
}

async function makeTools() {
  const tools = byId("tools");
  const number = (id, label) => el("label", null, label, el("input", {
    id, type: "number", min: "0", step: "1", inputmode: "numeric",
    on: { change: () => zoom(byId("zoom_from").value === "" ? null : Number(byId("zoom_from").value), byId("zoom_to").value === "" ? null : Number(byId("zoom_to").value)) },
  }));
  const select = el("select", { id: "overlay", on: { change: (e) => { if (e.target.value) overlay(e.target.value); e.target.value = ""; } } }, el("option", { value: "" }, "another run …"));
  const file = el("input", { id: "overlay_file", type: "file", accept: ".html", on: { change: (e) => { for (const f of e.target.files) overlayReport(f); e.target.value = ""; } } });
  tools.append(
    el("label", null, "Smoothing", el("input", { id: "smooth", type: "range", min: "0", max: "0.98", step: "0.02", value: "0", on: { input: (e) => { chartState.smooth = Number(e.target.value); drawCharts(true); } } })),
    number("zoom_from", "Steps from"), number("zoom_to", "to"),
    el("button", { type: "button", on: { click: () => zoom(null, null) } }, "All steps"),
    el("label", { hidden: saved ? "" : null }, "Compare with", select),
    el("label", { class: "file" }, saved ? "Compare with a report.html" : "or a report.html", file),
    el("span", { id: "overlaid", class: "chips" }),
    el("span", { id: "overlay_status", class: "note", role: "status" }));
  makeCharts(byId("charts"));
  const { runs } = await ask("runs", {});
  select.append(...runs.map((name) => el("option", { value: name }, name)));
}

function showTraining(s) {
  setText("reward_code", fixed(s.latest.reward_code, 3));
  setText("reward_test", fixed(s.latest.reward_test, 3));
  setText("pass_new", percent(s.latest.pass_new));
  setText("pass_hist", percent(s.latest.pass_hist));
  setText("book_size", whole(s.book.size));
  for (const id of ["reward_test", "pass_new", "pass_hist", "book_size", "examples"]) byId(id).parentElement.hidden = s.without_test;
  setText("rewarded", whole(s.rewarded));
  setText("dropped", whole(s.dropped));
  setText("events_per_second", fixed(s.events_per_second, 1));
  drawCharts();
  const k = Math.max(0, ...s.evals.map((e) => e.answers));
  setText("avg", "avg@" + (k || "k"));
  fill("compared", s.compared.map((c) => [[c.name, c.detail ? "detail" : ""], n(c.before), n(c.after), n(c.change), c.spread]), "no evaluation is complete yet");
  fill("evals", s.evals.map((e) => [
    e.name, n(`${whole(e.scored)}/${whole(e.groups)}`), n(percent(e.avg)), n(percent(e.validity)), n(percent(e.defect_finding)),
    n(percent(e.reach)), n(percent(e.trivial_inputs)),
  ]), "no evaluation yet");
  fill("policies", s.policies.map((p) => [
    p.role, n(whole(p.version)), n(short(p.loss)), n(short(p.kl)), n(short(p.entropy)), n(percent(p.clip_fraction)), n(short(p.grad_norm)), n(short(p.lr)),
  ]), "no policy was updated yet");
  fill("examples", s.examples.map((e) => [n(whole(e.step)), groupLink(e.group), e.problem, [el("code", null, python(e.test)), "long"], [e.got, "long"], n(`${e.passed} of ${e.ran}`)]),
    "no answer has failed a new test yet");
}
