// The charts of the training. A chart draws columns of the series of one or more runs.
"use strict";

// The columns of each chart. Bounds are thin lines in the colour of the first line. An
// optional chart is shown if a run has a value for it, and one of tests if the page's run
// has a Test LLM or another run a value.
const tint = ["--first", "--second", "--third"];
const both = (code, test) => [["Code LLM", code], ["Test LLM", test]];
const charts = {
  reward: { title: "Reward", lines: both("reward_code", "reward_test"), digits: 3 },
  shadow_code: { title: "Code LLM: reward of the run and under other recipes", lines: [], digits: 3, optional: true },
  shadow_test: { title: "Test LLM: reward of the run and under other recipes", lines: [], digits: 3, optional: true },
  shadow_differs: { title: "Other recipes: share of groups that train on another answer, of pairs of answers in the other order", lines: [], digits: 3, fromZero: true, optional: true },
  pass: { title: "Share of tests passed", lines: [["new tests", "pass_new"], ["historical tests", "pass_hist"]], digits: 3, range: [0, 1], ofTests: true },
  heldout: {
    title: "Held-out avg@k with its 95% interval", x: "eval_step", lines: [["mean", "eval_avg"]], bounds: [["from", "eval_low"], ["to", "eval_high"]], digits: 3,
  },
  finding: {
    title: "Held-out tests: validity, defect-finding, reach", x: "eval_step",
    lines: [["validity", "eval_validity"], ["defect-finding", "eval_defect_finding"], ["reach", "eval_reach"]], digits: 3, ofTests: true,
  },
  tests: { title: "Tests per suite", lines: [["kept", "kept"], ["of these, wrong as stated", "wrong"], ["discarded", "discarded"]], digits: 2, fromZero: true, ofTests: true },
  breaking: { title: "Share of suites that their answer fails", lines: [["suites", "breaking"]], digits: 3, fromZero: true, ofTests: true },
  changes: { title: "Mistake Book: tests added and removed", lines: [["added", "book_entered"], ["removed", "book_left"]], digits: 0, fromZero: true, ofTests: true },
  book: { title: "Mistake Book: tests in it", lines: [["tests", "book_size"]], digits: 0, fromZero: true, ofTests: true },
  entropy: { title: "Entropy, nats per token", lines: both("entropy_code", "entropy_test"), digits: 3, fromZero: true },
  kl: { title: "KL divergence to the reference", lines: both("kl_code", "kl_test"), digits: 4, fromZero: true },
  clip: { title: "Share of tokens clipped", lines: both("clip_code", "clip_test"), digits: 4, fromZero: true },
  grad: { title: "Gradient norm", lines: both("grad_norm_code", "grad_norm_test"), digits: 3, fromZero: true },
  loss: { title: "Loss", lines: both("loss_code", "loss_test"), digits: 4 },
  length: { title: "Response length, tokens", lines: both("length_code", "length_test"), digits: 1, fromZero: true },
  lr: { title: "Learning rate", lines: both("lr_code", "lr_test"), digits: 8, fromZero: true },
  stale: { title: "Staleness, versions", lines: both("stale_code", "stale_test"), digits: 2, fromZero: true },
  mismatch: { title: "Sampler and trainer: KL divergence, nats per token", lines: both("mismatch_code", "mismatch_test"), digits: 5, fromZero: true, optional: true },
  seconds: { title: "Time of an update, seconds", lines: both("seconds_code", "seconds_test"), digits: 2, fromZero: true },
  dropped: { title: "Groups dropped", lines: [["groups", "dropped"]], digits: 0, fromZero: true },
};

const plots = new Map(); // element -> uPlot
const chartState = { runs: [], smooth: 0, from: null, to: null }; // runs: [{name, series}], the page's own first

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3], [4, 4]];

// takeShadows gives the charts of other recipes a line for each recipe in a series.
function takeShadows(series) {
  const recipes = Object.keys(series).filter((name) => name.startsWith("shadow_code ")).map((name) => name.slice("shadow_code ".length));
  if (recipes.length === 0) return;
  for (const role of ["code", "test"]) charts["shadow_" + role].lines = [["of the run", "reward_" + role], ...recipes.map((r) => [r, `shadow_${role} ${r}`])];
  charts.shadow_differs.lines = recipes.flatMap((r) => [[r + ": trained answer", "shadow_choice " + r], [r + ": order", "shadow_order " + r]]);
}

