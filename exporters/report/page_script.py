"""The script of a report: shows the values of a chart at the pointer, or with the arrow keys."""

SCRIPT = """
"use strict";
for (const figure of document.querySelectorAll("figure[data-chart]")) {
  const data = JSON.parse(document.getElementById(figure.dataset.chart).textContent);
  const stage = figure.querySelector(".stage"), output = figure.querySelector("output");
  const positions = [...new Set(data.sets.flatMap((set) => set.x))].sort((a, b) => a - b);
  let current = -1;
  const nearest = (list, x) => {
    let low = 0, high = list.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (list[middle] < x) low = middle; else high = middle;
    }
    return Math.abs(list[low] - x) <= Math.abs(list[high] - x) ? low : high;
  };
  const time = (x) => {
    const local = data.times[0] + data.times[2] + (x / 1000) * (data.times[1] - data.times[0]);
    return new Date(Math.round(local) * 1000).toISOString().slice(11, 19);
  };
  const show = (index) => {
    current = Math.max(0, Math.min(positions.length - 1, index));
    const x = positions[current], parts = [];
    let label = data.times ? time(x) : "";
    for (const set of data.sets) {
      const at = nearest(set.x, x);
      if (set.labels && !label) label = set.labels[at];
      const isNear = Math.abs(set.x[at] - x) <= set.near;
      for (const [name, unit, values] of set.lines) {
        const value = isNear ? values[at] : null;
        parts.push(name + ": " + (value === null ? "no value" : value.toLocaleString("en") + " " + unit));
      }
    }
    for (const line of figure.querySelectorAll(".cursor")) {
      line.setAttribute("x1", x / 10 + "%");
      line.setAttribute("x2", x / 10 + "%");
    }
    stage.classList.add("on");
    output.textContent = label + " \\u2014 " + parts.join(" \\u00b7 ");
  };
  stage.addEventListener("pointermove", (event) => {
    const box = figure.querySelector(".plot").getBoundingClientRect();
    show(nearest(positions, 1000 * (event.clientX - box.left) / box.width));
  });
  stage.addEventListener("focus", () => { if (current < 0) show(0); });
  stage.addEventListener("keydown", (event) => {
    const wide = Math.max(1, Math.round(positions.length / 20));
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -wide, PageDown: wide, Home: -Infinity, End: Infinity };
    if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    show(current + steps[event.key]);
  });
}
"""
"""Each set of data has positions (`x`, from 0 to 1000), lines (name, unit, values) and `near`, the greatest distance at
which a value is shown. `times` has the beginning and the end of the axis, and the offset of local time, in seconds."""
