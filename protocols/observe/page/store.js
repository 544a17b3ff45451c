// The memory of the page: the last samples, in rings of a fixed size. All figures only grow, so
// what happened in a span is the difference of its ends.

const HISTORY = 1440; // samples that are kept: six minutes
const VIEW = 720; // samples that are shown: three minutes

// Counters that the page uses, of all that there are.
const KEPT = ["iterations", "enters", "completions", "runs", "replies", "asks", "notices", "events",
  "received_bytes", "sent_bytes", "deadline_expiries", "wakeups_received", "wakeups_empty",
  "steals", "accepted", "channels_opened", "channels_closed", "channels_refused", "queued_bytes", "parks",
  "ready_ns", "stalls"];

const store = { names: null, count: 0 };

function slot(index) {
  return index % HISTORY;
}

// Begin anew: a program has connected.
function storeNames(names) {
  const threads = names.threads;
  Object.assign(store, {
    names, threads, count: 0, level: 0, memory: null, hasHeat: false,
    now: new Float64Array(HISTORY), // ms
    phases: new Float64Array(HISTORY * threads * names.phases.length),
    counters: new Map(), kept: [],
    runners: new Float64Array(HISTORY * names.runners.length * names.times.length),
    heat: new Float64Array(HISTORY * names.bounds.length),
    heatLast: new Float64Array(names.bounds.length),
    rows: { behaviours: new Rows(), listeners: new Rows(), pairs: new Rows() },
  });
  names.counters.forEach((name, place) => {
    if (!KEPT.includes(name)) return;
    const counter = { last: new Float64Array(threads), all: new Float64Array(HISTORY * threads),
      total: new Float64Array(HISTORY) };
    store.counters.set(name, counter);
    store.kept[place] = counter;
  });
}

// Take a sample, whose rows are those that have changed, and keep it as the next one, if there is
// room.
function storeSample(sample, isKept) {
  store.level = sample.level;
  store.memory = sample.memory;
  for (const row of sample.counters) {
    const counter = store.kept[row[0]];
    if (counter) for (let i = 1; i < row.length; i++) counter.last[i - 1] = row[i];
  }
  store.hasHeat = sample.iteration !== undefined;
  for (const [place, count] of sample.iteration || []) store.heatLast[place] = count;
  for (const [name, rows] of Object.entries(store.rows)) rows.take(sample[name] || [], store.count);
  if (isKept) keepSample(sample, slot(store.count++));
}

function keepSample(sample, at) {
  const { phases, runners, times, bounds } = store.names;
  store.now[at] = sample.now_ns / 1e6;
  sample.phases.forEach((each, thread) => store.phases.set(each, (at * store.threads + thread) * phases.length));
  for (const counter of store.counters.values()) {
    counter.all.set(counter.last, at * store.threads);
    counter.total[at] = counter.last.reduce((sum, each) => sum + each, 0);
  }
  sample.runners.forEach((each, i) => store.runners.set(each, (at * runners.length + i) * times.length));
  store.heat.set(store.heatLast, at * bounds.length);
}

// How much a counter of a thread (all of them without a thread) has grown from one sample to another.
function grown(name, from, to, thread) {
  const counter = store.counters.get(name);
  if (!counter) return 0;
  if (thread === undefined) return counter.total[slot(to)] - counter.total[slot(from)];
  return counter.all[slot(to) * store.threads + thread] - counter.all[slot(from) * store.threads + thread];
}

function phaseGrown(thread, phase, from, to) {
  const width = store.names.phases.length;
  const grown_ = store.phases[(slot(to) * store.threads + thread) * width + phase] -
    store.phases[(slot(from) * store.threads + thread) * width + phase];
  return Math.max(0, grown_); // the times of submit and sleep may go back
}

// The shares of the phases of a thread, of the time that they take together.
function shares(thread, from, to) {
  const all = store.names.phases.map((_, phase) => phaseGrown(thread, phase, from, to));
  const sum = all.reduce((a, b) => a + b, 0) || 1;
  return all.map((each) => each / sum);
}

function runnerGrown(runner, time_, from, to) {
  const { runners, times } = store.names;
  const place = times.indexOf(time_);
  const at = (index) => (slot(index) * runners.length + runner) * times.length + place;
  return store.runners[at(to)] - store.runners[at(from)];
}

function secondsBetween(from, to) {
  return (store.now[slot(to)] - store.now[slot(from)]) / 1e3;
}

// Rows that come and change rarely, such as behaviours: for each a list of its changes. A row is what
// it is, in two parts, and then its figures.
class Rows {
  constructor() {
    this.each = new Map();
  }

  take(rows, index) {
    for (const [name, kind, ...values] of rows) {
      const key = JSON.stringify([name, kind]);
      if (!this.each.has(key)) this.each.set(key, { info: [name, kind], at: [], values: [] });
      const row = this.each.get(key);
      if (row.at[row.at.length - 1] !== index) row.at.push(index);
      row.values[row.at.length - 1] = values;
      if (row.at.length > 2 * HISTORY) { // now and then those that are out of sight go
        row.at.splice(0, HISTORY);
        row.values.splice(0, HISTORY);
      }
    }
  }

  // The values of a row as of a sample; those that it had first, if it is younger.
  static valuesAt(row, index) {
    let low = 0;
    let high = row.at.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row.at[middle] <= index) low = middle + 1;
      else high = middle;
    }
    return row.values[Math.max(0, low - 1)];
  }

  // For each row: what it is, how it has grown, and what it is at the end.
  grown(from, to) {
    const all = [];
    for (const row of this.each.values()) {
      if (row.at.length === 0) continue;
      const first = Rows.valuesAt(row, from);
      const last = Rows.valuesAt(row, to);
      all.push({ info: row.info, last, grown: last.map((value, i) => value - first[i]) });
    }
    return all;
  }
}
