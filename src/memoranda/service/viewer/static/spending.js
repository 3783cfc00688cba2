// Draws the chart of the page Spending; its table has the same numbers.
"use strict";
const place = document.getElementById("spending-chart");
if (place && window.uPlot) drawSpending(place);

async function drawSpending(place) {
  const answer = await fetch(place.dataset.url, { credentials: "same-origin" });
  if (!answer.ok) return;
  const { rows, by } = await answer.json();
  if (!rows.length) return;
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const ink = colour("--pico-muted-color"), line = colour("--line"), main = colour("--pico-primary");
  const shown = by === "day" ? rows : rows.slice(0, 12);
  const names = shown.map((row) => row.name || "(none)");
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line } };
  const short = (name) => (name.length > 14 ? name.slice(0, 13) + "…" : name);
  const options = {
    width: place.clientWidth || 640,
    height: 240,
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
    scales: { x: { time: false, range: [-0.6, names.length - 0.4] }, y: { range: (plot, low, high) => [0, high || 1] } },
    axes: [
      { ...axis, grid: { show: false }, space: 70, values: (plot, ticks) => ticks.map((tick) => Number.isInteger(tick) && names[tick] ? short(by === "day" ? names[tick].slice(5) : names[tick]) : "") },
      { ...axis, size: 64, values: (plot, ticks) => ticks.map((tick) => "$" + tick.toFixed(tick < 1 ? 3 : 2)) },
    ],
    series: [{}, { stroke: main, fill: main, width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.7, 48] }) }],
  };
  place.hidden = false;
  options.width = place.clientWidth;
  const plot = new uPlot(options, [names.map((name, index) => index), shown.map((row) => row.cost_usd)], place);
  new ResizeObserver(() => plot.setSize({ width: place.clientWidth, height: 240 })).observe(place);
}
