// What a reader should look at, in words, with the key of the configuration to change.

const EXPIRIES_LEAST = 20; // a second: state actors are cut short often
const SLEEP_LEAST = 0.1; // and yet the thread sleeps
const CROWDED = 0.9; // of the time of a thread: io has hardly any of it
const HOT = 0.5; // of the time of all actors: one behaviour has more than its share
const UNEVEN = 0.4; // between the busiest thread and the idlest one
const EMPTY_LEAST = 20; // a second, of more than half of the wake-ups
const SMALL = 0.3; // of the time of one thread: less is no matter

const RULES = [
  ({ threads }) => threads.filter((row) => row.expiries > EXPIRIES_LEAST && row.busy < 1 - SLEEP_LEAST).map((row) => [
    `Thread ${row.thread}: state actors are cut short ${amount(row.expiries)} times a second, while the thread sleeps ` +
    `${percent(1 - row.busy)} of the time. Give io less of it:`, "scheduler.ioRatio"]),
  ({ threads }) => threads.filter((row) => row.expiries > EXPIRIES_LEAST && row.state > CROWDED).map((row) => [
    `Thread ${row.thread}: state actors take ${percent(row.state)} of the time, and are cut short ${amount(row.expiries)} times a ` +
    "second, so connections wait for them. Give io more of it, or less to them at a time:",
    "scheduler.ioRatio, scheduler.maxBudget"]),
  ({ behaviours }) => {
    const all = behaviours.filter((row) => row.kind === "state");
    const sum = all.reduce((time_, row) => time_ + row.time, 0);
    return all.filter((row) => sum > SMALL && all.length > 1 && row.time > HOT * sum).map((row) => [
      `The behaviour ${row.name} takes ${percent(row.time / sum)} of the time of state actors. Spread its work over more ` +
      "actors, or give it a pool:", "pools"]);
  },
  ({ threads, from, to }) => {
    const busy = threads.map((row) => row.busy);
    const [most, least] = [Math.max(...busy), Math.min(...busy)];
    if (threads.length < 2 || most - least < UNEVEN || grown("steals", from, to) > 0) return [];
    return [[`Threads are uneven: ${percent(most)} and ${percent(least)} busy, and nothing is stolen. Let idle ones take work ` +
      "sooner:", "scheduler.steal.floor, scheduler.steal.aggression, scheduler.steal.minRun"]];
  },
  ({ from, to }) => counted("receivers_starved", from, to, (count) =>
    [`Connections waited ${times(count)} for a free buffer to read into. Give threads more of them:`, "io.buffers.count"]),
  ({ threads }) => threads.filter((row) => row.empty > 0.5 && row.wakeups > EMPTY_LEAST).map((row) => [
    `Thread ${row.thread}: ${percent(row.empty)} of ${amount(row.wakeups)} wake-ups a second find nothing to do, because others ` +
    "had done it. Let them look less long, or stand in less long:", "scheduler.idle.spin, scheduler.idle.standIn"]),
  ({ from, to }) => counted("stalls", from, to, (count) =>
    [`An actor has held up its thread ${times(count)}, for ${time(grown("stalled_ns", from, to))} in all. Let such work go to ` +
      "domus_blocking() or a pool. What counts as a stall:", "stall.threshold"]),
  ({ from, to }) => counted("refusals", from, to, (count) =>
    [`${amount(count)} asks and notices were refused, because the mailbox of the receiver was full:`, "scheduler.mailboxMax"]),
  ({ from, to }) => counted("accept_pauses", from, to, (count) =>
    [`Accepting was paused ${times(count)}, because there were too many connections:`, "channel.maxConnections"]),
  ({ from, to }) => counted("log_lines_dropped", from, to, (count) =>
    [`${amount(count)} lines of the log were dropped. More than that is said:`, "log.level"]),
  () => (store.memory && store.memory[2] > 0 ? [[`Memory is short: ${bytes(store.memory[0])} of ${bytes(store.memory[1])} are used.`,
    "memory.limit"]] : []),
];

function counted(name, from, to, words) {
  const count = grown(name, from, to);
  return count > 0 ? [words(count)] : [];
}

// Of warnings of the same kind, for many threads, the first few are enough.
function findWarnings(figures_) {
  return RULES.flatMap((rule) => {
    const found = rule(figures_);
    const more = found.length - 3;
    return more > 0 ? [...found.slice(0, 3), [`The same holds for ${more} more threads:`, found[0][1]]] : found;
  });
}

const warnings = { told: null, at: 0 };
const WARNINGS_MS = 3000; // between two changes, so that a screen reader can keep up

function tellWarnings(found) {
  const keys = found.map(([, key]) => key).join();
  const isNew = keys !== warnings.told;
  if (!isNew && performance.now() - warnings.at < WARNINGS_MS) return;
  warnings.told = keys;
  warnings.at = performance.now();
  const list = $("warnings");
  const lines = found.length > 0 ? found : [["Nothing stands out.", ""]];
  while (list.children.length > lines.length) list.lastChild.remove();
  while (list.children.length < lines.length) list.append(element("li", "", element("span", "", ""), " ", element("code", "", "")));
  lines.forEach(([text, key], i) => {
    const item = list.children[i];
    item.className = key ? "alarm" : "soft";
    say(item.children[0], text);
    say(item.children[1], key);
  });
}
