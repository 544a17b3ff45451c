// Tables that libraries show of themselves, such as the nodes of a cluster: what columns they have, they
// say themselves. /profile names their sets, and each set is fetched while somebody looks.

const SETS_MS = 900;

const sets = { names: [], at: -SETS_MS, tables: new Map() };

const SET_WORDS = { amount, bytes, time, count: amount, faults: amount };

const isShown = (column) => column.name !== "id";

function beginSets() {
  Object.assign(sets, { names: demo.isOn ? ["cluster"] : [], at: -SETS_MS, tables: new Map() });
  $("sets").replaceChildren();
}

// A part of the page for a table. What is counted is said as a rate; faults are counts in the span.
function makeSetTable(set, from) {
  const id = `set-${set}-${from.name}`;
  const title = set[0].toUpperCase() + set.slice(1) + ": " + from.title.toLowerCase() + " ";
  const head = element("h2", "", title, element("span", "soft", "counts a second"));
  const body = element("div", "");
  const part = element("section", "", head, body);
  part.id = id + "-part";
  part.setAttribute("aria-labelledby", id + "-title");
  head.id = id + "-title";
  body.id = id;
  $("sets").append(part);
  const columns = from.columns.filter(isShown).map(({ name, title: words, kind }) =>
    [words, (row) => row[name], SET_WORDS[kind]]);
  const table = { part, columns: from.columns, shown: new Table(id, columns, 0), rows: new Rows(), now: [] };
  table.shown.isDescending = false;
  table.shown.showOrder();
  return table;
}

// The name of a row: its labels, and a number that tells one start of a node from the next.
function rowName(columns, row) {
  return columns.filter(({ name, kind }) => kind === "label" || name === "id").map(({ name }) => row[name]).join(" ");
}

function takeSetTable(set, from) {
  const key = set + " " + from.name;
  if (!sets.tables.has(key)) sets.tables.set(key, makeSetTable(set, from));
  const table = sets.tables.get(key);
  const numbers = table.columns.filter(({ kind }) => SET_WORDS[kind]);
  table.now = from.rows;
  table.rows.take(from.rows.map((row) =>
    [rowName(table.columns, row), "", ...numbers.map(({ name }) => row[name])]), Math.max(0, store.count - 1));
  const names = new Set(from.rows.map((row) => rowName(table.columns, row)));
  for (const [place, { info }] of table.rows.each) {
    if (!names.has(info[0])) table.rows.each.delete(place); // it has gone, as nodes do that begin anew
  }
  return table;
}

function takeSet(set, answer) {
  const there = answer ? answer.tables.filter((each) => !each.is_list).map((each) => takeSetTable(set, each)) : [];
  for (const [key, table] of sets.tables) {
    if (key.startsWith(set + " ") && !there.includes(table)) table.now = [];
  }
}

// The sets that the program has now.
function takeSets(names) {
  sets.names.filter((set) => !names.includes(set)).forEach((set) => takeSet(set, null));
  sets.names = names;
}

async function lookAtSets() {
  if (document.hidden || performance.now() - sets.at < SETS_MS) return;
  sets.at = performance.now();
  const names = store.names;
  for (const set of sets.names) {
    const answer = await fetchJson(`/${set}?count=${ROWS_MAX}`);
    if (names !== store.names) return; // another program has begun meanwhile
    if (!isFrozen()) takeSet(set, answer);
  }
}

// The rows that there are now, each with what its figures were in the span.
function setRows(table, from, to) {
  const passed = secondsBetween(from, to);
  const numbers = table.columns.filter(({ kind }) => SET_WORDS[kind]);
  const all = new Map(table.rows.grown(from, to).map((each) => [each.info[0], each]));
  return table.now.map((row) => {
    const { last, grown: more } = all.get(rowName(table.columns, row));
    const figures_ = { ...row };
    numbers.forEach(({ name, kind }, i) => {
      if (kind === "count") figures_[name] = more[i] / passed;
      else figures_[name] = kind === "faults" ? more[i] : last[i];
    });
    return figures_;
  });
}

function tellSets(from, to) {
  for (const table of sets.tables.values()) {
    table.part.hidden = table.now.length === 0;
    table.shown.show(setRows(table, from, to));
  }
}
