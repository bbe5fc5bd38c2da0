// The charts of a page about several runs. The names of the lines and the values of
// the charts are in the page.
"use strict";

const { names, charts } = JSON.parse(document.getElementById("data").textContent);
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = (i) => `hsl(${(220 + (i * 360) / names.length) % 360} 70% 50%)`;
const text = (v) => (v === null || v === undefined ? "–" : v.toLocaleString("en", { maximumSignificantDigits: 4 }));
let plots = [];

function draw() {
  for (const plot of plots) plot.destroy();
  const axis = { stroke: css("--quiet"), grid: { stroke: css("--line"), width: 1 }, ticks: { show: false } };
  plots = charts.map((chart, n) => {
    const element = document.querySelectorAll(".chart")[n];
    return new uPlot({
      width: element.clientWidth,
      height: 240,
      cursor: { y: false },
      scales: { x: { time: false } },
      axes: [{ ...axis, size: 32 }, { ...axis, size: 56, values: (_, ticks) => ticks.map(text) }],
      series: [
        { label: "step" },
        ...names.map((label, i) => ({
          label, stroke: colour(i), width: 2, spanGaps: true, value: (_, v) => text(v), points: { show: chart.step.length < 12, size: 8 },
        })),
      ],
    }, [chart.step, ...chart.lines], element);
  });
}

for (const chart of charts) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const element = document.createElement("div");
  caption.textContent = chart.title;
  element.className = "chart";
  element.dataset.rows = chart.step.length;
  figure.append(caption, element);
  document.getElementById("charts").append(figure);
}
draw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
addEventListener("resize", () => plots.forEach((plot) => plot.setSize({ width: plot.root.parentElement.clientWidth, height: 240 })));
