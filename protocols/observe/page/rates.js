// Rates of the span in figures, and over time in charts by uPlot, if the page was built with it.

const RATES = [
  ["messages/s", (from, to) => amount(messages(from, to) / secondsBetween(from, to))],
  ["runs/s", (from, to) => amount(grown("runs", from, to) / secondsBetween(from, to))],
  ["iterations/s", (from, to) => amount(grown("iterations", from, to) / secondsBetween(from, to))],
  ["received/s", (from, to) => bytes(grown("received_bytes", from, to) / secondsBetween(from, to))],
  ["sent/s", (from, to) => bytes(grown("sent_bytes", from, to) / secondsBetween(from, to))],
  ["actors ready", (from, to) => amount(readyActors(from, to))],
  ["connections", (from, to) => amount(total("channels_opened", to) - total("channels_closed", to))],
  ["unsent", (from, to) => bytes(total("queued_bytes", to))],
  ["steals/s", (from, to) => amount(grown("steals", from, to) / secondsBetween(from, to))],
];

const MESSAGES = ["asks", "notices", "replies", "events"];

function messages(from, to, thread) {
  return MESSAGES.reduce((sum, name) => sum + grown(name, from, to, thread), 0);
}

// The mean number of actors that were ready and waited for their thread.
function readyActors(from, to, thread) {
  return grown("ready_ns", from, to, thread) / (secondsBetween(from, to) * 1e9);
}

function total(name, index) {
  const counter = store.counters.get(name);
  return counter ? counter.total[slot(index)] : 0;
}

function tellRates() {
  const [from, to] = span();
  RATES.forEach(([, figure], i) => say($("rates").children[i].lastChild, figure(from, to)));
}

// --- charts

const CHARTS = [
  { title: ["messages/s", "runs/s"], figure: amount,
    series: [messages, (from, to) => grown("runs", from, to)] },
  { title: ["received/s", "sent/s"], figure: bytes,
    series: [(from, to) => grown("received_bytes", from, to), (from, to) => grown("sent_bytes", from, to)] },
];

const charts = { each: [] };

function chartData(chart) {
  const end = viewEnd();
  const begin = Math.max(1, end - VIEW, store.count - HISTORY + 1);
  const data = [[], ...chart.series.map(() => [])];
  for (let index = begin; index < end; index++) {
    const passed = secondsBetween(index - 1, index);
    data[0].push(secondsBetween(end - 1, index));
    chart.series.forEach((series, i) => data[i + 1].push(Math.max(0, series(index - 1, index) / passed)));
  }
  return data;
}

function chartOptions(chart, width) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue("--" + name).trim();
  const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 }, font: "11px system-ui" };
  const line = (name) => ({ stroke: colour(name), width: 1, points: { show: false } });
  return {
    width, height: 130, legend: { show: false }, cursor: { drag: { x: true, y: false, setScale: false }, points: { show: false } },
    scales: { x: { time: false, range: [(-VIEW * store.names.interval_ms) / 1000, 0] }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.05 : 1] } },
    axes: [{ ...axis, values: (_, all) => all.map((each) => each + " s"), size: 26 },
      { ...axis, values: (_, all) => all.map(chart.figure), size: 62 }],
    series: [{}, line("submit"), line("state")],
    hooks: { setSelect: [(plot) => {
      if (plot.select.width < 3) return;
      const column = (x) => (x / plot.over.clientWidth) * VIEW;
      choose(Math.round(column(plot.select.left)), Math.round(column(plot.select.left + plot.select.width)));
    }] },
  };
}

function makeCharts() {
  if (typeof uPlot === "undefined") {
    $("charts-missing").hidden = false;
    return;
  }
  for (const each of charts.each) each.plot.destroy();
  $("charts").replaceChildren();
  const nodes = CHARTS.map(() => element("div", ""));
  $("charts").append(...nodes); // all of them, because each takes room from the others
  charts.each = CHARTS.map((chart, place) => {
    const title = element("h3", "");
    chart.title.forEach((name, i) => title.append(element("i", "line-" + i), name));
    const plotted = element("div", "");
    plotted.setAttribute("role", "img");
    plotted.setAttribute("aria-label", chart.title.join(" and ") + " over time; their figures stand above");
    const node = nodes[place];
    node.append(title, plotted);
    return { node, chart, plot: new uPlot(chartOptions(chart, node.clientWidth), chartData(chart), plotted) };
  });
}

// Charts are drawn as a whole, so they are drawn only once a second, and only if they are in sight.
function drawCharts() {
  for (const { node, chart, plot } of charts.each) {
    const { top, bottom } = node.getBoundingClientRect();
    if (bottom > 0 && top < innerHeight) plot.setData(chartData(chart), true);
  }
}

function startRates() {
  for (const [name] of RATES) $("rates").append(element("div", "", element("dt", "", name), element("dd", "", "0")));
  onView(() => { tellRates(); drawCharts(); });
  window.addEventListener("resize", () => {
    for (const { node, plot } of charts.each) plot.setSize({ width: node.clientWidth, height: 130 });
  });
}
