// The view of the pipeline: what the last step waited for, and the stages.
"use strict";

const svg = (name, attributes) => {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  return e;
};

// placed returns the column and the row of each stage: the workers that follow from
// one another in the first row, and the others below the stage that they belong to.
function placed(stages) {
  const places = new Map();
  const makerOf = (type) => stages.find((s) => s.makes?.includes(type));
  let last = stages.find((s) => s.makes?.includes("problem.posed"));
  for (let column = 1; last && !places.has(last.stage); column++) {
    places.set(last.stage, [column, 1]);
    const makes = last.makes ?? [];
    const next = stages.filter((s) => s.consumes?.length === 1 && makes.includes(s.consumes[0]));
    next.slice(1).forEach((other, i) => places.set(other.stage, [column, 2 + i]));
    last = next[0];
  }
  for (const s of stages) {
    if (places.has(s.stage)) continue;
    const sampler = stages.find((o) => o.role && o.role === s.role && o !== s && places.has(o.stage));
    const taken = new Set([...places.values()].filter(([, row]) => row === 2).map(([column]) => column));
    let column = sampler ? places.get(sampler.stage)[0] : 1;
    while (taken.has(column)) column++;
    places.set(s.stage, [column, 2]);
  }
  return { places, makerOf };
}

function stageCard(s, place, binding) {
  const span = binding.spans?.find((b) => b.stage === s.stage);
  const binds = span && binding.spans.every((b) => b.share <= span.share);
  const trouble = s.failed + s.dropped > 0;
  const fact = (name, value, bad) => el("div", { class: bad ? "bad" : null }, el("dt", null, name), el("dd", null, value));
  const live = s.replicas > 0;
  const busy = el("meter", { min: "0", max: "1", value: String(s.busy ?? 0), "aria-label": `${s.stage} busy` });
  const card = el("article", { class: "stage" + (binds ? " binds" : "") + (live ? "" : " idle"), "data-stage": s.stage },
    el("h3", null, s.stage, el("span", null, s.replicas > 1 ? `× ${s.replicas}` : "")),
    el("dl", null,
      fact("per s", live ? fixed(s.per_second, 1) : none),
      fact("handled", live ? whole(s.handled) : none),
      fact("lag", live ? whole(s.lag) : none),
      fact("in flight", live ? whole(s.in_flight) : none),
      fact("errors", live ? whole(s.failed) : none, s.failed > 0),
      fact("dropped", whole(s.dropped), s.dropped > 0),
      s.version === null ? null : fact("version", whole(s.version)),
      s.staleness === null ? null : fact("behind", whole(s.staleness))),
    el("p", { class: "busy" }, busy, `${percent(live ? s.busy : null)} busy`),
    el("p", { class: "makes" }, span ? `${(100 * span.share).toFixed(0)}% of step ${binding.step}` : s.makes?.length ? "makes " + s.makes.join(", ") : ""));
  card.style.gridColumn = place[0];
  card.style.gridRow = place[1];
  if (trouble) card.classList.add("trouble");
  return card;
}

// edges returns the pairs of stages between which events go.
function edges(stages) {
  const all = [];
  for (const to of stages) {
    if (to.consumes?.length === 1) for (const from of stages) if (from.makes?.includes(to.consumes[0])) all.push([from.stage, to.stage, to.consumes[0]]);
    if (!to.makes?.includes("policy.updated")) continue;
    for (const from of stages) if (from.makes?.includes("group.rewarded")) all.push([from.stage, to.stage, "group.rewarded"]);
    for (const s of stages) if (s.role === to.role && s !== to) all.push([to.stage, s.stage, "policy.updated"]);
  }
  return all;
}

function drawEdges(box, stages) {
  const area = box.getBoundingClientRect();
  const old = box.querySelector("svg");
  if (old) old.remove();
  if (area.width === 0 || getComputedStyle(box).display !== "grid") return;
  const at = (stage) => {
    const r = box.querySelector(`[data-stage="${CSS.escape(stage)}"]`).getBoundingClientRect();
    return { left: r.left - area.left, right: r.right - area.left, top: r.top - area.top, bottom: r.bottom - area.top, x: (r.left + r.right) / 2 - area.left, y: (r.top + r.bottom) / 2 - area.top };
  };
  const drawing = svg("svg", { width: area.width, height: area.height, "aria-hidden": "true" });
  const marker = svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: "7", refY: "4", markerWidth: "7", markerHeight: "7", orient: "auto" });
  marker.append(svg("path", { d: "M0 0L8 4L0 8z", class: "head" }));
  drawing.append(marker);
  for (const [from, to, type] of edges(stages)) {
    const a = at(from);
    const b = at(to);
    let d;
    if (Math.abs(a.y - b.y) < 20 && b.left > a.left) d = `M${a.right} ${a.top + 34}H${b.left}`;
    else if (type === "policy.updated") d = `M${a.x - 30} ${a.top}V${b.bottom}`;
    else if (Math.abs(a.x - b.x) < 20 && b.top - a.bottom > 80) d = `M${a.right - 14} ${a.bottom}V${a.bottom + 9}H${a.right + 10}V${b.top + 34}H${b.right}`; // around the stage between them
    else if (Math.abs(a.x - b.x) < 20) d = `M${a.x + 30} ${a.bottom}V${b.top}`;
    else {
      const middle = (a.bottom + b.top) / 2;
      d = `M${a.x} ${a.bottom}V${middle}H${b.x + 30}V${b.top}`;
    }
    const path = svg("path", { d, class: type === "policy.updated" ? "edge policy" : "edge", "marker-end": "url(#arrow)" });
    const title = svg("title", {});
    title.textContent = `${type}: ${from} to ${to}`;
    path.append(title);
    drawing.append(path);
  }
  box.prepend(drawing);
}

function showPipeline(s) {
  const b = s.binding;
  const spans = b.spans ?? [];
  const bars = spans.map((span, i) => {
    const bar = el("span", { class: "span tone" + (i % 6), title: `${span.stage}: ${fixed(span.seconds, 2)} s` }, span.share > 0.09 ? span.stage : "");
    bar.style.flexGrow = String(Math.max(span.share, 0.002));
    return bar;
  });
  byId("binding").replaceChildren(
    el("h3", null, "What binds the run"),
    el("p", { id: "binding_text", class: "big" }, b.text ? b.text : "No step is trained yet."),
    b.now ? el("p", { id: "binding_now" }, b.now) : "",
    el("div", { class: "spans", role: "img", "aria-label": "Share of each stage: " + spans.map((x) => `${x.stage} ${(100 * x.share).toFixed(0)}%`).join(", ") }, bars),
    el("p", { class: "note" }, "A stage has the time from the last event of the stage before it to its own last event of the step."));
  const { places } = placed(s.stages);
  const box = byId("stages");
  box.replaceChildren(...s.stages.map((stage) => stageCard(stage, places.get(stage.stage), b)));
  drawEdges(box, s.stages);
  const now = s.last ? new Date(s.last) : null;
  fill("replicas", s.replicas.map((t) => [
    t.replica, n(whole(t.lag)), n(whole(t.in_flight)), n(fixed(t.per_second, 1)), n(whole(t.handled)),
    [whole(t.failed), t.failed > 0 ? "n bad" : "n"], n(percent(t.busy)), n(duration(Math.max(0, (now - new Date(t.at)) / 1000)) + " ago"),
  ]), "no heartbeat yet");
}

addEventListener("resize", () => { if (state && !byId("pipeline").hidden) drawEdges(byId("stages"), state.stages); });
