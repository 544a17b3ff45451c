// The tables of the span: of threads, behaviours, listeners, pairs of threads, and runners.

const tables = {};

function makeTables() {
  const rate = (name) => [(row) => row[name], amount];
  tables.threads = new Table("threads", [
    ["thread", (row) => row.thread, plain], ["busy", (row) => row.busy, percent],
    ["messages", ...rate("messages")], ["runs", ...rate("runs")], ["iterations", ...rate("iterations")],
    ["ready", (row) => row.ready, amount], ["in", (row) => row.in, bytes], ["out", (row) => row.out, bytes],
    ["open", (row) => row.open, amount], ["steals", ...rate("steals")],
    ["wake-ups", ...rate("wakeups")], ["empty", (row) => row.empty, percent],
    ["cut short", ...rate("expiries")], ["stalls", (row) => row.stalls, amount]], 0);
  tables.threads.isDescending = false;
  tables.threads.showOrder();
  tables.behaviours = new Table("behaviours", [
    ["behaviour", (row) => row.name], ["kind", (row) => row.kind],
    ["of a core", (row) => row.time, percent], ["runs", ...rate("runs")], ["a run", (row) => row.run, time],
    ["messages", ...rate("messages")], ["wait", (row) => row.wait, time],
    ["failures", (row) => row.failures, amount], ["actors", (row) => row.alive, amount],
    ["memory", (row) => row.bytes, bytes]], 2);
  tables.listeners = new Table("listeners", [
    ["listener", (row) => row.listener], ["behaviour", (row) => row.name], ["open", (row) => row.open, amount],
    ["accepted", ...rate("accepted")], ["refused", (row) => row.refused, amount]], 2);
  tables.pairs = new Table("pairs", [
    ["thread", (row) => row.thief, plain], ["for", (row) => row.victim, plain],
    ["steals", ...rate("steals")], ["stands in", ...rate("standIns")]], 2);
  tables.runners = new Table("runners", [
    ["pool", (row) => row.pool], ["runner", (row) => row.runner, plain], ["busy", (row) => row.busy, percent],
    ["searches", (row) => row.search, percent], ["turns", ...rate("turns")], ["messages", ...rate("messages")],
    ["steals", ...rate("steals")]], 2);
}

function threadRow(thread, from, to) {
  const passed = secondsBetween(from, to);
  const rate = (name) => grown(name, from, to, thread) / passed;
  const value = (name) => {
    const counter = store.counters.get(name);
    return counter ? counter.all[slot(to) * store.threads + thread] : 0;
  };
  const wakeups = grown("wakeups_received", from, to, thread);
  return {
    thread, state: shares(thread, from, to)[store.names.phases.indexOf("state")], busy: 1 - shares(thread, from, to)[store.names.phases.indexOf("sleep")],
    messages: messages(from, to, thread) / passed, runs: rate("runs"), iterations: rate("iterations"),
    ready: readyActors(from, to, thread),
    in: rate("received_bytes"), out: rate("sent_bytes"), open: value("channels_opened") - value("channels_closed"),
    steals: rate("steals"), wakeups: wakeups / passed,
    empty: wakeups > 0 ? grown("wakeups_empty", from, to, thread) / wakeups : 0,
    expiries: rate("deadline_expiries"), stalls: grown("stalls", from, to, thread),
  };
}

// The figures of a behaviour are runs, run_ns, messages, waits, wait_ns, failures, alive and bytes.
function behaviourRows(from, to) {
  const passed = secondsBetween(from, to);
  return store.rows.behaviours.grown(from, to).map(({ info: [name, kind], grown: all, last }) => ({
    name, kind, time: all[1] / (passed * 1e9), runs: all[0] / passed, run: all[0] > 0 ? all[1] / all[0] : 0,
    messages: all[2] / passed, wait: all[3] > 0 ? all[4] / all[3] : 0, failures: all[5], alive: last[6], bytes: last[7],
  }));
}

function listenerRows(from, to) {
  const passed = secondsBetween(from, to);
  return store.rows.listeners.grown(from, to).map(({ info: [listener, name], grown: all, last }) =>
    ({ listener, name, accepted: all[0] / passed, open: last[1], refused: all[2] }));
}

function pairRows(from, to) {
  const passed = secondsBetween(from, to);
  return store.rows.pairs.grown(from, to)
    .map(({ info: [thief, victim], grown: all }) => ({ thief, victim, steals: all[0] / passed, standIns: all[1] / passed }))
    .filter((row) => row.steals > 0 || row.standIns > 0);
}

function runnerRows(from, to) {
  const passed = secondsBetween(from, to);
  return store.names.runners.map(([pool, runner], i) => ({
    pool, runner, busy: runnerGrown(i, "run_ns", from, to) / (passed * 1e9),
    search: runnerGrown(i, "search_ns", from, to) / (passed * 1e9), turns: runnerGrown(i, "turns", from, to) / passed,
    messages: runnerGrown(i, "messages", from, to) / passed, steals: runnerGrown(i, "steals", from, to) / passed,
  }));
}

function showPart(name, rows) {
  $(name + "-part").hidden = rows.length === 0;
  tables[name].show(rows);
}

function tellTables() {
  const [from, to] = span();
  const threads = strips.each.map((_, thread) => threadRow(thread, from, to));
  const behaviours = behaviourRows(from, to);
  tables.threads.show(threads);
  showPart("behaviours", behaviours);
  showPart("listeners", listenerRows(from, to));
  showPart("pairs", pairRows(from, to));
  showPart("runners", runnerRows(from, to));
  tellSets(from, to);
}