// smoothed returns an exponential moving average that begins without a bias.
function smoothed(column, weight) {
  if (!weight) return column;
  let sum = 0;
  let all = 0;
  return column.map((x) => {
    if (x === null || x === undefined) return x;
    sum = weight * sum + (1 - weight) * x;
    all = weight * all + (1 - weight);
    return sum / all;
  });
}

// lines returns the lines of a chart: for each run those of the chart, and the faint
// ones behind them that are not smoothed.
function chartLines(chart) {
  const all = [];
  chartState.runs.forEach((run, r) => {
    const label = (text) => (chartState.runs.length > 1 ? `${run.name}: ${text}` : text);
    chart.lines.forEach(([text, column], i) => {
      const colour = tint[i % tint.length];
      if (chartState.smooth > 0 && r === 0) all.push({ run, column, colour, faint: true, label: label(text) + ", measured" });
      all.push({ run, column, colour, smooth: chartState.smooth, dash: dashes[(r + Math.floor(i / tint.length)) % dashes.length], label: label(text) });
    });
    if (r === 0) for (const [text, column] of chart.bounds ?? []) all.push({ run, column, colour: tint[0], bound: true, label: label(text) });
  });
  return all;
}

// chartData joins the columns of all runs over one x axis.
function chartData(chart, lines) {
  const x = chart.x ?? "step";
  const tables = lines.map((l) => [l.run.series[x] ?? [], smoothed(l.run.series[l.column] ?? [], l.faint || l.bound ? 0 : l.smooth)]);
  return tables.length === 1 ? tables[0] : uPlot.join(tables);
}

