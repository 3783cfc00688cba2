// Draws every table with the attribute data-chart: the first column has the time (data-x, in seconds), the others numbers.
// The table stays for people who read tables; cells with data-chart-skip are not drawn.
"use strict";
(() => {
  const COLOURS = ["#2f8f83", "#c9803a", "#5b78b8", "#a8577e", "#7a9a3b", "#8d6fb8", "#8a8f94"];
  const number = (cell) => Number(cell.dataset.value ?? cell.textContent.replaceAll(/[,$%\s]/g, "")) || 0;

  function read(table) {
    const names = [...table.tHead.rows[0].cells].slice(1).filter((cell) => !("chartSkip" in cell.dataset));
    const rows = [...table.tBodies[0].rows];
    return {
      names: names.map((cell) => cell.textContent),
      xs: rows.map((row) => Number(row.cells[0].dataset.x)),
      series: names.map((name) => rows.map((row) => number(row.cells[name.cellIndex]))),
      links: rows.map((row) => row.cells[0].querySelector("a")?.href),
    };
  }

  function draw(table) {
    const { names, xs, series, links } = read(table);
    if (!xs.length || !series.length) return;
    const stacked = [];
    series.forEach((values, place) => stacked.push(values.map((v, i) => v + (place ? stacked[place - 1][i] : 0))));
    const style = getComputedStyle(document.documentElement);
    const text = style.getPropertyValue("--pico-muted-color").trim();
    const line = style.getPropertyValue("--line").trim();
    const axis = { stroke: text, grid: { stroke: line, width: 1 }, ticks: { stroke: line }, font: "12px system-ui" };
    const holder = document.createElement("div");
    holder.className = "chart";
    // The table says the same to a screen reader.
    holder.setAttribute("aria-hidden", "true");
    const before = table.closest("details") ?? table;
    before.parentNode.insertBefore(holder, before);
    // The highest stack is drawn first, so that the lower ones stay visible.
    const order = series.map((_, place) => place).reverse();
    const chart = new uPlot({
      width: holder.clientWidth, height: 190, cursor: { y: false, drag: { x: false, y: false } },
      scales: { x: { time: true }, y: { range: (_, low, high) => [0, Math.max(1, high) * 1.08] } },
      axes: [axis, { ...axis, size: 44, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10000, 100000] }],
      series: [{ value: "{YYYY}-{MM}-{DD}" }, ...order.map((place) => ({
        label: names[place], stroke: COLOURS[place % COLOURS.length], fill: COLOURS[place % COLOURS.length], width: 0,
        points: { show: false }, paths: uPlot.paths.bars({ size: [0.8, 28] }),
        value: (_, __, ___, i) => (i == null ? "–" : series[place][i]),
      }))],
    }, [xs, ...order.map((place) => stacked[place])], holder);
    chart.over.addEventListener("click", () => {
      const link = chart.cursor.idx != null && links[chart.cursor.idx];
      if (link) location.href = link;
    });
    new ResizeObserver(() => chart.setSize({ width: holder.clientWidth, height: 190 })).observe(holder);
  }

  document.querySelectorAll("table[data-chart]").forEach(draw);
})();
