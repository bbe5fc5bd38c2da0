// The page shows the newest snapshot of the state, which server-sent events
// deliver. charts.js draws the charts.
"use strict";

const byId = (id) => document.getElementById(id);
const setText = (id, text) => { byId(id).textContent = text; };

// Numbers. null is a number that is not known yet.
const fixed = (x, digits) => (x === null ? none : x.toFixed(digits));
const percent = (x) => (x === null ? none : (100 * x).toFixed(1) + "%");
const whole = (n) => n.toLocaleString("en");
const short = (x) => {
  if (x === null) return none;
  if (x !== 0 && Math.abs(x) < 0.001) return x.toExponential(1);
  return Number(x.toPrecision(3)).toString();
};
const clock = (iso) => new Date(iso).toLocaleTimeString("en-GB");

function duration(seconds) {
  const s = Math.round(seconds);
  if (s < 60) return s + "s";
  const pad = (n) => String(n).padStart(2, "0");
  if (s < 3600) return Math.floor(s / 60) + "m" + pad(s % 60) + "s";
  return Math.floor(s / 3600) + "h" + pad(Math.floor((s % 3600) / 60)) + "m";
}

// Tables. A row is a list of cells; a cell is a text or [text, class].
function fill(id, rows, textIfEmpty) {
  const table = byId(id);
  const body = document.createElement("tbody");
  if (rows.length === 0) {
    const cell = body.insertRow().insertCell();
    cell.colSpan = table.tHead.rows[0].cells.length;
    cell.className = "none";
    cell.textContent = textIfEmpty;
  }
  for (const row of rows) {
    const tr = body.insertRow();
    for (const cell of row) {
      const td = tr.insertCell();
      const [text, name] = Array.isArray(cell) ? cell : [cell, ""];
      td.textContent = text;
      td.className = name;
    }
  }
  table.replaceChild(body, table.tBodies[0]);
}

const n = (text) => [text, "n"];

function progressText(s) {
  switch (s.phase) {
    case "evaluating": return `evaluating ${s.evals.at(-1).name}: ${whole(s.done)} of ${whole(s.total)} groups`;
    case "training": return `step ${whole(s.step)} of ${whole(s.steps)}`;
    case "finished": return `${s.reason} after ${whole(s.step)} of ${whole(s.steps)} steps`;
  }
  return "starting";
}

let updates = 0;

function show(s) {
  setText("run", s.run || none);
  document.title = s.run ? `${progressText(s)} – ${s.run}` : "codea1";
  setText("progress_text", progressText(s));
  setText("left", s.seconds_left === null || s.phase === "finished" ? "" : duration(s.seconds_left) + " left");
  const progress = byId("progress");
  progress.max = s.total || 1;
  progress.value = s.phase === "finished" ? progress.max : s.done;

  setText("reward_code", fixed(s.latest.reward_code, 3));
  setText("reward_test", fixed(s.latest.reward_test, 3));
  setText("pass_new", percent(s.latest.pass_new));
  setText("pass_hist", percent(s.latest.pass_hist));
  setText("book_size", whole(s.book.size));
  setText("rewarded", whole(s.rewarded));
  setText("dropped", whole(s.dropped));
  setText("events_per_second", fixed(s.events_per_second, 1));

  drawCharts(s.series);

  const k = Math.max(0, ...s.evals.map((e) => e.answers));
  setText("avg", "avg@" + (k || "k"));
  fill("evals", s.evals.map((e) => [
    e.name, n(`${whole(e.scored)}/${whole(e.groups)}`), n(percent(e.avg)), n(percent(e.validity)), n(percent(e.defect_finding)),
    n(percent(e.reach)), n(percent(e.trivial_inputs)),
  ]), "no evaluation yet");
  fill("policies", s.policies.map((p) => [
    p.role, n(whole(p.version)), n(short(p.loss)), n(short(p.kl)), n(short(p.entropy)), n(percent(p.clip_fraction)), n(short(p.grad_norm)), n(short(p.lr)),
  ]), "no policy was updated yet");
  const now = s.last ? new Date(s.last) : null;
  fill("stages", s.stages.map((t) => {
    const live = t.replicas > 0;
    const types = (list, ifEmpty) => [list?.length ? list.join(", ") : ifEmpty, "long"];
    return [
      t.stage, types(t.consumes, "all events"), types(t.makes, none), n(live ? whole(t.replicas) : none),
      n(live ? whole(t.lag) : none), n(live ? whole(t.in_flight) : none), n(live ? fixed(t.per_second, 1) : none),
    ];
  }), "none");
  fill("replicas", s.replicas.map((t) => [
    t.replica, n(whole(t.lag)), n(whole(t.in_flight)), n(fixed(t.per_second, 1)), n(whole(t.handled)),
    [whole(t.failed), t.failed > 0 ? "n bad" : "n"], n(percent(t.busy)), n(duration(Math.max(0, (now - new Date(t.at)) / 1000)) + " ago"),
  ]), "no heartbeat yet");
  fill("drops", s.recent_drops.map((d) => [clock(d.at), d.group, d.stage, d.reason, [d.detail, "long"]]), "none");
  fill("events", s.events.map((e) => [e.name, n(whole(e.count))]), "none");

  const meta = [];
  if (s.problem_set) meta.push(`${whole(s.problems)} problems of ${s.problem_set}`);
  if (s.attempt > 1) meta.push(`attempt ${s.attempt}`);
  if (s.quarantined > 0) meta.push(`${whole(s.quarantined)} messages are quarantined: they are no events of the run`);
  if (s.series.stride > 1) meta.push(`each point of a chart holds ${s.series.stride} steps`);
  setText("meta", meta.length ? meta.join(" · ") + " ·" : "");
  setText("updates", String(++updates));
}

function connection(state, text) {
  const element = byId("connection");
  element.className = state;
  element.textContent = text;
}

const source = new EventSource("events");
source.addEventListener("open", () => connection("live", "live"));
source.addEventListener("state", (message) => show(JSON.parse(message.data)));
source.addEventListener("error", () => connection("lost", source.readyState === EventSource.CLOSED ? "disconnected; reload the page" : "connection lost; reconnecting"));