function chartOptions(chart, lines, element) {
  const axis = { stroke: css("--quiet"), grid: { stroke: css("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
  return {
    width: Math.max(element.clientWidth, 120),
    height: 200,
    cursor: { y: false, drag: { x: true, y: false, setScale: false } },
    hooks: { setSelect: [(u) => { if (u.select.width > 4) zoom(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")); u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false); }] },
    scales: {
      x: { time: false, range: (_, low, high) => [chartState.from ?? low ?? 0, chartState.to ?? (high === low ? (high ?? 0) + 1 : high) ?? 1] },
      y: {
        range: (_, low, high) => {
          if (chart.range) return chart.range;
          if (low === null || (chart.fromZero && high === 0)) return [0, 1];
          return uPlot.rangeNum(chart.fromZero ? 0 : low, high, 0.1, !chart.fromZero);
        },
      },
    },
    axes: [
      { ...axis, size: 32, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000] },
      // The default format shows small numbers as 0.
      { ...axis, size: 60, values: (_, ticks) => ticks.map((t) => (t !== 0 && Math.abs(t) < 0.001 ? t.toExponential(1) : t?.toLocaleString("en", { maximumSignificantDigits: 4 }))) },
    ],
    series: [
      { label: "step" },
      ...lines.map((l) => ({
        label: visible(l.label), stroke: css(l.colour), width: l.bound || l.faint ? 1 : 2, alpha: l.faint ? 0.3 : 1, dash: l.bound ? [4, 4] : l.dash, spanGaps: true,
        points: { show: Boolean(chart.x) && !l.bound && !l.faint, size: 7, fill: css("--panel") },
        value: (_, v) => (v === null || v === undefined ? none : chart.digits > 4 ? short(v) : v.toFixed(chart.digits)),
      })),
    ],
  };
}

// zoom shows the steps of all charts from one to another; null for all.
function zoom(from, to) {
  chartState.from = from === null ? null : Math.max(0, Math.floor(from));
  chartState.to = to === null ? null : Math.ceil(to);
  byId("zoom_from").value = chartState.from ?? "";
  byId("zoom_to").value = chartState.to ?? "";
  drawCharts();
}

// makeCharts makes the elements of all charts.
function makeCharts(into) {
  for (const [id, chart] of Object.entries(charts)) {
    const canvas = el("div", { class: "chart", "data-chart": id });
    into.append(el("figure", null,
      el("figcaption", null, el("span", null, chart.title), el("span", { class: "save" },
        el("button", { type: "button", "aria-label": `${chart.title}: save as PNG`, on: { click: () => savePNG(chart, canvas) } }, "PNG"),
        el("button", { type: "button", "aria-label": `${chart.title}: save as CSV`, on: { click: () => saveCSV(chart) } }, "CSV"))),
      canvas));
  }
}

// drawCharts draws the charts that have room; anew with other lines.
function drawCharts(anew) {
  for (const element of document.querySelectorAll(".chart")) {
    const chart = charts[element.dataset.chart];
    if (chart.optional || chart.ofTests) {
      const least = chart.ofTests ? Number.MIN_VALUE : -Infinity;
      element.parentElement.hidden = !(chart.ofTests && !state?.without_test) &&
        !chartState.runs.some((r) => chart.lines.some(([, column]) => r.series[column]?.some((v) => typeof v === "number" && v >= least)));
    }
    if (element.clientWidth === 0) continue; // it is hidden, or the view is
    const lines = chartLines(chart);
    const data = chartData(chart, lines);
    element.dataset.rows = data[0].length;
    let plot = plots.get(element);
    if (plot && (anew || plot.series.length !== lines.length + 1)) {
      plot.destroy();
      plot = null;
    }
    if (plot) plot.setData(data);
    else plots.set(element, plot = new uPlot(chartOptions(chart, lines, element), data, element));
    // uPlot draws and clears its legend after this function returns.
    requestAnimationFrame(() => showNewest(element, chart));
  }
}

// showNewest shows the newest step in the legend unless the pointer selects one.
function showNewest(element, chart) {
  const plot = plots.get(element);
  if (!plot || plot.data[0].length === 0) return;
  if ((plot.cursor.left ?? -1) < 0) plot.setLegend({ idx: plot.data[0].length - 1 });
  const last = plot.series.slice(1).map((s, i) => `${s.label} ${s.value(plot, plot.data[i + 1].findLast((v) => v !== null && v !== undefined))}`);
  const canvas = element.querySelector("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${chart.title}. Step ${plot.data[0].at(-1)}: ${last.join(", ")}`);
}

function savePNG(chart, element) {
  const plot = plots.get(element);
  if (!plot) return;
  const from = plot.ctx.canvas;
  const ratio = from.width / plot.width;
  const to = document.createElement("canvas");
  to.width = from.width;
  to.height = from.height + 56 * ratio;
  const ctx = to.getContext("2d");
  ctx.fillStyle = css("--panel");
  ctx.fillRect(0, 0, to.width, to.height);
  ctx.drawImage(from, 0, 32 * ratio);
  ctx.fillStyle = css("--ink");
  ctx.font = `600 ${14 * ratio}px system-ui, sans-serif`;
  ctx.fillText(`${chart.title} – ${visible(chartState.runs[0]?.name ?? "")}`, 12 * ratio, 21 * ratio);
  ctx.font = `${12 * ratio}px system-ui, sans-serif`;
  let x = 12 * ratio;
  for (const s of plot.series.slice(1)) {
    ctx.fillStyle = s.stroke(plot);
    ctx.fillText(s.label, x, to.height - 8 * ratio);
    x += ctx.measureText(s.label).width + 16 * ratio;
  }
  to.toBlob((blob) => download(fileName(chart, "png"), blob));
}

function saveCSV(chart) {
  const lines = chartLines(chart).map((l) => ({ ...l, smooth: 0 })).filter((l) => !l.faint);
  const data = chartData(chart, lines);
  // A spreadsheet takes a cell that begins with = as a formula.
  const quoted = (s) => '"' + visible(s).replaceAll('"', '""').replace(/^[=+@-]/, "'$&") + '"';
  const rows = [["step", ...lines.map((l) => quoted(l.label))], ...data[0].map((step, i) => [step, ...data.slice(1).map((c) => c[i] ?? "")])];
  download(fileName(chart, "csv"), new Blob([rows.map((r) => r.join(",")).join("\n") + "\n"], { type: "text/csv" }));
}

const fileName = (chart, ending) => `${chartState.runs[0]?.name ?? "run"}-${chart.title}.${ending}`.toLowerCase().replace(/[^a-z0-9.]+/g, "-");

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawCharts(true));
new ResizeObserver(() => {
  for (const [element, plot] of plots) {
    if (element.clientWidth > 0 && plot.width !== element.clientWidth) plot.setSize({ width: element.clientWidth, height: 200 });
  }
}).observe(document.body);
