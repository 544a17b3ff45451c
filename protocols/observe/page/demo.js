// Figures that are made up, to look at the page without a program: ?demo=64 shows 64 threads.

const demo = { isOn: false, threads: 0, level: 2, serial: 0, state: null };

const DEMO_COUNTERS = [...KEPT];
const DEMO_BEHAVIOURS = [["shard", "state"], ["visitor", "channels"], ["session", "channels"], ["room", "state"],
  ["timer wheel of a shop with a rather long name", "state"], ["index", "state"]];
const DEMO_LISTENERS = [["127.0.0.1:7005", "site"], ["unix:/run/shop.sock", "kv"]];
const DEMO_PAIRS = [[0, 1], [1, 0]];

function demoNames(threads) {
  const bounds = [];
  for (let i = 0; i < 124; i++) bounds.push(i < 4 ? i * 16 : Math.round(64 * 2 ** Math.floor((i - 4) / 4) * (1 + ((i - 4) % 4) / 4)));
  return { program: "demo", pid: 1, interval_ms: 250, levels: ["off", "counters", "histograms", "spans"],
    phases: ["submit", "sleep", "completions", "channels", "events", "state", "other"], counters: DEMO_COUNTERS, threads,
    times: ["wall_ns", "run_ns", "search_ns", "park_ns", "turns", "messages", "steals", "stolen", "parks"],
    runners: [["work", 0], ["work", 1], ["work", 2]], bounds };
}

// A number of 0 to 1 that looks as by chance, and is the same in each run.
function chance() {
  demo.seed = (Math.imul(demo.seed, 1664525) + 1013904223) >>> 0;
  return demo.seed / 2 ** 32;
}

function demoStart(threads) {
  Object.assign(demo, { isOn: true, threads, seed: 7, serial: 0, level: 2 });
  const zeros = (count) => new Array(count).fill(0);
  demo.state = { phases: Array.from({ length: threads }, () => zeros(7)), counters: DEMO_COUNTERS.map(() => zeros(threads)),
    runners: Array.from({ length: 3 }, () => zeros(9)), iteration: zeros(124), behaviours: DEMO_BEHAVIOURS.map(() => [0, 0, 0, 0, 0, 0, 900, 3e6]),
    listeners: [[0, 40, 0], [0, 3, 0]], pairs: [[0, 0], [0, 0]] };
}

function demoThread(thread, load, add) {
  const phases = demo.state.phases[thread];
  const ns = 250e6;
  const busy = Math.min(0.97, load * (0.7 + 0.6 * chance()));
  const parts = [0.16, 0, 0.08, 0.22, 0.06, 0.44, 0.04];
  parts.forEach((part, i) => { phases[i] += ns * (i === 1 ? 1 - busy : busy * part); });
  for (const [name, rate] of [["iterations", 9000], ["runs", 42000], ["asks", 20000], ["notices", 15000], ["replies", 20000],
    ["received_bytes", 9e6], ["sent_bytes", 12e6], ["ready_ns", 4e9], ["wakeups_received", 500], ["wakeups_empty", thread === 1 ? 400 : 60]]) {
    add(name, thread, rate * busy * 0.25);
  }
  if (thread === 0) add("deadline_expiries", 0, 30 * busy);
}

function demoSample() {
  const { state, threads } = demo;
  const add = (name, thread, number) => { state.counters[DEMO_COUNTERS.indexOf(name)][thread] += Math.round(number); };
  demo.serial++;
  for (let thread = 0; thread < threads; thread++) {
    const load = 0.45 + 0.4 * Math.sin(demo.serial / 40 + thread / 3) * (thread % 5 === 4 ? 0.2 : 1);
    demoThread(thread, load, add);
  }
  if (demo.serial % 90 === 0) add("stalls", 0, 1);
  state.runners.forEach((each, i) => { [250e6, 60e6 * (i + 1), 9e6, 100e6, 900, 4000, 20, 10, 40].forEach((more, k) => { each[k] += more; }); });
  for (let i = 40; i < 74; i++) state.iteration[i] += Math.round(4000 * Math.exp(-((i - 50 - 5 * Math.sin(demo.serial / 60)) ** 2) / 30) + (chance() > 0.98 ? 2 : 0));
  state.behaviours.forEach((each, i) => { [9000 / (i + 1), 120e6 / (i * i + 1), 16000 / (i + 1), 200, 4e6 * (i + 1), 0].forEach((more, k) => { each[k] += Math.round(more); }); });
  state.listeners.forEach((each) => { each[0] += 3; });
  state.pairs.forEach((each, i) => { each[0] += 5 * i; each[1] += 2; });
  return demoText();
}

function demoText() {
  const { state, serial, level } = demo;
  return { serial, now_ns: serial * 250e6, level, phases: state.phases, counters: state.counters.map((all, i) => [i, ...all]),
    runners: state.runners, memory: [3e8, 8e9, 0], iteration: level >= 2 ? state.iteration.map((count, i) => [i, count]).filter((each) => each[1] > 0) : undefined,
    behaviours: state.behaviours.map((all, i) => [...DEMO_BEHAVIOURS[i], ...all]),
    listeners: state.listeners.map((all, i) => [...DEMO_LISTENERS[i], ...all]),
    pairs: state.pairs.map((all, i) => [...DEMO_PAIRS[i], ...all]) };
}

const DEMO_NODES = ["shop-1", "shop-2", "shop-3"];
const DEMO_COLUMNS = [["node", "label"], ["state", "state"], ["note", "text"], ["id", "text"], ["threads", "amount"],
  ["round trip", "time"], ["on the way", "bytes"], ["sent", "count"], ["received", "count"], ["refused", "faults"],
  ["lost", "faults"], ["resent", "faults"]];

function demoCluster() {
  const rows = DEMO_NODES.map((node, i) => [node, i === 2 ? "down" : "up", i === 0 ? "this node" : "", String(i), 4, i * 180e3,
    i * 2e5, i * demo.serial * 900, i * demo.serial * 800, 0, i === 2 ? 40 : 0, 0]);
  const columns = DEMO_COLUMNS.map(([title, kind]) => ({ name: title, title, kind }));
  return { set: "cluster", tables: [{ name: "nodes", title: "Nodes", is_list: false, from: 0, total: rows.length, columns,
    rows: rows.map((row) => Object.fromEntries(row.map((value, i) => [columns[i].name, value]))) }] };
}

function demoFindings() {
  return { findings: [{ rule: "hot-actor", harm: "delay", keys: "pools",
    sentence: "The one actor of the behaviour ledger takes 83 % of thread 0, and each message that it handles takes 41 us.",
    limit: "An actor handles one message at a time, so it can use no second thread, and all else on its thread waits for it.",
    change: ["# in the list of pools: {name: work}, and spawn the actor there"] }] };
}

function demoStalls() {
  return { stalls: [{ when_ns: 1, when: "2026-01-01T12:00:00Z", thread: 0, length_ns: 31e6, behaviour: "shard", type: "put",
    backtrace: ["compress", "shard_put", "domi_turn_begin"] }] };
}

demo.answer = (path) => (path.startsWith("/cluster") ? demoCluster() : path.startsWith("/doctor") ? demoFindings() :
  path === "/stalls" ? demoStalls() : null);

// Show the past three minutes at once, and go on from there.
function demoRun(threads) {
  demoStart(threads);
  begin(demoNames(threads));
  for (let i = 0; i < VIEW; i++) storeSample(JSON.parse(JSON.stringify(demoSample())), true);
  setInterval(() => take(JSON.parse(JSON.stringify(demoSample()))), 250);
}
