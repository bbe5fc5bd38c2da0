// The charts of the live page and of the report. The attribute data-chart of an
// element with class "chart" names its chart.
"use strict";

// The text of a number that is not known (null).
const none = "–";

// The columns of each chart, drawn over the column of its x axis. Bounds are
// thin lines in the colour of the first line.
const tint = ["--first", "--second"];
const charts = {
  reward: { lines: [["Code LLM", "reward_code"], ["Test LLM", "reward_test"]], digits: 3 },
  pass: { lines: [["new tests", "pass_new"], ["historical tests", "pass_hist"]], digits: 3, range: [0, 1] },
  tests: { lines: [["kept", "kept"], ["wrong as stated or discarded", "wrong_or_discarded"]], digits: 2, fromZero: true },
  book: { lines: [["tests", "book_size"]], digits: 0, fromZero: true },
  changes: { lines: [["added", "book_entered"], ["removed", "book_left"]], digits: 0, fromZero: true },
  heldout: {
    x: "eval_step", lines: [["mean", "eval_avg"]], bounds: [["from", "eval_low"], ["to", "eval_high"]], digits: 3, points: true,
  },
  entropy: { lines: [["Code LLM", "entropy_code"], ["Test LLM", "entropy_test"]], digits: 3, fromZero: true },
  kl: { lines: [["Code LLM", "kl_code"], ["Test LLM", "kl_test"]], digits: 4, fromZero: true },
  grad: { lines: [["Code LLM", "grad_norm_code"], ["Test LLM", "grad_norm_test"]], digits: 3, fromZero: true },
  dropped: { lines: [["groups", "dropped"]], digits: 0, fromZero: true },
};
const plots = new Map(); // element -> uPlot

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const columns = (chart) => [...chart.lines, ...(chart.bounds ?? [])].map(([, column]) => column);

function chartOptions(chart, element) {
  const axis = { stroke: css("--quiet"), grid: { stroke: css("--line"), width: 1 }, ticks: { show: false } };
  const line = (label, colour, { points, ...style } = {}) => ({
    label, stroke: css(colour), width: 2, spanGaps: true, ...style,
    points: { fill: css("--panel"), ...points },
    value: (_, v) => (v === null || v === undefined ? none : v.toFixed(chart.digits)),
  });
  return {
    width: element.clientWidth,
    height: 220,
    cursor: { y: false },
    scales: {
      x: { time: false },
      y: {
        range: (_, low, high) => {
          if (chart.range) return chart.range;
          if (low === null) return [0, 1];
          return uPlot.rangeNum(chart.fromZero ? 0 : low, high, 0.1, !chart.fromZero);
        },
      },
    },
    axes: [
      { ...axis, size: 32, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000] },
      // The default format shows small numbers as 0.
      { ...axis, size: 56, values: (_, ticks) => ticks.map((t) => t?.toLocaleString("en", { maximumSignificantDigits: 4 })) },
    ],
    series: [
      { label: "step" },
      ...chart.lines.map(([label], i) => line(label, tint[i], chart.points && { points: { show: true, size: 8 } })),
      ...(chart.bounds ?? []).map(([label]) => line(label, tint[0], { width: 1, dash: [4, 4], points: { show: false } })),
    ],
  };
}

let lastSeries = null;

function drawCharts(series) {
  lastSeries = series;
  for (const element of document.querySelectorAll(".chart")) {
    const chart = charts[element.dataset.chart];
    const x = series[chart.x ?? "step"];
    const data = [x, ...columns(chart).map((column) => series[column])];
    element.dataset.rows = x.length;
    let plot = plots.get(element);
    if (plot) plot.setData(data);
    else plots.set(element, plot = new uPlot(chartOptions(chart, element), data, element));
    // uPlot draws and clears its legend after this function returns.
    requestAnimationFrame(() => showNewest(element));
  }
}

// showNewest shows the newest step in the legend unless the pointer selects one.
function showNewest(element) {
  const plot = plots.get(element);
  if (plot && plot.data[0].length > 0 && (plot.cursor.left ?? -1) < 0) plot.setLegend({ idx: plot.data[0].length - 1 });
}

function redrawCharts() {
  for (const plot of plots.values()) plot.destroy();
  plots.clear();
  if (lastSeries) drawCharts(lastSeries);
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawCharts);
new ResizeObserver(() => {
  for (const [element, plot] of plots) {
    if (plot.width !== element.clientWidth) plot.setSize({ width: element.clientWidth, height: 220 });
  }
}).observe(document.body);
